import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { BlockHash } from './chain.js'

/** Nodes hear of a block some seconds, and so some blocks at most, after each other. */
const apartMax = 10

function inOrder(heights: readonly (number | Refusal)[]): number[] {
  return heights.filter((one): one is number => !isRefusal(one)).sort((a, b) => a - b)
}

/**
 * The height that most of the nodes which were queried have reached: the middle one, of two the lower. A refusal where too few
 * answer; one of two suffices, as without a height no upload is taken. One of three that lies, or stands still, decides nothing.
 */
export function agreedHeight(stated: readonly (number | Refusal)[]): number | Refusal {
  const [first] = stated
  if (first === undefined) throw new Error('no node got the request')
  const heights = inOrder(stated)
  const middle = heights[(heights.length - 1) >> 1]
  if (middle !== undefined && heights.length * 2 >= stated.length) return middle
  return stated.find(isRefusal) ?? refuse('upstream', 'upstream', 'nodes state no height')
}

/** Whether most of so many nodes are near each other: what the others state changes the height by some blocks at most. */
export function areHeightsClear(come: readonly (number | Refusal)[], queried: number): boolean {
  const heights = inOrder(come)
  const [lowest = 0, highest = 0] = [heights[0], heights.at(-1)]
  return heights.length * 2 > queried && highest - lowest <= apartMax
}

/** What one node states of the end of its chain. */
export interface StatedTip {
  readonly height: number | Refusal
  readonly anchor: BlockHash
}

/**
 * An anchor of a node that is not far from the others: what one that stands still gives is too old for all others. Among these
 * the one that most give. Another refusal where none answers.
 */
export function agreedAnchor(stated: readonly (StatedTip | Refusal)[]): BlockHash | Refusal {
  const [first] = stated
  if (first === undefined) throw new Error('no node got the request')
  const tips = stated.filter((one): one is StatedTip => !isRefusal(one))
  const heights = inOrder(tips.map(({ height }) => height))
  const middle = heights[(heights.length - 1) >> 1]
  const isNear = ({ height }: StatedTip): boolean =>
    middle === undefined || (!isRefusal(height) && Math.abs(height - middle) <= apartMax)
  const near = tips.filter(isNear).map(({ anchor }) => anchor)
  const votes = (one: BlockHash): number => near.filter((other) => other === one).length
  const [best] = [...near].sort((one, other) => votes(other) - votes(one))
  return best ?? stated.find(isRefusal) ?? refuse('upstream', 'upstream', 'no node gives an anchor')
}
