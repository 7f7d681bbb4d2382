import type { Clock } from '../actor/clock.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'

/** Prices of one size that are so many times each other contradict each other. Nodes lag by some blocks only. */
const farTimes = 2n
/** The same for two sizes, of which one price is estimated from the other. */
const estimatedTimes = 4n
/** The network takes whole chunks, and some thousand bytes for the transaction itself. */
const [chunkBytes, headerBytes] = [262_144, 3210]
/** A price from before is no measure any more. */
const keptMs = 24 * 3600_000

function areFar(one: bigint, two: bigint, times: bigint): boolean {
  return one > two * times || two > one * times
}

/** How much is paid for: whole chunks on the network; a chain for tests may count bytes. */
function sizesOf(sizeBytes: number): readonly [chunks: bigint, bytes: bigint] {
  return [BigInt(Math.max(1, Math.ceil(sizeBytes / chunkBytes))), BigInt(sizeBytes + headerBytes)]
}

/**
 * Prices of storage that two nodes confirm. The upload service signs and pays what they state, so that one node which lies, or
 * takes one unit for another, could empty its wallet. A node alone decides where no other one answers, and no price is known that
 * it contradicts.
 */
export class AgreedPrices {
  #last: { readonly winston: bigint; readonly sizeBytes: number; readonly atMs: number } | undefined

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {}

  /** `answers`: winston for so many bytes, one of each node that was queried. Refusals: `upstream`. */
  decide(answers: readonly (bigint | Refusal)[], sizeBytes: number): bigint | Refusal {
    const [first] = answers
    if (first === undefined) throw new Error('no node got the request')
    const prices = answers.filter((one): one is bigint => !isRefusal(one)).sort((a, b) => (a < b ? -1 : 1))
    if (prices.length === 0) return first
    const price = this.#oneOf(prices, answers.length, sizeBytes)
    if (price === undefined) {
      const stated = prices.join(', ')
      return refuse('upstream', 'upstream', `nodes contradict each other about the price: ${stated} winston`)
    }
    this.#last = { winston: price, sizeBytes, atMs: this.clock.monotonic() }
    return price
  }

  /** `prices`: from the lowest. Undefined: it is not known. */
  #oneOf(prices: readonly bigint[], queried: number, sizeBytes: number): bigint | undefined {
    const confirmed = prices.filter((price, at) =>
      prices.some((other, place) => place !== at && !areFar(price, other, farTimes)),
    )
    // The lower of two in the middle: a transaction that offers too little is refused, and costs nothing.
    if (confirmed.length > 0) return confirmed[(confirmed.length - 1) >> 1]
    const before = this.#before(sizeBytes)
    if (before !== undefined)
      return prices.find((price) => before.some((estimate) => !areFar(price, estimate, estimatedTimes)))
    return prices.length === 1 && queried <= 2 ? prices[0] : undefined
  }

  /** What the last price says about so many bytes. */
  #before(sizeBytes: number): readonly bigint[] | undefined {
    const last = this.#last
    if (last === undefined || this.clock.monotonic() - last.atMs > keptMs) return undefined
    const [before, now] = [sizesOf(last.sizeBytes), sizesOf(sizeBytes)]
    return now.map((size, at) => (last.winston * size) / (before[at] ?? 1n) || 1n)
  }
}
