import type { Clock } from '../actor/clock.js'
import { type Refusal, refuse } from '../format/refusal.js'

/** Runs `act` with a signal that fires after `ms`; resolves with `late` then, whatever `act` does. */
export async function untilLate<T>(
  clock: Clock,
  ms: number,
  act: (signal: AbortSignal) => Promise<T | Refusal>,
): Promise<T | Refusal> {
  const end = new AbortController()
  const timer = clock.after(ms, () => end.abort())
  const late = new Promise<Refusal>((resolve) => {
    const say = (): void => resolve(refuse('late', 'upstream', `no answer within ${ms} ms`))
    end.signal.addEventListener('abort', say, { once: true })
  })
  try {
    return await Promise.race([act(end.signal), late])
  } finally {
    timer.cancel()
    end.abort()
  }
}
