import type { BundleSummary } from './bundle-records.js'
import { unseenMaxMs } from './read-back.js'

/** Longest pause until a failed step of a bundle is tried again. */
export const againMaxMs = 300_000

/**
 * Whether something is to be done with a bundle now. What is due later than any pause lasts was put off before the clock was set
 * back; but a bundle that is permanent is due when its bytes may go, and they may stay for longer. `lookMs`: between two looks at
 * a bundle that is well.
 */
export function isStepDue(bundle: BundleSummary, nowMs: number, lookMs: number): boolean {
  const leftMs = bundle.dueMs - nowMs
  return leftMs <= 0 || (bundle.state !== 'permanent' && leftMs > longestMs(bundle, lookMs))
}

function longestMs({ attempts, unseen, unshown }: BundleSummary, lookMs: number): number {
  if ((unshown ?? unseen) !== undefined) return unseenMaxMs
  return attempts === 0 ? lookMs : againMaxMs
}

/** Its bytes are being sent; others wait for blocks. */
export function isSending({ state }: Pick<BundleSummary, 'state'>): boolean {
  return state === 'packed' || state === 'posted'
}

/** It is deep in the chain, nobody shows its data, and that is sent again. */
export function isResending({ state, unshown, unseen }: BundleSummary): boolean {
  return state === 'posted' && (unshown ?? unseen) !== undefined
}

/** The same, and it is in no block yet, as far as is known. */
export function isFirstSending(bundle: Pick<BundleSummary, 'state' | 'height'>): boolean {
  return isSending(bundle) && bundle.height === undefined
}
