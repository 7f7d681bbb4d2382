import type { BundleSummary } from './bundle-records.js'

/** Longest pause until a failed step of a bundle is tried again. */
export const againMaxMs = 300_000

/**
 * Whether something is to be done with a bundle now. What is due later than any pause lasts was put off before the clock was set
 * back; but a bundle that is permanent is due when its bytes may go, and they may stay for longer. `lookMs`: between two looks at
 * a bundle that is well.
 */
export function isStepDue({ state, attempts, dueMs }: BundleSummary, nowMs: number, lookMs: number): boolean {
  const leftMs = dueMs - nowMs
  return leftMs <= 0 || (state !== 'permanent' && leftMs > (attempts === 0 ? lookMs : againMaxMs))
}
