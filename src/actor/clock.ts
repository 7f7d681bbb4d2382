// Imported, because the global `performance` is a getter that runs at each use.
import { performance } from 'node:perf_hooks'

/** The interface to time, so that tests can set it. Timers are used nowhere else. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds of a clock that never goes back; only differences have a meaning. Used for all timeouts and pauses. */
  monotonic(): number
  /** Runs `act` once after `ms`, however large; a pending timer does not keep the process alive. See `delayOf`. */
  after(ms: number, act: () => void): Timer
  /** Runs `act` each `ms`, at most `delayMaxMs`. */
  every(ms: number, act: () => void): Timer
}

export interface Timer {
  cancel(): void
}

/**
 * The longest delay of a timer of Node: a longer one is replaced by 1 ms, so that a loop that waits with it would use
 * a whole processor.
 */
export const delayMaxMs = 2 ** 31 - 1

/**
 * A delay as a timer can take it. Negative: at once. NaN, which only a bug can produce, becomes a second: that does
 * little harm, while a loop without a pause would use a whole processor. Infinite and very large ones stay as they
 * are.
 */
export function delayOf(ms: number): number {
  if (Number.isNaN(ms)) return 1000
  return Math.max(0, ms)
}

/** A timer for any delay; `cancel` may be called at any time. A delay longer than `partMaxMs` is waited for in parts. */
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

/** Periods that are multiples of the first, and of the second. */
const gridMs = [250, 1000] as const

/**
 * The timers of this thread for periods of quarters of a second, behind one timer of Node. They fire at multiples of 250 ms
 * (1000 ms where the period is one) of the thread's clock, so that the thread wakes up once for all of them: each wake-up of an
 * idle processor costs more than most of what is done then.
 */
class Grid {
  readonly #members = new Set<GridTimer>()
  #timer: NodeJS.Timeout | undefined
  #atMs = Number.POSITIVE_INFINITY

  add(member: GridTimer): void {
    this.#members.add(member)
    if (member.dueMs < this.#atMs) this.#arm()
  }

  drop(member: GridTimer): void {
    this.#members.delete(member)
  }

  #arm(): void {
    clearTimeout(this.#timer)
    this.#atMs = Number.POSITIVE_INFINITY
    for (const { dueMs } of this.#members) this.#atMs = Math.min(this.#atMs, dueMs)
    if (this.#atMs === Number.POSITIVE_INFINITY) return
    this.#timer = setTimeout(() => this.#fire(), Math.max(1, Math.ceil(this.#atMs - performance.now())))
    this.#timer.unref()
  }

  #fire(): void {
    const nowMs = performance.now()
    const due = [...this.#members].filter(({ dueMs }) => dueMs <= nowMs)
    for (const member of due) member.pass(nowMs)
    this.#arm()
    for (const member of due) {
      // One that was cancelled by another one a moment ago is not run any more.
      if (this.#members.has(member)) run(member.act)
    }
  }
}

/** What it throws does not keep others from their turn. */
function run(act: () => void): void {
  try {
    act()
  } catch (error) {
    setImmediate(() => {
      throw error
    })
  }
}

const grid = new Grid()

/** A timer of the grid. The first period may be longer by one step of it. Periods that were missed are left out. */
class GridTimer implements Timer {
  dueMs: number

  constructor(
    private readonly ms: number,
    readonly act: () => void,
  ) {
    const [quarter, second] = gridMs
    const step = ms % second === 0 ? second : quarter
    this.dueMs = Math.ceil((performance.now() + ms) / step) * step
    grid.add(this)
  }

  cancel(): void {
    grid.drop(this)
  }

  /** It fires at `nowMs`: when it does next. */
  pass(nowMs: number): void {
    this.dueMs += this.ms * Math.max(1, Math.ceil((nowMs - this.dueMs) / this.ms))
  }
}

/**
 * Milliseconds to a second of this thread's grid: `ms`, and up to a second more. For work that is repeated while there is nothing
 * to do, so that it wakes the thread together with other timers. What shall come each second takes a little less as its period.
 */
export function toGrid(ms: number): number {
  const nowMs = performance.now()
  return Math.ceil((nowMs + ms) / gridMs[1]) * gridMs[1] - nowMs
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, act) => new LongTimer(ms, false, act),
  every(ms, act) {
    if (ms % gridMs[0] === 0 && ms > 0 && ms <= delayMaxMs / 2) return new GridTimer(ms, act)
    const timer = setInterval(act, Math.min(delayOf(ms), delayMaxMs))
    timer.unref()
    return { cancel: () => clearInterval(timer) }
  },
}

/**
 * The time of day as a clock that does not go back. It starts at `floorMs` or later, and advances at least as fast as the
 * monotonic clock, also when the system's clock is set back. For records on disk in the order of time. Whole milliseconds.
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
 * How long ago something was, by the clock that counts more: the monotonic clock stands while the machine is suspended, and the
 * time of day may be set back. For what others may do after some time by their own clocks.
 */
export function elapsing(clock: Pick<Clock, 'now' | 'monotonic'>): () => number {
  const [fromMs, fromMonotonicMs] = [clock.now(), clock.monotonic()]
  return () => Math.max(clock.now() - fromMs, clock.monotonic() - fromMonotonicMs)
}

/**
 * Whether a time of day that was written down lies within `ms` of now. One that lies further ahead was written before
 * the clock was set back: to wait for that time could take years, so it is treated as long past.
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

/** What `work` gives within `ms`, else `late`; the work goes on. Rejects where the work does in that time. */
export async function withinTime<T, Late>(
  clock: Clock,
  ms: number,
  work: Promise<T>,
  late: Late,
): Promise<T | Late> {
  let timer: Timer | undefined
  const patience = new Promise<Late>((resolve) => {
    timer = clock.after(ms, () => resolve(late))
  })
  try {
    return await Promise.race([work, patience])
  } finally {
    timer?.cancel()
  }
}

/** The attempt that is over first, and how; with `ms` undefined where none is within that time. The others go on. */
export function firstOver<T, A extends { readonly over: Promise<T> }>(
  attempts: Iterable<A & { readonly over: Promise<T> }>,
  clock: Pick<Clock, 'after'>,
  ms: number | undefined,
): Promise<{ readonly attempt: A; readonly outcome: T } | undefined> {
  return new Promise((resolve, reject) => {
    const timer = ms === undefined ? undefined : clock.after(ms, () => resolve(undefined))
    for (const attempt of attempts) {
      attempt.over.then(
        (outcome) => {
          timer?.cancel()
          resolve({ attempt, outcome })
        },
        (error: unknown) => {
          timer?.cancel()
          reject(error)
        },
      )
    }
  })
}

/** Whether `work` has ended, well or not, within `ms`. */
export async function endsWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  const patience = new AbortController()
  const ended = work.then(
    () => true,
    () => true,
  )
  const isEnded = await Promise.race([ended, pause(ms, patience.signal).then(() => false)])
  patience.abort()
  return isEnded
}
