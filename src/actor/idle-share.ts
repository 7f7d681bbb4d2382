import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { type Policy, policyOf, setPolicy } from '../../native/schedule/schedule.js'
import type { Clock, Timer } from './clock.js'
import type { Log } from './log.js'

/** Processor time of a thread since it began, in nanoseconds. */
export interface Had {
  readonly thread: number
  readonly ranNs: number
  /** Time in which it was ready to run but other threads ran. */
  readonly waitedNs: number
}

/** The threads of policy `idle`, and how their policy is set; of this process, or made up by a test. */
export interface IdleThreads {
  /** Those of policy `idle`. */
  look(): readonly Had[]
  /** The reason where it was refused. */
  put(thread: number, policy: Policy): string | undefined
}

/** Between two looks. */
const lookMs = 10_000
/** Looks in a row at which a thread starved before it gets a share, and looks for which it keeps it: a minute each. */
const looks = 6

/**
 * A thread of policy SCHED_IDLE gets 0.3 % of a processor while requests use all of them, possibly for hours. So a thread that
 * got almost nothing for a minute runs under the normal policy for the next minute. Its nice value then gives it a tenth.
 * Afterwards it becomes idle again. Leaving SCHED_IDLE takes a privilege; without it this is logged once, and nothing is done.
 */
export class IdleShare {
  #before = new Map<number, Had>()
  #fed: readonly number[] = []
  #count = 0
  #isOver = false

  constructor(
    private readonly idleThreads: IdleThreads,
    private readonly log: Pick<Log, 'info' | 'warn'>,
  ) {}

  /** Looks each ten seconds, until the timer is cancelled. */
  keep(clock: Clock): Timer {
    return clock.every(lookMs, () => this.look())
  }

  look(): void {
    if (this.#isOver) return
    if (this.#fed.length === 0) {
      this.#feed(this.#hungry())
      return
    }
    this.#count += 1
    if (this.#count < looks) return
    for (const thread of this.#fed) this.idleThreads.put(thread, 'idle')
    this.#fed = []
    this.#count = 0
  }

  /**
   * Threads that starved: ready to run but waiting for at least half of the time since the last look, with less than
   * a twentieth of that as processor time.
   */
  #hungry(): number[] {
    const now = this.idleThreads.look()
    const hungry = now.filter(({ thread, ranNs, waitedNs }) => {
      const before = this.#before.get(thread)
      if (before === undefined) return false
      const waited = waitedNs - before.waitedNs
      return waited > lookMs * 5e5 && (ranNs - before.ranNs) * 20 < waited
    })
    this.#before = new Map(now.map((had) => [had.thread, had]))
    return hungry.map(({ thread }) => thread)
  }

  #feed(hungry: readonly number[]): void {
    this.#count = hungry.length === 0 ? 0 : this.#count + 1
    if (this.#count < looks) return
    this.#count = 0
    const refused = hungry.map((thread) => this.idleThreads.put(thread, 'other'))
    const reason = refused.find((one) => one !== undefined)
    this.#fed = hungry.filter((_, at) => refused[at] === undefined)
    // The minute with a share must not count when the next looks compare.
    this.#before.clear()
    if (reason === undefined) {
      this.log.info(
        { threads: hungry.length },
        'requests use every processor: threads of the index get a share for a minute',
      )
      return
    }
    this.#isOver = this.#fed.length === 0
    const say =
      'requests use every processor, so the index grows very slowly; fewer edge threads would leave a processor to it'
    this.log.warn({ reason }, say)
  }
}

/** The threads of this process. */
export const ownIdleThreads: IdleThreads = {
  look: () => {
    if (process.platform !== 'linux') return []
    let threads: string[]
    try {
      threads = readdirSync('/proc/self/task')
    } catch {
      return [] // no descriptor is left, or there is no /proc: the threads cannot be seen
    }
    return threads.filter((name) => policyOf(Number(name)) === 'idle').flatMap(hadBy)
  },
  // Checked, because the number of a thread that ended may belong to another process by now.
  put: (thread, policy) => (existsSync(`/proc/self/task/${thread}`) ? setPolicy(thread, policy) : undefined),
}

function hadBy(thread: string): Had[] {
  try {
    const [ranNs = 0, waitedNs = 0] = readFileSync(`/proc/self/task/${thread}/schedstat`, 'utf8')
      .split(' ')
      .map(Number)
    return [{ thread: Number(thread), ranNs, waitedNs }]
  } catch {
    return [] // it ended meanwhile, or this kernel keeps no such account
  }
}
