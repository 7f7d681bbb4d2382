import type { Clock } from '../actor/clock.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Guard } from '../gateway/guard.js'
import type { Source } from '../gateway/parts.js'
import { orLate } from '../http/sender-pace.js'

/** May bytes of an id go out? A refusal: that is not known yet. */
export type Verdict = 'clear' | 'blocked' | Refusal

export interface LearnerParts {
  readonly guard: Guard
  readonly source: Pick<Source, 'digestOf'>
  readonly clock: Clock
  /** An answer waits so long for a digest; the transfer goes on, and the next one who asks finds it done. */
  readonly waitMs: number
  /** Ids whose digests this thread asks for at once; one more is refused `busy`. */
  readonly flightsMax: number
  /** Content that could not be had is not asked for again for so long: each try may transfer most of it. */
  readonly restMs: number
}

/** Digests of content that was not kept, for the next request: 100 bytes or so each. */
const rememberedMax = 4096

const late = refuse('busy', 'self', 'the digest of the content is not known yet')

/** Learns the digests of content whose bytes do not come through the fetcher, before they are sent. */
export class DigestLearner {
  readonly #learned = new Map<Id, Uint8Array>()
  /** Until when an id rests, by the monotonic clock. */
  readonly #resting = new Map<Id, number>()
  readonly #flights = new Map<Id, Promise<Uint8Array | Refusal>>()

  constructor(private readonly parts: LearnerParts) {}

  /** About all bytes of `id`. At once where nothing is blocked by its hash, or the digest is known. Never rejects. */
  verdict(id: Id): Verdict | Promise<Verdict> {
    const { guard } = this.parts
    if (guard.blocksKnown(id)) return 'blocked'
    if (!guard.lacksDigest(id)) return 'clear'
    const known = this.#learned.get(id)
    if (known !== undefined) return guard.blocksDigest(known) ? 'blocked' : 'clear'
    return this.#learn(id)
  }

  async #learn(id: Id): Promise<Verdict> {
    const { guard, clock, waitMs, flightsMax } = this.parts
    let flight = this.#flights.get(id)
    if (flight === undefined) {
      if (this.#flights.size >= flightsMax || this.#rests(id)) return late
      flight = this.#ask(id).finally(() => this.#flights.delete(id))
      this.#flights.set(id, flight)
    }
    const digest = await orLate(flight, waitMs, late, clock)
    if (!isRefusal(digest)) return guard.blocksDigest(digest) ? 'blocked' : 'clear'
    // Where nobody has all of it nobody can say that it is clear.
    return digest.refused === 'blocked' || guard.blocksKnown(id) ? 'blocked' : late
  }

  async #ask(id: Id): Promise<Uint8Array | Refusal> {
    const { source, clock, restMs } = this.parts
    const digest = await source.digestOf(id)
    if (!isRefusal(digest)) remember(this.#learned, id, digest)
    else if (digest.refused !== 'busy') remember(this.#resting, id, clock.monotonic() + restMs)
    return digest
  }

  #rests(id: Id): boolean {
    const until = this.#resting.get(id)
    if (until === undefined) return false
    if (this.parts.clock.monotonic() < until) return true
    this.#resting.delete(id)
    return false
  }
}

/** The oldest entry makes room. */
function remember<Value>(map: Map<Id, Value>, id: Id, value: Value): void {
  const [oldest] = map.keys()
  if (map.size >= rememberedMax && oldest !== undefined) map.delete(oldest)
  map.set(id, value)
}
