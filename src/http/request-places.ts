import type { RunningTime } from '../actor/running-time.js'
import type { SocketReply } from './reply.js'
import { RequestShares } from './request-shares.js'

/** A body of which nothing came for so long may be given up for another request of its client. */
const quietMs = 1000
/** Between two looks for a request that makes room: each looks at all that are under way, some 0.1 ms at 4096. */
const placeEveryMs = 5

/** The requests that are under way at one server, and which of them makes room for another one. */
export class RequestPlaces {
  /** Indexed by slot: replies that outlive their handlers. */
  readonly #replies: (SocketReply | undefined)[] = []
  readonly #shares: RequestShares
  #count = 0
  /** When a place was looked for last: for clients that have requests under way, and for those that have none. */
  readonly #lookedMs = { more: Number.NEGATIVE_INFINITY, first: Number.NEGATIVE_INFINITY }

  /** `max`: requests at once. `running`: clients are judged by it. */
  constructor(
    private readonly max: number,
    private readonly running: RunningTime,
  ) {
    this.#shares = new RequestShares(max)
  }

  /** Requests under way. */
  get count(): number {
    return this.#count
  }

  /** True: a request begins only where `mayBegin`. */
  get isCrowded(): boolean {
    return this.#count * 2 >= this.max
  }

  /** Whether one more request of this client may begin. Another one may be ended for it. */
  mayBegin(client: string): boolean {
    return this.#hasShare(client) && (this.#count < this.max || this.#hasPlace(client))
  }

  /** Counts a request for its client, whose reply is opened next. */
  countFor(client: string, slot: number): void {
    this.#shares.add(slot, client)
  }

  opened(reply: SocketReply, slot: number): void {
    this.#replies[slot] = reply
    this.#count += 1
  }

  closed(slot: number): void {
    this.#replies[slot] = undefined
    this.#shares.remove(slot)
    this.#count -= 1
  }

  replyAt(slot: number): SocketReply | undefined {
    return this.#replies[slot]
  }

  abortAll(): void {
    for (const reply of this.#replies) reply?.abort()
  }

  /** Where many requests are under way, one client may not have most: its most silent body makes room, or there is none. */
  #hasShare(client: string): boolean {
    if (this.#shares.hasRoom(client)) return true
    const now = this.running.monotonic()
    let quietest: SocketReply | undefined
    let longestMs = quietMs
    for (const [slot, reply] of this.#replies.entries()) {
      const ms = reply?.quietMs(now) ?? 0
      if (ms < longestMs || !this.#shares.isOf(slot, client)) continue
      quietest = reply
      longestMs = ms
    }
    quietest?.giveUpBody()
    return quietest !== undefined
  }

  /**
   * Where as many are under way as may be, one of the client with most requests is ended for one of a client with fewer: the one
   * whose body moves most slowly. False: there is none, or one was looked for just now. Looks for a client's first request have
   * turns of their own. Otherwise clients with many requests could use them up.
   */
  #hasPlace(client: string): boolean {
    const now = this.running.monotonic()
    const own = this.#shares.countOf(client)
    const turn = own === 0 ? 'first' : 'more'
    if (now - this.#lookedMs[turn] < placeEveryMs) return false
    this.#lookedMs[turn] = now
    let most = own + 1
    let slowest: SocketReply | undefined
    let least = Number.POSITIVE_INFINITY
    for (const [slot, reply] of this.#replies.entries()) {
      const count = this.#shares.countAt(slot)
      const rate = count < most ? undefined : reply?.pace(now)?.bytesPerSecond
      if (rate === undefined || (count === most && rate >= least)) continue
      most = count
      slowest = reply
      least = rate
    }
    slowest?.giveUp()
    return slowest !== undefined
  }
}
