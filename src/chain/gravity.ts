import type { Refusal } from '../format/refusal.js'
import { isPending } from './passing.js'

/**
 * Pause before nodes that all had a passing failure are queried again; doubles each time. Longer than it takes to
 * notice a dropped connection.
 */
export const againMs = 100

/**
 * Refusals from worst to most harmless: when no node could answer, the worst one is returned; so `unknown` is
 * returned only where all nodes stated so.
 */
const gravity: readonly Refusal['refused'][] = [
  'forged',
  'too-large',
  'upstream',
  'late',
  'unknown',
  // What was posted is wrong only where no node says anything else: one that lags refuses what others take.
  'malformed',
]

/** The refusal that says more of two; of two `unknown`, that of a node which has it in no block yet. */
export function worse(worst: Refusal | undefined, refusal: Refusal): Refusal {
  if (worst === undefined) return refusal
  const isGraver = gravity.indexOf(refusal.refused) < gravity.indexOf(worst.refused)
  return isGraver || (worst.refused === refusal.refused && isPending(refusal)) ? refusal : worst
}
