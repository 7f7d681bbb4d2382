import type { Clock } from '../actor/clock.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'

/** Prices of one size contradict each other where one is more than 6/5 of the other. Nodes lag by some blocks only. */
const [nearOver, nearUnder] = [6n, 5n]
/** A price that no other node confirms may be so many times the one to expect, or so small a part of it. */
const expectedTimes = 2n
/** The network takes whole chunks, and some thousand bytes for the transaction itself. */
const [chunkBytes, headerBytes] = [262_144, 3210]
/** A price from before is no measure any more. */
const keptMs = 24 * 3600_000

function chunksOf(sizeBytes: number): number {
  return Math.max(1, Math.ceil(sizeBytes / chunkBytes))
}

/** Sizes of one class have at most twice as many chunks as each other. */
function classOf(sizeBytes: number): number {
  return Math.floor(Math.log2(chunksOf(sizeBytes)))
}

function areNear(one: bigint, two: bigint): boolean {
  return one * nearUnder <= two * nearOver && two * nearUnder <= one * nearOver
}

/** Those that another one confirms. */
function confirmedOf(prices: readonly bigint[]): readonly bigint[] {
  return prices.filter((price, at) => prices.some((other, place) => place !== at && areNear(price, other)))
}

/** Whether two of the answers confirm each other: no other one changes that. */
export function areConfirmed(answers: readonly (bigint | Refusal)[]): boolean {
  return confirmedOf(answers.filter((one): one is bigint => !isRefusal(one))).length > 0
}

interface Range {
  readonly low: bigint
  readonly high: bigint
}

interface ConfirmedPrice {
  readonly winston: bigint
  readonly sizeBytes: number
  /** Monotonic. */
  readonly atMs: number
}

/** What so many bytes cost by the price of others: the network charges whole chunks. Of one chunk a chain may charge a part. */
function expectedPrice({ winston, sizeBytes: before }: ConfirmedPrice, sizeBytes: number): Range {
  const byChunks = (winston * BigInt(chunksOf(sizeBytes))) / BigInt(chunksOf(before))
  if (Math.max(before, sizeBytes) > chunkBytes) return { low: byChunks, high: byChunks }
  const byBytes = (winston * BigInt(sizeBytes + headerBytes)) / BigInt(before + headerBytes)
  return byBytes < byChunks ? { low: byBytes, high: byChunks } : { low: byChunks, high: byBytes }
}

/**
 * Prices of storage that two nodes confirm. The upload service signs and pays what they state, and credits are sold by it: one
 * node which lies, or takes one unit for another, could empty its wallet. Where two confirmed a price lately, no other one counts
 * that contradicts it. Where none is known, a node alone decides while at most one other is queried and does not answer.
 */
export class AgreedPrices {
  /** The last price that two nodes confirmed, by class of size: what one node states alone never becomes a measure. */
  readonly #confirmed = new Map<number, ConfirmedPrice>()

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {}

  /** `answers`: winston for so many bytes, one of each node that was queried. Refusals: `upstream`. */
  decide(answers: readonly (bigint | Refusal)[], sizeBytes: number): bigint | Refusal {
    const [first] = answers
    if (first === undefined) throw new Error('no node got the request')
    const prices = answers.filter((one): one is bigint => !isRefusal(one)).sort((a, b) => (a < b ? -1 : 1))
    if (prices.length === 0) return first
    const price = this.#twice(prices, sizeBytes) ?? this.#once(prices, answers.length, sizeBytes)
    if (price !== undefined) return price
    const stated = `${prices.join(', ')} winston for ${sizeBytes} bytes`
    return refuse('upstream', 'upstream', `no two nodes confirm a price: ${stated}`)
  }

  /** What two nodes state. `prices`: from the lowest. */
  #twice(prices: readonly bigint[], sizeBytes: number): bigint | undefined {
    const confirmed = confirmedOf(prices)
    // The higher of two: one node can add a fifth at most, while what offers too little is never mined.
    const winston = confirmed[confirmed.length >> 1]
    if (winston !== undefined)
      this.#confirmed.set(classOf(sizeBytes), { winston, sizeBytes, atMs: this.clock.monotonic() })
    return winston
  }

  /** What one node states, by what two confirmed lately. */
  #once(prices: readonly bigint[], queried: number, sizeBytes: number): bigint | undefined {
    const measure = this.#nearest(sizeBytes)
    if (measure === undefined) return prices.length === 1 && queried <= 2 ? prices[0] : undefined
    const { low, high } = expectedPrice(measure, sizeBytes)
    const expected = prices.filter((one) => one * expectedTimes >= low && one <= high * expectedTimes)
    return expected.length === 1 ? expected[0] : undefined
  }

  /** The confirmed price of the size that is next to this one. */
  #nearest(sizeBytes: number): ConfirmedPrice | undefined {
    const oldestMs = this.clock.monotonic() - keptMs
    for (const [size, { atMs }] of this.#confirmed) if (atMs < oldestMs) this.#confirmed.delete(size)
    const distance = (one: ConfirmedPrice): number => Math.abs(classOf(one.sizeBytes) - classOf(sizeBytes))
    return [...this.#confirmed.values()].sort((a, b) => distance(a) - distance(b))[0]
  }
}
