import type { Patience } from '../timing.js'

/** Beyond its patience a reader waits for gateways that send at least so much, in bytes a millisecond. */
const trickleBytesPerMs = 1

/** Whether a body of which `came` bytes came is too slow: silence is not the only way to keep a reader waiting. */
export function isTooSlow(patience: Patience | undefined, patienceMs: number, came: number): boolean {
  return (patience?.waitedMs ?? 0) > patienceMs + came / trickleBytesPerMs
}
