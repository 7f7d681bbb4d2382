import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock } from '../actor/clock.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { BlockHash, ChainTip, KnownHeight } from './chain.js'

/** Nodes hear of a block some seconds, and so some blocks at most, after each other. */
const apartMax = 10
/** A fork is not deeper than so many blocks, and anchors hold for as many. */
const forkBlocks = 50
/** Blocks come each two minutes: in one minute never more than one for long. */
const blockMs = 60_000
/** An earlier run may have taken this from one node alone, so that it bounds less from below: by a day of blocks more. */
const beforeBlocks = 720
/** Older releases did not keep when they knew it: a month bounds the height all the same. */
const beforeMaxMs = 30 * 24 * 3600_000

/** An anchor that another node knows at most so deep is good for long enough. */
const anchorDepthMax = 25
/** A node whose anchor was refused comes last for so long; only of anchors that were given lately is this known. */
const [lastMs, givenMs] = [3_600_000, 1_800_000] as const
/** Anchors are given one after the other: of more, the oldest are forgotten. */
const givenMax = 64

/** What one node states of the end of its chain. */
export interface StatedTip extends ChainTip {
  /** Its name. */
  readonly node: string
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
  #agreed: { readonly height: number; readonly atMs: number; readonly lowest: number } | undefined
  /** Anchors that were given, and the nodes that state them; monotonic time. */
  readonly #given = new BoundedMap<unknown, { readonly nodes: readonly string[]; readonly atMs: number }>(
    givenMax,
  )
  /** When an anchor of a node was refused last. */
  readonly #refusedMs = new Map<string, number>()
  /** How often an anchor was given that no other node knows. */
  #unconfirmed = 0

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {}

  /**
   * The height that most of the `queried` nodes have reached: among these the middle one, of two the lower. Where nothing was
   * known before, of two that contradict each other the lower counts; else the one that is possible and next to what is to be
   * expected. `before`: what an earlier run of the program knew. A refusal where too few answer, or none states what is possible.
   */
  height(stated: readonly (number | Refusal)[], queried: number, before?: KnownHeight): number | Refusal {
    if (before !== undefined) this.#agreed ??= this.#known(before)
    const heights = inOrder(stated)
    const most = this.#most(heights, queried)
    if (most !== undefined) return most
    const possible = heights.filter((one) => this.#isPossible(one))
    const height = this.#next(possible)
    if (height !== undefined && heights.length * 2 >= stated.length) return height
    return contradiction(stated, heights)
  }

  /**
   * An anchor, with a height that the chain has reached: of a node that is near most others. Another node must state the same
   * anchor, or know its block, not far below the end. Where none does, all nodes that were not refused (`refused`) have turns, so
   * that one with a wrong anchor keeps nothing from the chain for long. Of two whose heights contradict each other, the lower one
   * mostly stands still, and has one turn of four. A refusal where no node states what is possible.
   */
  async tip(stated: readonly (StatedTip | Refusal)[], queried: number): Promise<ChainTip | Refusal> {
    const tips = this.#inOrder(stated.filter((one): one is StatedTip => !isRefusal(one)))
    const heights = inOrder(tips.map(({ height }) => height))
    const most = this.#most(heights, queried)
    if (most !== undefined)
      return this.#near(tips.filter(({ height }) => Math.abs(height - most) <= apartMax))
    const possible = tips
      .filter(({ height }) => this.#isPossible(height))
      .sort((one, other) => other.height - one.height)
    const [first, second] = possible.length > 2 ? possible.slice(1) : possible
    if (first === undefined || heights.length * 2 < stated.length) return contradiction(stated, heights)
    if (second === undefined) return this.#give(first, [first])
    if (first.height - second.height <= apartMax) return this.#near(this.#inOrder([first, second]))
    const confirmed = await second.heightOf(first.anchor)
    const isPossible = (height: number): boolean =>
      height >= second.height - forkBlocks && height <= first.height
    if (!isRefusal(confirmed) && isPossible(confirmed) && !this.#isLast(first))
      return this.#give({ ...first, height: Math.max(second.height, confirmed) }, [first])
    return this.#inTurns([first, second], 4)
  }

  /** All nodes have refused a transaction with this anchor: the nodes that stated it come last for an hour. */
  refused(anchor: unknown): void {
    const nowMs = this.clock.monotonic()
    const given = this.#given.get(anchor)
    if (given === undefined || nowMs - given.atMs > givenMs) return
    for (const node of given.nodes) this.#refusedMs.set(node, nowMs)
  }

  /** An anchor of tips whose heights are near each other, in their order. */
  async #near(tips: readonly StatedTip[]): Promise<ChainTip> {
    const voters = tips.map(({ anchor }) => tips.filter((other) => other.anchor === anchor))
    const most = [...voters].sort((one, other) => other.length - one.length)[0] ?? []
    const [voted] = most
    if (voted !== undefined && (most.length > 1 || tips.length === 1)) return this.#give(voted, most)
    for (const tip of tips) if (await isKnown(tip, tips)) return this.#give(tip, [tip])
    return this.#inTurns(tips, 2)
  }

  /** `every`: of so many turns the second one has one. */
  #inTurns(tips: readonly StatedTip[], every: number): ChainTip {
    const left = tips.filter((tip) => !this.#isLast(tip))
    const [first, second] = left.length > 0 ? left : tips
    this.#unconfirmed += 1
    const tip = second !== undefined && this.#unconfirmed % every === 0 ? second : first
    if (tip === undefined) throw new Error('no node states a tip')
    return this.#give(tip, [tip])
  }

  #give({ anchor, height }: ChainTip, of: readonly StatedTip[]): ChainTip {
    this.#given.set(anchor, { nodes: of.map(({ node }) => node), atMs: this.clock.monotonic() })
    return { anchor, height }
  }

  /** From the highest; those whose anchors were refused lately come last. */
  #inOrder(tips: readonly StatedTip[]): StatedTip[] {
    const rank = (tip: StatedTip): number => (this.#isLast(tip) ? 1 : 0)
    return [...tips].sort((one, other) => rank(one) - rank(other) || other.height - one.height)
  }

  #isLast({ node }: StatedTip): boolean {
    const atMs = this.#refusedMs.get(node)
    return atMs !== undefined && this.clock.monotonic() - atMs < lastMs
  }

  #most(heights: readonly number[], queried: number): number | undefined {
    const most = mostOf(heights, queried)
    const height = most?.[(most.length - 1) >> 1]
    if (height !== undefined)
      this.#agreed = { height, atMs: this.clock.monotonic(), lowest: height - forkBlocks }
    return height
  }

  #known({ height, ageMs }: KnownHeight) {
    const atMs = this.clock.monotonic() - Math.min(ageMs, beforeMaxMs)
    return { height, atMs, lowest: height - forkBlocks - beforeBlocks }
  }

  /** One of heights that contradict each other, from the lowest: the others go away from what is to be expected. */
  #next(possible: readonly number[]): number | undefined {
    if (this.#agreed === undefined) return possible[(possible.length - 1) >> 1]
    const expected = this.#agreed.height + (this.clock.monotonic() - this.#agreed.atMs) / (2 * blockMs)
    return [...possible].sort((one, other) => Math.abs(one - expected) - Math.abs(other - expected))[0]
  }

  #isPossible(height: number): boolean {
    if (this.#agreed === undefined) return true
    const blocks = (this.clock.monotonic() - this.#agreed.atMs) / blockMs + apartMax
    return height >= this.#agreed.lowest && height <= this.#agreed.height + blocks
  }
}

/** Whether another one knows the block of the anchor, at a height from which it is good for long enough. */
async function isKnown({ node, anchor, height }: StatedTip, tips: readonly StatedTip[]): Promise<boolean> {
  const others = tips.filter((other) => other.node !== node)
  const heights = await Promise.all(others.map((other) => other.heightOf(anchor)))
  const isGood = (one: number | Refusal): boolean =>
    !isRefusal(one) && one >= height - anchorDepthMax && one <= height + apartMax
  return heights.some(isGood)
}

function contradiction(stated: readonly unknown[], heights: readonly number[]): Refusal {
  const failed = stated.find(isRefusal)
  if (failed !== undefined && heights.length === 0) return failed
  const text = heights.length === 0 ? 'none' : heights.join(', ')
  return refuse('upstream', 'upstream', `no two nodes confirm a height of the chain: ${text}`)
}
