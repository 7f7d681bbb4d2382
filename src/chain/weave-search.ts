import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock } from '../actor/clock.js'
import type { Requester } from '../actor/requester.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Block, BlockHash, Chain } from './chain.js'

/** Deeper than any fork: what was learned of such blocks does not change. */
export const settledDepth = 50

/** How long the tip is believed; for an offset beyond it, new data may just have come. */
const tipMs = 1000
const tipBeyondMs = 250

/** Extents remembered, some 100 bytes each: enough that a search in a known region takes two or three questions. */
const extentsMax = 4096
/** Whole blocks remembered; one lists up to 1,000 ids. */
const blocksMax = 32
/** Bisection of 2^30 blocks takes 30 requests, and every second request is a bisection. */
const stepsMax = 64

/** A block's part of the weave: bytes `before` + 1 to `end`, counted from 1. */
interface Extent {
  readonly height: number
  readonly before: number
  readonly end: number
  readonly settled: boolean
}

/** Finds the block that holds a byte of the weave, by bisection over blocks from nodes, whose answers are cached. */
export class WeaveSearch {
  readonly #extents = new BoundedMap<number, Extent>(extentsMax)
  readonly #blocks = new BoundedMap<number, Block>(blocksMax)
  #tip: Block | undefined
  #tipAt = Number.NEGATIVE_INFINITY
  /** `growths` when the tip was requested. */
  #growths = -1
  #asking: Promise<Block | Refusal> | undefined
  #tipHash: BlockHash | undefined

  constructor(
    private readonly chain: Pick<Chain, 'currentBlock' | 'blockByHeight'>,
    private readonly clock: Clock,
    /** Changes when anybody heard that the chain grew: see `Tip`. */
    private readonly growths: () => number = () => 0,
  ) {}

  /**
   * The tip, remembered for a moment. `beyond`: an offset that the caller expects to exist. Where the remembered tip
   * does not reach it, only a tip that was requested after the last report of a longer chain is used.
   */
  async tip(beyond = 0): Promise<Block | Refusal> {
    const known = this.#remembered(beyond)
    if (known !== undefined) return known
    const found = await this.#shared()
    if (isRefusal(found) || beyond <= found.weaveSize || this.#growths === this.growths()) return found
    // That request may have been sent before the chain grew, so another one is made.
    return this.#shared()
  }

  #remembered(beyond: number): Block | undefined {
    const age = this.clock.monotonic() - this.#tipAt
    if (this.#tip === undefined) return undefined
    if (beyond <= this.#tip.weaveSize) return age < tipMs ? this.#tip : undefined
    return age < tipBeyondMs && this.#growths === this.growths() ? this.#tip : undefined
  }

  #shared(): Promise<Block | Refusal> {
    // Shared by all callers, so it ends with the timeouts of the chain's client and not when the first caller leaves.
    this.#asking ??= this.#askTip().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  async #askTip(): Promise<Block | Refusal> {
    const growths = this.growths()
    const tip = await this.chain.currentBlock()
    if (isRefusal(tip)) return tip
    this.#growths = growths
    if (tip.hash !== this.#tipHash) this.#forgetUnsettled()
    this.#tipHash = tip.hash
    this.#tip = tip
    this.#tipAt = this.clock.monotonic()
    this.#learn(tip, tip.height)
    return tip
  }

  /**
   * The block that holds weave byte `offset` (from 1). `unknown`: beyond the weave. `upstream`: nodes lack a block in between,
   * or their blocks contradict each other.
   */
  async find(offset: number, requester?: Requester): Promise<Block | Refusal> {
    const tip = await this.tip(offset)
    if (isRefusal(tip)) return tip
    if (offset > tip.weaveSize) return refuse('unknown', 'client', 'beyond the end of the weave')
    let low: Extent = { height: -1, before: 0, end: 0, settled: true }
    let high = extentOf(tip, tip.height)
    for (const extent of this.#extents.values()) {
      if (extent.height > tip.height) continue
      if (extent.end < offset) low = extent.height > low.height ? extent : low
      else high = extent.height < high.height ? extent : high
    }
    for (let step = 0; step < stepsMax; step += 1) {
      if (high.before < offset) return this.#block(high.height, tip.height, requester)
      if (high.height - low.height <= 1) return this.#contradiction()
      const block = await this.#block(guess(low, high, offset, step), tip.height, requester)
      if (isRefusal(block)) return block
      const extent = extentOf(block, tip.height)
      if (extent.before < low.end || extent.end > high.before) return this.#contradiction()
      if (extent.end < offset) low = extent
      else high = extent
    }
    return this.#contradiction()
  }

  async #block(height: number, tip: number, requester?: Requester): Promise<Block | Refusal> {
    const known = this.#blocks.get(height)
    if (known !== undefined) return known
    if (this.#tip?.height === height) return this.#tip
    const block = await this.chain.blockByHeight(height, requester)
    if (isRefusal(block)) {
      const { refused, fault } = block
      return refused === 'unknown' ? refuse('upstream', fault, `no node has block ${height}`) : block
    }
    this.#learn(block, tip)
    this.#blocks.set(height, block)
    return block
  }

  #learn(block: Block, tip: number): void {
    this.#extents.set(block.height, extentOf(block, tip))
  }

  /** A fork, or a node that gives false answers: everything that was remembered is dropped. */
  #contradiction(): Refusal {
    this.#extents.clear()
    this.#blocks.clear()
    return refuse('upstream', 'upstream', 'the nodes do not agree on the sizes of blocks')
  }

  #forgetUnsettled(): void {
    for (const [height, { settled }] of this.#extents) {
      if (settled) continue
      this.#extents.delete(height)
      this.#blocks.delete(height)
    }
  }
}

function extentOf({ height, weaveSize, blockSize }: Block, tip: number): Extent {
  return { height, before: weaveSize - blockSize, end: weaveSize, settled: tip - height > settledDepth }
}

/** A height between the two: where the offset would lie if blocks were of equal size, and every other time the middle. */
function guess(low: Extent, high: Extent, offset: number, step: number): number {
  const heights = high.height - low.height
  const share = step % 2 === 0 ? (offset - low.end) / (high.before - low.end) : 0.5
  const at = low.height + Math.round(share * heights)
  return Math.min(high.height - 1, Math.max(low.height + 1, at))
}
