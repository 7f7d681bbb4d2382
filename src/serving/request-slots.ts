import { type Clock, systemClock } from '../actor/clock.js'
import type { Full } from '../actor/fair-line.js'
import { FreeShares, type ReleaseShare } from '../actor/free-shares.js'
import { LeakingCounts } from '../admission/leaking-counts.js'
import { type Parties, partiesOf } from '../format/ip.js'
import type { Pace, Reply } from '../http/exchange.js'

/** The part of a reply that says how long its client makes it last. */
export type Paced = Pick<Reply, 'pace' | 'giveUp' | 'aborted'>

/** A client that is waited for so long has shown how fast it is. */
const shownMs = 1000

/** Together those who hold all slots have to send or take so many bytes a second, */
const busyBytesPerSecond = 8 * 1024 * 1024
/** but none of them more than this. */
const eachBytesPerSecond = 256 * 1024

/** Requests of a network that came to nothing are forgotten at this rate. */
const wasted = { leakPerSecond: 0.05, max: 50 }
/** More of them by so much is more. */
const leadMin = 0.5

interface Held {
  readonly parties: Parties
  readonly reply: Paced
  readonly leave: ReleaseShare
}

interface Slow {
  readonly held: Held
  readonly pace: Pace
}

/**
 * Slots for requests, shared as by `FreeShares`. A request may last for as long as its client sends its body or takes the answer,
 * so a thousand clients that do so byte by byte could hold all slots, each client very few of them. Where there is no slot for a
 * client that has few, the request whose client is slowest makes room: of all, or of the network or provider that has its share.
 * Who sends or takes its part of `busyBytesPerSecond` never has to, nor a request that waits for something else than its client.
 *
 * Whoever had to make room comes again at once, and others with it, so a slot that gets free would seldom be a newcomer's. So a
 * request has no second to show its pace against a network with fewer requests that came to nothing lately.
 */
export class RequestSlots {
  readonly #shares: FreeShares
  readonly #held = new Set<Held>()
  readonly #bytesPerSecond: number
  /** Keyed by network: requests that had to make room, or whose client left before the end. */
  readonly #wasted: LeakingCounts

  /** `eachMax`: slots of one client at most, where that is less than half. */
  constructor(max: number, eachMax?: number, clock: Clock = systemClock) {
    this.#wasted = new LeakingCounts(clock, wasted)
    this.#shares = new FreeShares(max, eachMax)
    this.#bytesPerSecond = Math.min(eachBytesPerSecond, busyBytesPerSecond / max)
  }

  /** `max` slots, of which one client may have a quarter. */
  static quarters(max: number): RequestSlots {
    return new RequestSlots(max, Math.max(1, max >> 2))
  }

  /** A slot, to be given back; or why there is none. A request that makes room is over for its client when this returns. */
  take(client: string, reply: Paced): ReleaseShare | Full {
    const level = this.#shares.fullness(client)
    if (level === 'client') return 'client'
    const parties = partiesOf(client)
    if (level !== undefined) {
      const slow = this.#slow(parties, level === 'all' ? undefined : level === 'provider' ? 0 : 1)
      const gone = slowestOf(slow) ?? this.#mostWasteful(slow, parties)
      if (gone === undefined) return level === 'all' ? 'all' : 'client'
      this.#over(gone, true)
      gone.reply.giveUp()
    }
    const held: Held = { parties, reply, leave: this.#shares.force(client) }
    this.#held.add(held)
    return () => this.#over(held, reply.aborted)
  }

  /** Those whose clients are slow so far. `level`: of those that have this party in common. */
  #slow(parties: Parties, level: 0 | 1 | undefined): readonly Slow[] {
    const found: Slow[] = []
    for (const held of this.#held) {
      if (level !== undefined && held.parties[level] !== parties[level]) continue
      const pace = held.reply.pace()
      if (pace !== undefined && pace.bytesPerSecond < this.#bytesPerSecond) found.push({ held, pace })
    }
    return found
  }

  /** The one with most waste, of those with more than a newcomer. */
  #mostWasteful(slow: readonly Slow[], [, network]: Parties): Held | undefined {
    let found: Held | undefined
    let most = this.#wasted.of(network) + leadMin
    for (const { held } of slow) {
      const waste = this.#wasted.of(held.parties[1])
      if (waste <= most) continue
      found = held
      most = waste
    }
    return found
  }

  #over(held: Held, isWaste: boolean): void {
    if (!this.#held.delete(held)) return
    if (isWaste) this.#wasted.add(held.parties[1])
    held.leave()
  }
}

/** The slowest, of those that have shown how slow they are. */
function slowestOf(slow: readonly Slow[]): Held | undefined {
  let slowest: Slow | undefined
  for (const one of slow) {
    if (one.pace.ms < shownMs) continue
    if (slowest === undefined || one.pace.bytesPerSecond < slowest.pace.bytesPerSecond) slowest = one
  }
  return slowest?.held
}
