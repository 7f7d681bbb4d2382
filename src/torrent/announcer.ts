import type { Clock, Timer } from '../actor/clock.js'
import type { Meters } from '../actor/meter.js'
import type { Announced, AnnounceRequest } from './announce.js'
import type { Torrent } from './torrent.js'

export interface AnnouncerParts {
  readonly clock: Clock
  readonly meters: Meters
  /** The torrents that are seeded now. */
  torrents(): readonly Torrent[]
  announce(what: AnnounceRequest, signal: AbortSignal): Promise<Announced | undefined>
}

/** How peers reach us. */
export interface OwnPeer {
  readonly peerId: Buffer
  readonly port: number
}

const lookMs = 1000
/** Pause after a tracker failed; it doubles each time, up to an hour. */
const restMs = 30_000
const restMaxMs = 3_600_000

/** Announces our torrents to one tracker, one at a time, under both infohashes, so that clients of either version find them. */
export class Announcer {
  /** When each torrent is announced next, by its infohash. */
  #nextMs = new Map<string, number>()
  #failures = 0
  #restUntilMs = 0
  #timer: Timer | undefined
  readonly #end = new AbortController()

  constructor(
    private readonly url: string,
    private readonly self: OwnPeer,
    private readonly parts: AnnouncerParts,
  ) {}

  start(): void {
    this.#timer = this.parts.clock.after(lookMs, () => {
      void this.#look().finally(() => {
        if (!this.#end.signal.aborted) this.start()
      })
    })
  }

  stop(): void {
    this.#timer?.cancel()
    this.#end.abort()
  }

  async #look(): Promise<void> {
    const { clock, meters, torrents, announce } = this.parts
    const before = this.#nextMs
    this.#nextMs = new Map()
    for (const torrent of torrents()) {
      const key = torrent.infohashV1.toString('hex')
      const dueMs = before.get(key) ?? 0
      this.#nextMs.set(key, dueMs)
      if (dueMs > clock.monotonic() || this.#restUntilMs > clock.monotonic()) continue
      const infohashes = [torrent.infohashV1, torrent.infohashV2.subarray(0, 20)]
      const { url, self } = this
      const answer = await announce({ url, ...self, infohashes, left: 0 }, this.#end.signal)
      if (this.#end.signal.aborted) return
      meters.of('torrent_announces_total', { outcome: answer === undefined ? 'failed' : 'answered' }).add(1)
      const now = clock.monotonic()
      if (answer === undefined) {
        this.#restUntilMs = now + Math.min(restMaxMs, restMs * 2 ** this.#failures)
        this.#failures += 1
      } else {
        this.#failures = 0
        this.#nextMs.set(key, now + Math.max(restMs, answer.intervalSeconds * 1000))
      }
    }
  }
}
