import type { Clock } from '../actor/clock.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { BlockHash, ChainTip, KnownHeight } from './chain.js'

/** Nodes hear of a block some seconds, and so some blocks at most, after each other. */
const apartMax = 10
/** A fork is not deeper than so many blocks, and anchors hold for as many. */
const forkBlocks = 50
/** Blocks come each two minutes: in one minute never more than one for long. */
const blockMs = 60_000

/** What one node states of the end of its chain. */
export interface StatedTip extends ChainTip {
  /** Height of a block as the same node has it. */
  readonly heightOf: (block: BlockHash) => Promise<number | Refusal>
}

function inOrder(heights: readonly (number | Refusal)[]): number[] {
  return heights.filter((one): one is number => !isRefusal(one)).sort((a, b) => a - b)
}

/** The heights of most of so many nodes, where these are near each other; from the lowest. */
function mostOf(heights: readonly number[], queried: number): readonly number[] | undefined {
  const groups = heights.map((low, at) => heights.slice(at).filter((one) => one - low <= apartMax))
  return groups.find((group) => group.length * 2 > queried)
}

/** Whether most of so many nodes are near each other: what the others state changes nothing. */
export function areHeightsClear(come: readonly (number | Refusal)[], queried: number): boolean {
  return mostOf(inOrder(come), queried) !== undefined
}

/** The same of tips. */
export function areTipsClear(come: readonly (StatedTip | Refusal)[], queried: number): boolean {
  return areHeightsClear(
    come.map((one) => (isRefusal(one) ? one : one.height)),
    queried,
  )
}

/**
 * Where the chain ends, by several nodes. What most of those that are configured state counts. Where fewer answer, or contradict
 * each other, only that counts which can follow from what most stated before: one node that lies, or stands still, decides
 * nothing while the others do not answer.
 */
export class AgreedTips {
  /** What most stated last; monotonic time. */
  #agreed: { readonly height: number; readonly atMs: number } | undefined
  /** The last anchor that was given though another node contradicted its height. */
  #lone: BlockHash | undefined
  /** Nodes have refused the higher of two that contradict each other. */
  #isLower = false

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {}

  /**
   * The height that most of the `queried` nodes have reached: among these the middle one, of two the lower. Where nothing was
   * known before, of two that contradict each other the lower counts; else the higher that is possible. `before`: what an earlier
   * run of the program knew. A refusal where too few answer, or none states what is possible.
   */
  height(stated: readonly (number | Refusal)[], queried: number, before?: KnownHeight): number | Refusal {
    if (before !== undefined)
      this.#agreed ??= { height: before.height, atMs: this.clock.monotonic() - before.ageMs }
    const heights = inOrder(stated)
    const most = this.#most(heights, queried)
    if (most !== undefined) return most
    const possible = heights.filter((one) => this.#isPossible(one))
    const height = possible[this.#agreed === undefined ? (possible.length - 1) >> 1 : possible.length >> 1]
    if (height !== undefined && heights.length * 2 >= stated.length) return height
    return contradiction(stated, heights)
  }

  /**
   * An anchor, with a height that the chain has reached: of a node that is near most others. Where two contradict each other, the
   * lower one mostly stands still, and its anchor is too old for all others: so it is the higher one's, if that is possible, and
   * the lower one's after nodes have refused that (`refused`). A refusal where no node states what is possible.
   */
  async tip(stated: readonly (StatedTip | Refusal)[], queried: number): Promise<ChainTip | Refusal> {
    const tips = stated
      .filter((one): one is StatedTip => !isRefusal(one))
      .sort((one, other) => other.height - one.height)
    const heights = inOrder(tips.map(({ height }) => height))
    const most = this.#most(heights, queried)
    if (most !== undefined) return bestOf(tips.filter(({ height }) => Math.abs(height - most) <= apartMax))
    const possible = tips.filter(({ height }) => this.#isPossible(height))
    const [first, second] = possible.length > 2 ? possible.slice(1) : possible
    if (first === undefined || heights.length * 2 < stated.length) return contradiction(stated, heights)
    if (second === undefined) return bestOf([first])
    if (first.height - second.height <= apartMax) return bestOf([first, second])
    const confirmed = await second.heightOf(first.anchor)
    if (!isRefusal(confirmed)) return { anchor: first.anchor, height: Math.max(second.height, confirmed) }
    const { anchor, height } = this.#isLower ? second : first
    this.#lone = anchor
    return { anchor, height }
  }

  /** All nodes have refused a transaction with this anchor. */
  refused(anchor: unknown): void {
    if (this.#lone === undefined || anchor !== this.#lone) return
    this.#lone = undefined
    this.#isLower = !this.#isLower
  }

  #most(heights: readonly number[], queried: number): number | undefined {
    const most = mostOf(heights, queried)
    const height = most?.[(most.length - 1) >> 1]
    if (height !== undefined) this.#agreed = { height, atMs: this.clock.monotonic() }
    return height
  }

  #isPossible(height: number): boolean {
    if (this.#agreed === undefined) return true
    const blocks = (this.clock.monotonic() - this.#agreed.atMs) / blockMs + apartMax
    return height >= this.#agreed.height - forkBlocks && height <= this.#agreed.height + blocks
  }
}

/** The anchor that most of them give, with the highest of their heights. `tips`: from the highest, at least one. */
function bestOf(tips: readonly StatedTip[]): ChainTip {
  const votes = ({ anchor }: StatedTip): number => tips.filter((other) => other.anchor === anchor).length
  const [best] = [...tips].sort((one, other) => votes(other) - votes(one)) as [StatedTip]
  return { anchor: best.anchor, height: best.height }
}

function contradiction(stated: readonly unknown[], heights: readonly number[]): Refusal {
  const failed = stated.find(isRefusal)
  if (failed !== undefined && heights.length === 0) return failed
  const text = heights.length === 0 ? 'none' : heights.join(', ')
  return refuse('upstream', 'upstream', `no two nodes confirm a height of the chain: ${text}`)
}
