import type { Full } from '../actor/fair-line.js'
import { FreeShares, type Leave } from '../actor/free-shares.js'
import { type Parties, partiesOf } from '../format/ip.js'
import type { Reply } from '../http/exchange.js'

/** The part of a reply that says how long its client makes it last. */
export type Paced = Pick<Reply, 'pace' | 'giveUp'>

/** A client that is waited for so long has shown how fast it is. */
const shownMs = 1000

/** Together those who hold all slots have to send or take so many bytes a second, */
const busyBytesPerSecond = 8 * 1024 * 1024
/** but none of them more than this. */
const eachBytesPerSecond = 256 * 1024

interface Held {
  readonly parties: Parties
  readonly reply: Paced
  readonly leave: Leave
}

/**
 * Slots for requests, shared as by `FreeShares`. A request may last for as long as its client sends its body or takes the answer,
 * so a thousand clients that do so byte by byte could hold all slots, each client very few of them. Where there is no slot for a
 * client that has few, the request whose client is slowest makes room: of all, or of the network or provider that has its share.
 * Who sends or takes its part of `busyBytesPerSecond` never has to, nor a request that waits for something else than its client.
 */
export class RequestSlots {
  readonly #shares: FreeShares
  readonly #held = new Set<Held>()
  readonly #bytesPerSecond: number

  /** `eachMax`: slots of one client at most, where that is less than half. */
  constructor(max: number, eachMax?: number) {
    this.#shares = new FreeShares(max, eachMax)
    this.#bytesPerSecond = Math.min(eachBytesPerSecond, busyBytesPerSecond / max)
  }

  /** `max` slots, of which one client may have a quarter. */
  static quarters(max: number): RequestSlots {
    return new RequestSlots(max, Math.max(1, max >> 2))
  }

  /** A slot, to be given back; or why there is none. A request that makes room is over for its client when this returns. */
  take(client: string, reply: Paced): Leave | Full {
    const level = this.#shares.fullness(client)
    if (level === 'client') return 'client'
    const parties = partiesOf(client)
    if (level !== undefined) {
      const slowest = this.#slowest(parties, level === 'all' ? undefined : level === 'provider' ? 0 : 1)
      if (slowest === undefined) return level === 'all' ? 'all' : 'client'
      this.#over(slowest)
      slowest.reply.giveUp()
    }
    const held: Held = { parties, reply, leave: this.#shares.force(client) }
    this.#held.add(held)
    return () => this.#over(held)
  }

  /** `level`: of those that have this party in common. */
  #slowest(parties: Parties, level: 0 | 1 | undefined): Held | undefined {
    let slowest: Held | undefined
    let least = this.#bytesPerSecond
    for (const held of this.#held) {
      const pace = held.reply.pace()
      if (pace === undefined || pace.ms < shownMs || pace.bytesPerSecond >= least) continue
      if (level !== undefined && held.parties[level] !== parties[level]) continue
      slowest = held
      least = pace.bytesPerSecond
    }
    return slowest
  }

  #over(held: Held): void {
    this.#held.delete(held)
    held.leave()
  }
}
