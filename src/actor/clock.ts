// The global of the same name goes through a getter at each use.
import { performance } from 'node:perf_hooks'

/** Time as a port, so that decisions take it as a value and tests can turn it by hand. The one place with timers. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds that never go back; only differences mean something. */
  monotonic(): number
  /** Runs `act` once after `ms`; a pending timer does not keep the process alive. */
  after(ms: number, act: () => void): Timer
  /** Runs `act` each `ms`. */
  every(ms: number, act: () => void): Timer
}

export interface Timer {
  cancel(): void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, act) {
    const timer = setTimeout(act, ms)
    timer.unref()
    return { cancel: () => clearTimeout(timer) }
  },
  every(ms, act) {
    const timer = setInterval(act, ms)
    timer.unref()
    return { cancel: () => clearInterval(timer) }
  },
}

/** Resolves after `ms`, and keeps the process alive until then; at once when `signal` aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(finish, ms)
    function finish(): void {
      clearTimeout(timer)
      signal?.removeEventListener('abort', finish)
      resolve()
    }
    if (signal?.aborted === true) finish()
    else signal?.addEventListener('abort', finish)
  })
}
