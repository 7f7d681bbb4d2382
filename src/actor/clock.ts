// The global of the same name goes through a getter at each use.
import { performance } from 'node:perf_hooks'

/** Time as a port, so that decisions take it as a value and tests can turn it by hand. The one place with timers. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds that never go back; only differences mean something. What waits, waits by this one. */
  monotonic(): number
  /** Runs `act` once after `ms`, however large; a pending timer does not keep the process alive. See `delayOf`. */
  after(ms: number, act: () => void): Timer
  /** Runs `act` each `ms`, at most `delayMaxMs`. */
  every(ms: number, act: () => void): Timer
}

export interface Timer {
  cancel(): void
}

/** The longest delay of a timer of Node: for a longer one it takes 1 ms instead, and whatever waits with it spins. */
export const delayMaxMs = 2 ** 31 - 1

/**
 * A delay as a timer can take it. Negative: at once. Not a number: a bug somewhere in an addition; a second later it does little
 * harm, while at once, again and again, it would take a processor. Infinite and very large ones stay as they are.
 */
export function delayOf(ms: number): number {
  if (Number.isNaN(ms)) return 1000
  return Math.max(0, ms)
}

/** A timer for any delay; `cancel` may be called at any time. What lies beyond `partMaxMs` is waited for in parts. */
export class LongTimer implements Timer {
  #timer: NodeJS.Timeout
  #leftMs: number

  constructor(
    ms: number,
    private readonly keepsAlive: boolean,
    private readonly act: () => void,
    private readonly partMaxMs = delayMaxMs,
  ) {
    this.#leftMs = delayOf(ms)
    this.#timer = this.#next()
  }

  cancel(): void {
    clearTimeout(this.#timer)
  }

  #next(): NodeJS.Timeout {
    const partMs = Math.min(this.#leftMs, this.partMaxMs)
    this.#leftMs -= partMs
    const timer = setTimeout(() => {
      if (this.#leftMs > 0) this.#timer = this.#next()
      else this.act()
    }, partMs)
    if (!this.keepsAlive) timer.unref()
    return timer
  }
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, act) => new LongTimer(ms, false, act),
  every(ms, act) {
    const timer = setInterval(act, Math.min(delayOf(ms), delayMaxMs))
    timer.unref()
    return { cancel: () => clearInterval(timer) }
  },
}

/**
 * The time of day as a clock that does not go back: from `floorMs` on at least as fast as time passes, wherever the system's
 * clock is set to meanwhile. For order on disk: what is written later has no lower time. Whole milliseconds.
 */
export function notBefore(clock: Clock, floorMs: number): () => number {
  let highestMs = floorMs
  let atMs = clock.monotonic()
  return () => {
    const monotonicMs = clock.monotonic()
    highestMs = Math.max(clock.now(), highestMs + Math.max(0, monotonicMs - atMs))
    atMs = monotonicMs
    return Math.floor(highestMs)
  }
}

/**
 * Whether a time of day that was written down lies within `ms` of now. One that lies further ahead was written before the clock
 * was set back: to wait until it comes could take years, so it counts as long ago.
 */
export function isWithin(nowMs: number, thenMs: number, ms: number): boolean {
  return Math.abs(nowMs - thenMs) < ms
}

/** Aborts after `ms`, at most `delayMaxMs`; does not keep the process alive. */
export function abortAfter(ms: number): AbortSignal {
  return AbortSignal.timeout(Math.floor(Math.min(delayOf(ms), delayMaxMs)))
}

/** Resolves after `ms`, however large, and keeps the process alive until then; at once when `signal` aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = new LongTimer(ms, true, finish)
    function finish(): void {
      timer.cancel()
      signal?.removeEventListener('abort', finish)
      resolve()
    }
    if (signal?.aborted === true) finish()
    else signal?.addEventListener('abort', finish)
  })
}
