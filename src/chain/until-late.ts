import type { Clock } from '../actor/clock.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { orLate } from '../http/sender-pace.js'

/** Runs `act` with a signal that fires after `ms`; resolves with `late` then, whatever `act` does. */
export async function untilLate<T>(
  clock: Clock,
  ms: number,
  act: (signal: AbortSignal) => Promise<T | Refusal>,
): Promise<T | Refusal> {
  const end = new AbortController()
  const late = refuse('late', 'upstream', `no answer within ${ms} ms`)
  try {
    return await orLate(act(end.signal), ms, late, clock)
  } finally {
    end.abort()
  }
}
