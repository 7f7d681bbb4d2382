import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { type Policy, policyOf, setPolicy } from '../../native/schedule/schedule.js'
import type { Clock, Timer } from './clock.js'
import type { Log } from './log.js'

/** What a thread had of the processors since it began, nanoseconds. */
export interface Had {
  readonly thread: number
  readonly ranNs: number
  /** It could have run, and others did. */
  readonly waitedNs: number
}

/** The threads that a ration is for, and how they are told; of this process, or of a test. */
export interface IdleThreads {
  /** Those of policy `idle`. */
  look(): readonly Had[]
  /** The reason where it was refused. */
  put(thread: number, policy: Policy): string | undefined
}

/** Between two looks. */
const lookMs = 10_000
/** So many hungry looks in a row, and as many with a share after them: a minute each. */
const looks = 6

/**
 * Who runs only where no other wants to would get three thousandths of a processor while requests take all of them, for hours.
 * A thread that got next to nothing for a minute gets what its nice value gives it (a tenth) for the next one, then stands back
 * again. It takes the privilege to come back from SCHED_IDLE; without it the log says so, once.
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

  /** Those that stood ready for at least half of the time since the last look, and ran for less than a twentieth of that. */
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
    // What was in between is not their hunger.
    this.#before.clear()
    if (reason === undefined) {
      this.log.info(
        { threads: hungry.length },
        'requests take every processor: the index gets a share for a minute',
      )
      return
    }
    this.#isOver = this.#fed.length === 0
    const say =
      'requests take every processor: the index grows at a crawl; fewer edge threads would leave it one'
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
      return [] // no descriptor is left, or there is no /proc: nobody is hungry that nobody sees
    }
    return threads.filter((name) => policyOf(Number(name)) === 'idle').flatMap(hadBy)
  },
  // The number of one that ended may be another process's by now.
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
