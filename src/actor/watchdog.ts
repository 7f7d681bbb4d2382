import { readFileSync } from 'node:fs'
import type { Clock, Timer } from './clock.js'
import { type Heartbeats, isHand } from './heartbeats.js'

/** What the kernel says of a thread. */
export interface Account {
  /** A letter: R runs or could run, S sleeps, D waits for a disk, others are rare. */
  readonly state: string
  /** Processor time that it has had, milliseconds. */
  readonly cpuMs: number
}

/**
 * Why a thread is silent. `spins`: it had half of the time allowed as processor time of its own, and came to no end. `sleeps`: it
 * waits within one call that does not come back, and had no processor time at all. `disk`: the same, for a disk. A thread that
 * could run and was not given a processor is not silent by its own fault, and is never named.
 */
export type Cause = 'spins' | 'sleeps' | 'disk'

export interface Silence {
  readonly name: string
  readonly cause: Cause
  readonly silentMs: number
  readonly cpuMs: number
}

export interface WatchdogOptions {
  /** A thread may be silent for so long. */
  readonly silentMs: number
  /**
   * Told once when a thread is silent for too long, and again at each look while it is. What was named to wait for a disk and is
   * silent for another cause now is told of as new: another thing is to be done.
   */
  readonly onSilent: (silence: Silence, isFirst: boolean) => void
  /** Told when a thread that was named is heard from again. */
  readonly onHeard: (name: string) => void
  /** Of a thread by the kernel's number; undefined where there is none. */
  readonly account?: (thread: number) => Account | undefined
}

/** Of the clock by which the kernel keeps account: 100 a second on all machines that this runs on. */
const tickMs = 10

interface Watched {
  count: number
  silentMs: number
  /** Processor time at the last sign of life. */
  cpuMs: number
  namedFor: Cause | undefined
}

/**
 * Looks after the signs of life of all threads. Time that the watching thread was late itself (a busy or suspended machine, a
 * debugger) counts for nobody: silence is the sum of the times between looks that came in time.
 */
export class Watchdog {
  readonly #watched = new Map<number, Watched>()
  readonly #lookMs: number
  #lastMs: number
  #timer: Timer | undefined

  constructor(
    private readonly heartbeats: Heartbeats,
    private readonly clock: Clock,
    private readonly options: WatchdogOptions,
  ) {
    this.#lookMs = Math.min(1000, options.silentMs / 10)
    this.#lastMs = clock.monotonic()
  }

  start(): void {
    this.#lastMs = this.clock.monotonic()
    this.#timer = this.clock.every(this.#lookMs, () => this.look())
  }

  stop(): void {
    this.#timer?.cancel()
  }

  look(): void {
    const now = this.clock.monotonic()
    const passedMs = now - this.#lastMs
    this.#lastMs = now
    const isLate = passedMs > this.options.silentMs / 2
    const account = this.options.account ?? accountOf
    const there = new Set<number>()
    for (const { slot, name, thread, count } of this.heartbeats.read()) {
      const found = account(thread)
      if (found === undefined) {
        // It was ended from outside.
        this.heartbeats.free(slot)
        continue
      }
      there.add(slot)
      const watched = this.#watched.get(slot)
      if (watched === undefined || watched.count !== count || isLate) {
        if (watched?.namedFor !== undefined && watched.count !== count) this.options.onHeard(name)
        const namedFor = watched?.count === count ? watched.namedFor : undefined
        this.#watched.set(slot, { count, silentMs: 0, cpuMs: found.cpuMs, namedFor })
      } else {
        watched.silentMs += passedMs
        this.#judge(name, watched, found)
      }
    }
    for (const slot of this.#watched.keys()) if (!there.has(slot)) this.#watched.delete(slot)
  }

  #judge(name: string, watched: Watched, { state, cpuMs }: Account): void {
    const { silentMs } = watched
    if (silentMs < this.options.silentMs) return
    const own = cpuMs - watched.cpuMs
    const cause = this.#causeOf(name, state, own)
    if (cause === undefined) return
    const isOther = watched.namedFor === undefined || (watched.namedFor === 'disk' && cause !== 'disk')
    if (isOther) watched.namedFor = cause
    this.options.onSilent({ name, cause, silentMs, cpuMs: own }, isOther)
  }

  #causeOf(name: string, state: string, cpuMs: number): Cause | undefined {
    if (cpuMs >= this.options.silentMs / 2) return 'spins'
    // One that had a little is not within one call: it wakes, and waits for its turn.
    if (state === 'R' || cpuMs > tickMs || isHand(name)) return undefined
    return state === 'D' ? 'disk' : 'sleeps'
  }
}

/** proc_pid_stat(5): the state behind the name in parentheses, and user and system time 11 and 12 fields later. */
function accountOf(thread: number): Account | undefined {
  try {
    const text = readFileSync(`/proc/self/task/${thread}/stat`, 'latin1')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0] ?? '', cpuMs: (Number(fields[11]) + Number(fields[12])) * tickMs }
  } catch {
    return undefined // there is no such thread any more
  }
}
