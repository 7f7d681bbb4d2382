import type { VerifierOptions } from '../source/source-defaults.js'
import type { Undecided } from './evidence.js'

/** Pause before the next request to nodes that do not answer; the verifier itself waits longer where none does. */
const awayMs = 5000

/**
 * How long a root is left alone after a look that left something to prove: doubled with each look where somebody named the root,
 * so that it is looked at some time after its block; far longer where nobody did and no node knows a transaction of this id,
 * which is so for every data item. `counts`: it was an answer.
 */
export function pauseAfter(
  because: Undecided['because'] | 'other',
  attempts: number,
  isLed: boolean,
  { retryMs, retryMaxMs, loneMs, loneMaxMs }: VerifierOptions,
): { readonly pauseMs: number; readonly counts: boolean } {
  if (because === 'away') return { pauseMs: awayMs, counts: false }
  if (because === 'absent' && !isLed)
    return { pauseMs: Math.min(loneMs * 4 ** Math.min(attempts, 20), loneMaxMs), counts: true }
  return { pauseMs: Math.min(retryMs * 2 ** Math.min(attempts, 40), retryMaxMs), counts: true }
}
