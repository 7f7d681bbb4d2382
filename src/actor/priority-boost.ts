import { readFileSync } from 'node:fs'
import type { Policy } from '../../native/schedule/schedule.js'
import type { Clock, Timer } from './clock.js'
import { ownIdleThreads } from './idle-share.js'

/** A thread of policy `idle` that somebody may wait for. */
export interface Hand {
  readonly thread: number
  /** Whether somebody waits for it now. */
  isWanted(): boolean
}

/** How threads are seen and told. */
export interface ThreadControl {
  /** Nanoseconds that a thread has had of the processors; undefined where that cannot be seen. */
  ranNs(thread: number): number | undefined
  put(thread: number, policy: Policy): string | undefined
}

/** Between two looks. */
const lookMs = 100
/** A thread that is wanted and had less than this share of the time between two looks starves. */
const shareMin = 0.1
/** For so many looks it has the share that its nice value gives it. */
const fedLooks = 5

interface Watched {
  /** What it had at the look before, where it was wanted then. */
  before: number | undefined
  fedLooks: number
}

/**
 * Threads that run only where no other wants to are preempted at once, and would get three thousandths of a processor while
 * others take all of them. One that somebody waits for, and that got next to nothing, has the share of its nice value for half a
 * second, then steps back again. Only for threads that may come back (`mayComeBack`).
 */
export class PriorityBoost {
  readonly #hands: readonly (readonly [Hand, Watched])[]

  constructor(
    hands: readonly Hand[],
    private readonly control: ThreadControl,
  ) {
    this.#hands = hands.map((hand) => [hand, { before: undefined, fedLooks: 0 }])
  }

  /** Looks ten times a second, until the timer is cancelled. */
  keep(clock: Clock): Timer {
    return clock.every(lookMs, () => this.look())
  }

  look(): void {
    for (const [hand, watched] of this.#hands) {
      if (watched.fedLooks > 0) this.#fed(hand, watched)
      else if (hand.isWanted()) this.#wanted(hand, watched)
      else watched.before = undefined
    }
  }

  #fed({ thread }: Hand, watched: Watched): void {
    watched.fedLooks -= 1
    if (watched.fedLooks === 0) this.control.put(thread, 'idle')
  }

  #wanted({ thread }: Hand, watched: Watched): void {
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
