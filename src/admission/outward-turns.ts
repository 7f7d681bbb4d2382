import type { Clock, Timer } from '../actor/clock.js'
import { RateWindow } from '../actor/rate-window.js'
import { type Parties, partiesOf } from '../format/ip.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { LeakingCounts } from './leaking-counts.js'

export interface OutwardOptions {
  /** Questions that begin in a second, of all clients. */
  readonly perSecond: number
  /** That may begin at once after a while without any. */
  readonly burst: number
  /** Calls of one network (IPv4 /24, IPv6 /48) in a minute; absent: any number, in their turns. For services that send a bill. */
  readonly eachPerMinute?: number
}

/** A client that waits for its turn. */
interface Waiting {
  readonly names: readonly string[]
  over(outcome: Refusal | undefined): void
}

/** Clients that wait, and how long one waits at most. */
const [waitingMax, patienceMs] = [400, 8000]
/** Bounds the table of networks, and is no limit for those who ask. */
const allPerMinute = 100_000
/** Questions that came to nothing are forgotten at this rate: who has many providers' networks does not have them anew soon. */
const wasted = { leakPerSecond: 1 / 600, max: 200 }

const tooOften = refuse('busy', 'client', 'this network asks too often: try again in a minute')
const crowded = refuse('busy', 'self', 'too many ask at the same time: try again')

/**
 * Turns for questions to a service of others (a node, a card provider) that strangers have put by a word that nobody has checked:
 * an id, an amount. Such a service has a limit, or a bill. Without a bound of our own a stranger would use it up for all.
 *
 * So many questions begin in a second. While more wait, the next one is of the client whose provider (IPv4 /16, IPv6 /32) has
 * fewest questions that wait or came to nothing lately, then of its network, then of its address: a newcomer goes first. Where
 * too many wait, the one with most makes room.
 */
export class OutwardTurns {
  readonly #each: RateWindow | undefined
  readonly #wasted: LeakingCounts
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiting>()
  /** How many wait, by the names of their parties. */
  readonly #counts = new Map<string, number>()
  #left: number
  #filledMs: number
  #timer: Timer | undefined

  constructor(
    private readonly options: OutwardOptions,
    private readonly clock: Clock,
  ) {
    const { burst, eachPerMinute: each } = options
    const all = allPerMinute
    this.#each = each === undefined ? undefined : new RateWindow({ windowMs: 60_000, each, all }, clock)
    this.#wasted = new LeakingCounts(clock, wasted)
    this.#left = burst
    this.#filledMs = clock.monotonic()
  }

  /**
   * Resolves with undefined when a question of this client may begin. It counts as one that came to nothing until `worth` is
   * called. Refusals: `busy`, with the fault `client` where its network asks too often. This machine does not, and so neither do
   * clients behind a proxy that does not name them.
   */
  async wait(client: string): Promise<Refusal | undefined> {
    const isOwn = ownShape.test(client)
    if (!isOwn && this.#each?.take(client) === false) return tooOften
    if (this.takeNow(client)) return undefined
    const names = namesOf(partiesOf(client))
    if (this.#waiting.size >= waitingMax && !this.#makeRoom(names)) return crowded
    return new Promise((resolve) => {
      const late = this.clock.after(patienceMs, () => this.#leave(one, crowded))
      const one: Waiting = {
        names,
        over: (outcome) => {
          late.cancel()
          resolve(outcome)
        },
      }
      this.#waiting.add(one)
      for (const name of names) this.#counts.set(name, this.#countOf(name) + 1)
      this.#arm()
    })
  }

  /** Whether a question of this client may begin at once: nobody waits. */
  takeNow(client: string): boolean {
    this.#fill()
    if (this.#waiting.size > 0 || this.#left < 1) return false
    this.#begin(namesOf(partiesOf(client)))
    return true
  }

  /** The question of this client did not come to nothing, or it is not the client's fault. */
  noteUseful(client: string): void {
    for (const name of namesOf(partiesOf(client))) this.#wasted.less(name)
  }

  #fill(): void {
    const { perSecond, burst } = this.options
    const nowMs = this.clock.monotonic()
    this.#left = Math.min(burst, this.#left + ((nowMs - this.#filledMs) * perSecond) / 1000)
    this.#filledMs = nowMs
  }

  #begin(names: readonly string[]): void {
    this.#left -= 1
    for (const name of names) this.#wasted.add(name)
  }

  #leave(one: Waiting, outcome: Refusal | undefined): void {
    if (!this.#waiting.delete(one)) return
    for (const name of one.names) {
      const left = this.#countOf(name) - 1
      if (left > 0) this.#counts.set(name, left)
      else this.#counts.delete(name)
    }
    one.over(outcome)
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#waiting.size === 0) return
    const waitMs = ((1 - this.#left) * 1000) / this.options.perSecond
    this.#timer = this.clock.after(Math.max(1, Math.ceil(waitMs)), () => {
      this.#timer = undefined
      this.#fill()
      while (this.#left >= 1 && this.#waiting.size > 0) this.#next()
      this.#arm()
    })
  }

  #next(): void {
    const [first, ...others] = [...this.#waiting]
    if (first === undefined) return
    const next = others.reduce(
      (least, one) => (this.#compare(one.names, least.names) < 0 ? one : least),
      first,
    )
    this.#begin(next.names)
    this.#leave(next, undefined)
  }

  /** Makes room for a client that has less: the last one of those with most gives its place up. */
  #makeRoom(names: readonly string[]): boolean {
    const all = [...this.#waiting]
    const most = all.reduce((found, one) => (this.#compare(one.names, found.names) >= 0 ? one : found))
    if (this.#compare(names, most.names) >= 0) return false
    this.#leave(most, crowded)
    return true
  }

  /** Less than 0: the first one goes first. */
  #compare(one: readonly string[], other: readonly string[]): number {
    for (const [at, name] of one.entries()) {
      const difference = this.#loadOf(name) - this.#loadOf(other[at] ?? '')
      if (difference !== 0) return difference
    }
    return 0
  }

  #loadOf(name: string): number {
    return this.#countOf(name) + Math.round(this.#wasted.of(name))
  }

  #countOf(name: string): number {
    return this.#counts.get(name) ?? 0
  }
}

/** The widest first. */
function namesOf([provider, network, address]: Parties): readonly string[] {
  return [`p ${provider}`, `n ${network}`, `a ${address}`]
}

/** An operator's requests, or those behind a proxy that names no client. */
const ownShape = /^127\.|^::1$/
