/**
 * What the follower of the chain does next: a pure function of the index, the answers of nodes, and the time. Blocks are only
 * ever put on the block they name as their previous one, so whatever nodes answer, the index is one chain.
 */
export interface BlockName {
  readonly height: number
  /** Its hash, as text. */
  readonly id: string
}

export interface FollowState {
  /** The highest block of the index. */
  readonly top: BlockName | undefined
  /** The tip that a node last gave, and when; undefined: it is requested at once. */
  readonly tip: (BlockName & { readonly statedMs: number; readonly isKnown?: boolean }) | undefined
  /**
   * A search for the last common block: `at` is compared next, `from` is where it began. `isBehind`: `at` is the tip of a node
   * that is far below the index; where it has the same block there, the node has only fewer.
   */
  readonly search: { readonly at: number; readonly from: number; readonly isBehind?: boolean } | undefined
  /** Since when the import is halted because of a fork that is too deep. */
  readonly haltedMs: number | undefined
  /** After a failure: nothing is requested before. */
  readonly notBeforeMs: number
}

/** What is known about the block in question. */
export interface Sight {
  /** The nodes' block behind the top, where it is here. */
  readonly next?: { readonly previous: string | undefined }
  /** Ids of the block at `search.at`; `theirs` only after it was requested. */
  readonly ours?: string | undefined
  readonly theirs?: string
  /** Whether the index has a block right below `search.at`. */
  readonly below?: boolean
}

export interface FollowRules {
  /** First block of an empty index: a height, or so many blocks before the tip. */
  readonly start: { readonly height: number } | { readonly behindTip: number }
  readonly stopHeight: number
  /** Most blocks that a fork may replace. */
  readonly forkDepthMax: number
  /** Between two questions for the tip. */
  readonly pollMs: number
  /** Until a fork that was too deep is looked at again: the node may have been the wrong one. */
  readonly haltedMs: number
}

export type FollowStep =
  /** Ask a node for its tip. */
  | { readonly kind: 'look' }
  /** Get this block; those up to `last` will be wanted soon. */
  | { readonly kind: 'fetch'; readonly height: number; readonly last: number }
  /** Put the block that is at hand on the top. */
  | { readonly kind: 'import' }
  /** Ask which block the nodes have at this height, in a search that began at `from`. */
  | { readonly kind: 'compare'; readonly at: number; readonly from: number; readonly isBehind?: boolean }
  /** The node has our blocks, and fewer: nothing of the index is in doubt. */
  | { readonly kind: 'behind' }
  /** Drop every block from this height on (there may be none) and go on from what is left. */
  | { readonly kind: 'unwind'; readonly fromHeight: number }
  /** Import nothing: the fork replaces more than `depth` blocks. */
  | { readonly kind: 'halt'; readonly depth: number }
  | { readonly kind: 'wait'; readonly untilMs: number }

/** Nodes may lag by so many blocks. */
const behindMax = 5

/** The next step. */
export function nextStep(state: FollowState, sight: Sight, rules: FollowRules, nowMs: number): FollowStep {
  const { top, tip, search } = state
  if (nowMs < state.notBeforeMs) return { kind: 'wait', untilMs: state.notBeforeMs }
  if (search !== undefined) return searching(search, sight, rules)
  if (tip === undefined || nowMs >= tip.statedMs + rules.pollMs) return { kind: 'look' }
  const next = nextHeight(top, tip.height, rules)
  const idle: FollowStep = { kind: 'wait', untilMs: tip.statedMs + rules.pollMs }
  if (state.haltedMs !== undefined) {
    if (top === undefined || nowMs < state.haltedMs + rules.haltedMs) return idle
    return { kind: 'compare', at: top.height, from: top.height }
  }
  if (next > rules.stopHeight) return idle
  if (top !== undefined && tip.height === top.height && tip.id !== top.id) {
    return { kind: 'compare', at: top.height, from: top.height }
  }
  // A tip that was too high once must not stop the index for ever: whose blocks lie above the node's is looked at.
  if (top !== undefined && tip.height < top.height - behindMax && tip.isKnown !== true)
    return { kind: 'compare', at: tip.height, from: top.height, isBehind: true }
  if (next > tip.height) return idle
  if (sight.next === undefined) {
    return { kind: 'fetch', height: next, last: Math.min(tip.height, rules.stopHeight) }
  }
  const follows = top === undefined || next > top.height + 1 || sight.next.previous === top.id
  return follows ? { kind: 'import' } : { kind: 'compare', at: top.height, from: top.height }
}

/** Height of the block that belongs on the top. */
export function nextHeight(top: BlockName | undefined, tipHeight: number, { start }: FollowRules): number {
  const first = 'height' in start ? start.height : Math.max(0, tipHeight - start.behindTip)
  if (top === undefined) return first
  return 'height' in start ? Math.max(top.height + 1, first) : top.height + 1
}

function searching(
  { at, from, isBehind = false }: NonNullable<FollowState['search']>,
  { ours, theirs, below }: Sight,
  { forkDepthMax }: FollowRules,
): FollowStep {
  if (theirs === undefined) return { kind: 'compare', at, from, ...(isBehind ? { isBehind } : {}) }
  if (theirs === ours && isBehind) return { kind: 'behind' }
  if (theirs === ours) return { kind: 'unwind', fromHeight: at + 1 }
  const replaced = from - at + 1
  if (replaced > forkDepthMax) return { kind: 'halt', depth: forkDepthMax }
  // Below the first block of the index there is nothing to compare with.
  return below === true ? { kind: 'compare', at: at - 1, from } : { kind: 'unwind', fromHeight: at }
}
