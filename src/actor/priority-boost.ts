import { readFileSync } from 'node:fs'
import type { Policy } from '../../native/schedule/schedule.js'
import type { Clock, Timer } from './clock.js'
import { ownIdleThreads } from './idle-share.js'

/** A thread of policy `idle` that somebody may wait for. */
export interface BoostedThread {
  readonly thread: number
  /** Whether somebody waits for it now. */
  isWanted(): boolean
  /** Calls `act` when somebody begins to wait for it, at once where somebody does; in place of an earlier `act`. */
  whenWanted(act: () => void): void
}

/** Reads the processor time of threads, and sets their policy. */
export interface ThreadControl {
  /** Processor time of a thread in nanoseconds; undefined where it cannot be read. */
  ranNs(thread: number): number | undefined
  put(thread: number, policy: Policy): string | undefined
}

/** Between two looks. */
const lookMs = 100
/** A thread that is wanted starves where it had less than this share of the time between two looks. */
const shareMin = 0.1
/** Looks without anybody who waits, after which nobody looks until somebody does. */
const quietLooks = 10
/** Looks for which a thread keeps the normal policy after it starved. */
const fedLooks = 5

interface Watched {
  /** Its processor time at the last look, where it was wanted then. */
  before: number | undefined
  fedLooks: number
}

/**
 * Threads of policy SCHED_IDLE are preempted at once, and get 0.3 % of a processor while others use all of them. A thread with
 * waiting work that got almost nothing runs under the normal policy for half a second, with the share of its nice value. Then it
 * becomes idle again. Only for threads that can leave SCHED_IDLE (`mayComeBack`).
 */
export class PriorityBoost {
  readonly #threads: readonly (readonly [BoostedThread, Watched])[]

  constructor(
    threads: readonly BoostedThread[],
    private readonly control: ThreadControl,
  ) {
    this.#threads = threads.map((boosted) => [boosted, { before: undefined, fedLooks: 0 }])
  }

  /** Looks ten times a second while somebody waits, until the timer is cancelled. */
  keep(clock: Clock): Timer {
    let timer: Timer | undefined
    let quiet = 0
    let isOver = false
    const begin = (): void => {
      if (isOver || timer !== undefined) return
      quiet = 0
      timer = clock.every(lookMs, turn)
    }
    const turn = (): void => {
      quiet = this.look() ? 0 : quiet + 1
      if (quiet < quietLooks) return
      timer?.cancel()
      timer = undefined
      listen()
    }
    const listen = (): void => {
      for (const [boosted] of this.#threads) boosted.whenWanted(begin)
    }
    listen()
    return {
      cancel() {
        isOver = true
        timer?.cancel()
      },
    }
  }

  /** Raises threads that starve. True: somebody waits for one, or one is raised. */
  look(): boolean {
    let isBusy = false
    for (const [boosted, watched] of this.#threads) {
      const isFed = watched.fedLooks > 0
      const isWanted = !isFed && boosted.isWanted()
      if (isFed) this.#fed(boosted, watched)
      else if (isWanted) this.#wanted(boosted, watched)
      else watched.before = undefined
      isBusy ||= isFed || isWanted
    }
    return isBusy
  }

  #fed({ thread }: BoostedThread, watched: Watched): void {
    watched.fedLooks -= 1
    if (watched.fedLooks === 0) this.control.put(thread, 'idle')
  }

  #wanted({ thread }: BoostedThread, watched: Watched): void {
    const { before } = watched
    const ran = this.control.ranNs(thread)
    watched.before = ran
    if (before === undefined || ran === undefined || ran - before >= lookMs * 1e6 * shareMin) return
    watched.before = undefined
    if (this.control.put(thread, 'other') === undefined) watched.fedLooks = fedLooks
  }
}

/** The threads of this process. */
export const ownThreadControl: ThreadControl = {
  ranNs: (thread) => {
    try {
      return Number(readFileSync(`/proc/self/task/${thread}/schedstat`, 'utf8').split(' ')[0])
    } catch {
      return undefined // it ended, or this kernel keeps no account
    }
  },
  put: ownIdleThreads.put,
}
