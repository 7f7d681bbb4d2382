import type { Clock } from '../actor/clock.js'
import { FairSlots, gaveUp } from '../actor/fair-slots.js'
import { FreeShares } from '../actor/free-shares.js'
import { LazySignal } from '../actor/lazy-signal.js'
import { encodeBase64url } from '../format/base64url.js'
import type { Resolved } from '../format/packed-manifest.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { ManifestFrom } from '../source/source-messages.js'
import { PackedFile } from '../store/packed-file.js'
import { Recent } from '../store/recent.js'
import type { Transfers } from './gateway-parts.js'

export const manifestType = 'application/x.arweave-manifest+json'

const unreadable = refuse('unknown', 'client', 'the manifest cannot be read')
const tooMany = refuse('busy', 'client', 'too many manifests of one client are being read')
const broken = refuse('upstream', 'self', 'the packed form of the manifest cannot be read')

/** Paths kept at least, and at most twice as many; of the usual length each takes some 250 bytes. */
const resolvedMax = 16_384
/** Longer paths are looked up each time. */
const keptPathMax = 256

/**
 * Manifests that are read for one edge thread at once. A large one takes a thread of the pool for seconds, and the pool has no
 * turns. So one client has one of them, and each client has its turn by the time that it used.
 */
const readAtOnce = 2

/** One read of a manifest, which begins with the first turn of those who want it. */
class Reading {
  /** Those that wait for their turns. */
  readonly clients = new Set<string>()
  readonly over: Promise<string | Refusal>
  /** Fires when it is over: then nobody needs a turn for it any more. */
  readonly ended = new LazySignal()
  #begin: (() => void) | undefined

  constructor(read: () => Promise<string | Refusal>) {
    this.over = new Promise<void>((resolve) => {
      this.#begin = resolve
    })
      .then(read)
      .finally(() => this.ended.abort())
  }

  /** Whether a turn of this client would change nothing. */
  waitsFor(client: string): boolean {
    return this.#begin === undefined || this.clients.has(client)
  }

  /** With a turn: reads it, where nobody else does. */
  async begin(): Promise<void> {
    const begin = this.#begin
    this.#begin = undefined
    begin?.()
    if (begin !== undefined) await this.over
  }
}

/** The packed manifests that one edge thread has open, by the digest of the text: a file is opened at its first use. */
export class OpenManifests {
  /** In the order of use. A refusal: the text is no manifest that can be resolved. */
  readonly #open = new Map<string, PackedFile | Refusal>()
  /** Questions under way, so that many requests for one cold manifest are one message. */
  readonly #asking = new Map<string, Reading>()

  /** Results by digest of the text and path. They never change, because the digest fixes the text. */
  readonly #resolved = new Recent<string, Resolved>(resolvedMax)
  /** How many of these questions belong to which client. */
  readonly #shares: FreeShares
  readonly #turns: FairSlots

  /** `openMax`: files open at once, a descriptor each. `questionsMax`: questions under way, an eighth of them for one client. */
  constructor(
    private readonly transfers: Pick<Transfers, 'manifest'>,
    private readonly openMax: number,
    questionsMax: number,
    clock: Pick<Clock, 'monotonic'>,
  ) {
    this.#shares = new FreeShares(questionsMax, Math.max(1, questionsMax >> 3))
    this.#turns = new FairSlots({ max: readAtOnce, waitingMax: questionsMax, clock })
  }

  /** The target of `path` in the manifest whose text has this digest. `unknown`: this thread has to request it. */
  known(digest: Uint8Array, path: string): Resolved | Refusal | 'absent' | 'unknown' {
    const found = this.#look(encodeBase64url(digest), path)
    return found === 'broken' ? 'unknown' : found
  }

  /**
   * The same, after a question to the fetcher, which parses the text where that was not done yet. `key` is the same for all
   * who mean the same text; `client` names whose share of the questions is used. Never rejects.
   */
  async resolve(
    key: string,
    from: ManifestFrom,
    path: string,
    client: string,
  ): Promise<Resolved | Refusal | 'absent'> {
    // Two tries: a damaged file is made again.
    for (const again of [false, true]) {
      const name = await this.#ask(`${again} ${key}`, from, again, client)
      if (isRefusal(name)) return name
      const found = this.#look(name, path)
      if (found !== 'broken' && found !== 'unknown') return found
    }
    return broken
  }

  close(): void {
    for (const name of [...this.#open.keys()]) this.#close(name)
  }

  #look(name: string, path: string): Resolved | Refusal | 'absent' | 'broken' | 'unknown' {
    const key = path.length > keptPathMax ? undefined : `${name} ${path}`
    const known = key === undefined ? undefined : this.#resolved.get(key)
    if (known !== undefined) return known
    const found = this.#open.get(name)
    if (found === undefined) return 'unknown'
    if (isRefusal(found)) return found
    // Moving it to the young end costs as much as finding it, so it is skipped while there is room.
    if (this.#open.size * 2 > this.openMax) {
      this.#open.delete(name)
      this.#open.set(name, found)
    }
    const resolved = found.resolve(path)
    if (resolved === 'broken') this.#close(name)
    else if (resolved !== 'absent' && key !== undefined) this.#resolved.set(key, resolved)
    return resolved
  }

  /** Name of the manifest, which is open by then; a refusal where it cannot be had. */
  async #ask(key: string, from: ManifestFrom, again: boolean, client: string): Promise<string | Refusal> {
    const running = this.#asking.get(key)
    // Each client has its own turn for it: the one that came first may have many manifests before this one.
    if (running?.waitsFor(client) === true) return running.over
    const leave = this.#shares.take(client)
    if (typeof leave === 'string') return running?.over ?? tooMany
    const reading =
      running ?? new Reading(() => this.#bring(from, again).finally(() => this.#asking.delete(key)))
    this.#asking.set(key, reading)
    reading.clients.add(client)
    return Promise.race([reading.over, this.#withTurn(reading, client).finally(leave)])
  }

  async #withTurn(reading: Reading, client: string): Promise<string | Refusal> {
    const slot = await this.#turns.wait(client, reading.ended)
    if (isRefusal(slot)) return slot === gaveUp ? reading.over : slot
    try {
      await reading.begin()
    } finally {
      slot()
    }
    return reading.over
  }

  async #bring(from: ManifestFrom, again: boolean): Promise<string | Refusal> {
    const packed = await this.transfers.manifest(from, again)
    if (isRefusal(packed)) return packed
    const name = encodeBase64url(packed.digest)
    this.#close(name)
    const file = opened(packed.path)
    if (file === undefined) return name
    if (isRefusal(file) && file.refused === 'busy') return file
    this.#open.set(name, isRefusal(file) && file.refused === 'malformed' ? unreadable : file)
    const [oldest] = this.#open.keys()
    if (this.#open.size > this.openMax && oldest !== undefined) this.#close(oldest)
    return name
  }

  #close(name: string): void {
    const found = this.#open.get(name)
    if (found !== undefined && !isRefusal(found)) found.close()
    this.#open.delete(name)
  }
}

/** A failing disk or a lack of descriptors is not remembered: the next request tries again. */
function opened(path: string): ReturnType<typeof PackedFile.open> {
  try {
    return PackedFile.open(path)
  } catch (error) {
    return refuse('busy', 'self', `a packed manifest cannot be opened: ${String(error)}`)
  }
}
