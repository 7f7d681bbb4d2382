import { readFileSync } from 'node:fs'
import type { Clock, Timer } from './clock.js'
import { type Heartbeats, isHand } from './heartbeats.js'

/** State of a thread as the kernel reports it. */
export interface Account {
  /** A letter: R runs or could run, S sleeps, D waits for a disk, others are rare. */
  readonly state: string
  /** Processor time that it has had, milliseconds. */
  readonly cpuMs: number
}

/**
 * Why a thread sends no heartbeat. `spins`: it used half of the allowed time as processor time without returning to
 * its loop, and still uses some. `sleeps`: it waits in one call that does not return, and used no processor time for
 * the allowed time. `disk`: the same, and the kernel says that it waits for a disk. A thread that is ready to run but
 * gets no processor is not at fault, and is never reported.
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
   * Called when a thread is silent for too long, and again at each look while it stays silent. `isFirst` is true for
   * the first call, and again where a thread that waited for a disk is silent for another cause now, because that
   * needs another reaction.
   */
  readonly onSilent: (silence: Silence, isFirst: boolean) => void
  /** Called when a thread that was reported sends a heartbeat again. */
  readonly onHeard: (name: string) => void
  /** The account of a thread by the kernel's number; undefined where there is none. */
  readonly account?: (thread: number) => Account | undefined
}

/** Tick of the kernel's clock for processor time (USER_HZ): 100 a second on all machines that this runs on. */
const tickMs = 10

interface Watched {
  count: number
  silentMs: number
  /** Processor time when the first heartbeat was missed; undefined: none was. */
  cpuMs: number | undefined
  /** Processor time at the last look, and for how long it has not grown. */
  lastCpuMs: number
  restMs: number
  namedFor: Cause | undefined
}

/**
 * Watches the heartbeats of all threads. Time in which the watching thread itself was late (a busy or suspended machine, a
 * debugger) does not count: only intervals between punctual checks count as silence.
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
      const watched = this.#watched.get(slot)
      if (watched?.count !== count) {
        // The kernel's account of a thread costs five calls: it is read of a silent one only.
        if (watched?.namedFor !== undefined) this.options.onHeard(name)
        this.#watched.set(slot, {
          count,
          silentMs: 0,
          cpuMs: undefined,
          lastCpuMs: 0,
          restMs: 0,
          namedFor: undefined,
        })
        there.add(slot)
        continue
      }
      const found = account(thread)
      if (found === undefined) {
        // The thread was terminated, so it did not free its slot.
        this.heartbeats.free(slot)
        continue
      }
      there.add(slot)
      watched.silentMs = isLate ? 0 : watched.silentMs + passedMs
      watched.cpuMs = isLate ? found.cpuMs : (watched.cpuMs ?? found.cpuMs)
      watched.restMs = isLate || found.cpuMs > watched.lastCpuMs ? 0 : watched.restMs + passedMs
      watched.lastCpuMs = found.cpuMs
      if (!isLate) this.#judge(name, watched, found)
    }
    for (const slot of this.#watched.keys()) if (!there.has(slot)) this.#watched.delete(slot)
  }

  #judge(name: string, watched: Watched, { state, cpuMs }: Account): void {
    const { silentMs } = watched
    if (silentMs < this.options.silentMs) return
    const own = cpuMs - (watched.cpuMs ?? cpuMs)
    const isAtRest = watched.restMs >= this.options.silentMs
    const cause = this.#causeOf(name, state, own, isAtRest)
    if (cause === undefined) return
    const isOther = watched.namedFor === undefined || (watched.namedFor === 'disk' && cause !== 'disk')
    if (isOther) watched.namedFor = cause
    this.options.onSilent({ name, cause, silentMs, cpuMs: own }, isOther)
  }

  #causeOf(name: string, state: string, cpuMs: number, isAtRest: boolean): Cause | undefined {
    if (!isAtRest && cpuMs >= this.options.silentMs / 2) return 'spins'
    // A thread that uses some processor time is not stuck in one call: it wakes now and then, and waits for a
    // processor.
    const isAwake = !isAtRest && cpuMs > tickMs
    if (state === 'R' || isAwake || isHand(name)) return undefined
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
