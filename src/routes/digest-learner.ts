import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock } from '../actor/clock.js'
import { FreeShares } from '../actor/free-shares.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Transfers } from '../gateway/gateway-parts.js'
import type { Guard } from '../gateway/guard.js'
import { orLate } from '../http/sender-pace.js'

/**
 * Whether bytes of an id may be sent. A refusal: not known yet; `too-large`: too large to be transferred for the sake of a
 * chunk.
 */
export type Verdict = 'clear' | 'blocked' | Refusal

export interface LearnerParts {
  readonly guard: Guard
  readonly transfers: Pick<Transfers, 'digestOf'>
  readonly clock: Clock
  /** An answer waits so long for a digest; the transfer goes on, and later requests find its result. */
  readonly waitMs: number
  /** Ids whose digests this thread requests at once, a quarter of them for one client; one more is refused `busy`. */
  readonly flightsMax: number
  /** Larger content is not transferred to learn its digest. */
  readonly sizeMaxBytes: number
  /** Content that could not be had is not requested again for so long, because each try may transfer most of it. */
  readonly restMs: number
}

/** Digests of content that was not kept, for the next request: 100 bytes or so each. */
const rememberedMax = 4096

const late = refuse('busy', 'self', 'the digest of the content is not known yet')
const tooLarge = refuse('too-large', 'self', 'the content is too large to learn its digest for a chunk')

/**
 * Learns the digests of content whose bytes do not come through the fetcher, before they are sent. Since that may transfer a
 * whole transaction, `verdict` never begins a transfer; `learn` does, and is called only after tokens for that size were
 * taken.
 */
export class DigestLearner {
  readonly #learned = new BoundedMap<Id, Uint8Array>(rememberedMax)
  /** Ids that are not requested again, and until when by the monotonic clock. */
  readonly #resting = new BoundedMap<Id, number>(rememberedMax)
  readonly #flights = new Map<Id, Promise<Uint8Array | Refusal>>()
  readonly #slots: FreeShares

  constructor(private readonly parts: LearnerParts) {
    this.#slots = FreeShares.quarters(parts.flightsMax)
  }

  /** About all `sizeBytes` of `id`, as far as it is known or a transfer for it is under way. Never rejects. */
  verdict(id: Id, sizeBytes: number): Verdict | 'unlearned' | Promise<Verdict> {
    const { guard, sizeMaxBytes } = this.parts
    if (guard.blocksKnown(id)) return 'blocked'
    if (!guard.lacksDigest(id, sizeBytes)) return 'clear'
    const known = this.#learned.get(id)
    if (known !== undefined) return guard.blocksDigest(known) ? 'blocked' : 'clear'
    if (sizeBytes > sizeMaxBytes) return tooLarge
    const flight = this.#flights.get(id)
    if (flight !== undefined) return this.#judge(id, flight)
    return this.#rests(id) ? late : 'unlearned'
  }

  /** Begins a transfer for a client, unless one is under way. `isFresh`: this call began it. Never rejects. */
  learn(id: Id, client: string): { readonly isFresh: boolean; readonly verdict: Promise<Verdict> } {
    const running = this.#flights.get(id)
    if (running !== undefined) return { isFresh: false, verdict: this.#judge(id, running) }
    const leave = this.#slots.take(client)
    if (typeof leave === 'string') return { isFresh: false, verdict: Promise.resolve(late) }
    const flight = this.#ask(id).finally(() => {
      this.#flights.delete(id)
      leave()
    })
    this.#flights.set(id, flight)
    return { isFresh: true, verdict: this.#judge(id, flight) }
  }

  async #judge(id: Id, flight: Promise<Uint8Array | Refusal>): Promise<Verdict> {
    const { guard, clock, waitMs } = this.parts
    const digest = await orLate(flight, waitMs, late, clock)
    if (!isRefusal(digest)) return guard.blocksDigest(digest) ? 'blocked' : 'clear'
    // Without all of its bytes it cannot be known to be clear.
    return digest.refused === 'blocked' || guard.blocksKnown(id) ? 'blocked' : late
  }

  async #ask(id: Id): Promise<Uint8Array | Refusal> {
    const { transfers, clock, restMs } = this.parts
    const digest = await transfers.digestOf(id)
    if (!isRefusal(digest)) this.#learned.set(id, digest)
    else if (digest.refused !== 'busy') this.#resting.set(id, clock.monotonic() + restMs)
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
