import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { getPriority, setPriority } from 'node:os'
import { type Policy, setPolicy } from '../../native/schedule/schedule.js'
import type { Log } from './log.js'

/** How far a thread stands behind others. */
export interface Rank {
  readonly policy: Policy
  /** -20 to 19. */
  readonly niceness: number
}

/**
 * How far threads stand behind those that answer requests. While both want the same processor, one with a niceness of 10 gets a
 * tenth of what an edge thread gets, one with 5 a third; nothing is lost where a processor is idle. Where the policy is refused
 * there is still the niceness.
 */
export const ranks = {
  /** Fills the index, opens bundles and verifies their items, builds bands: hours of work that nobody waits for. */
  background: { policy: 'idle', niceness: 10 },
  /** Writes what the background has found, but also what a client may wait for: so it keeps its share. */
  keeper: { policy: 'other', niceness: 10 },
  /** Checks bytes that somebody may wait for, and the cache between times. */
  proof: { policy: 'other', niceness: 5 },
  /**
   * Answers queries: somebody waits, but whoever asks for a lot must not delay content, not even until the next tick.
   * `PriorityBoost` brings it back for a while where it would starve.
   */
  query: { policy: 'idle', niceness: 10 },
  /** The same, where it could not come back. */
  queryForGood: { policy: 'other', niceness: 10 },
  /** Compiles and collects garbage for all threads: an edge thread waits for it now and then. */
  engine: { policy: 'other', niceness: 10 },
} as const satisfies Readonly<Record<string, Rank>>

/**
 * Lets threads of higher rank go first: this thread (or another of this process, by the kernel's number) and those that it starts
 * from now on. One that stands farther back already stays there. Linux only: there each thread has a rank of its own. Where
 * something is not allowed the rest works as before, and a line in the log says so.
 */
export function stepBack({ policy, niceness }: Rank, log?: Pick<Log, 'info'>, thread = ownThread()): void {
  let reason: string | undefined
  try {
    if (getPriority(thread) < niceness) setPriority(thread, niceness)
    // Those that a thread of the background starts have its policy from the start.
    if (policy === 'idle') reason = setPolicy(thread, policy)
  } catch (error) {
    reason = (error as Error).message
  }
  if (reason === undefined) return
  log?.info({ reason, thread }, 'a thread may delay those that answer requests: it could not step back')
}

/** CAP_SYS_NICE, as capabilities(7) counts. */
const niceCapability = 23n

/** Whether a thread of this niceness may leave `SCHED_IDLE` again: that takes a capability or a limit (getrlimit(2)). */
export function mayComeBack({ niceness }: Rank): boolean {
  try {
    const capabilities = /^CapEff:\s*([0-9a-f]+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
    if (((BigInt(`0x${capabilities ?? '0'}`) >> niceCapability) & 1n) === 1n) return true
    const limit = /^Max nice priority\s+(\w+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? '0'
    return limit === 'unlimited' || Number(limit) >= 20 - niceness
  } catch {
    return false // no Linux: there is no such policy
  }
}

/** The kernel's number of this thread. Throws where there is no /proc. */
export function ownThread(): number {
  // "<process>/task/<thread>"
  return Number(readlinkSync('/proc/thread-self').split('/').at(-1))
}

/** Threads of the engine, when it is not told otherwise: one that minds the time, and its pool. */
const engineThreads = 5

/** Numbers wrap around at this one, at the latest. */
const threadNumbers = 2 ** 22

/**
 * Lets the engine's own threads step back: they collect garbage for the background too, in bursts, on all processors. They have
 * names since Node 24; before, they are the first that a process starts. Call it on the main thread.
 */
export function stepEngineBack(log: Pick<Log, 'info'>): void {
  for (const thread of threadsOfEngine()) stepBack(ranks.engine, log, thread)
}

function threadsOfEngine(): number[] {
  // A pool of another size: who is who cannot be told by the order.
  if (process.platform !== 'linux' || process.execArgv.some((word) => word.includes('v8-pool-size')))
    return []
  const age = (thread: number): number => (thread - process.pid + threadNumbers) % threadNumbers
  const threads = readdirSync('/proc/self/task')
    .map(Number)
    .filter((thread) => thread !== process.pid)
    .sort((one, other) => age(one) - age(other))
  const named = threads.filter((thread) => nameOf(thread) === 'V8Worker')
  return named.length > 0 ? named : threads.slice(0, engineThreads)
}

function nameOf(thread: number): string {
  try {
    return readFileSync(`/proc/self/task/${thread}/comm`, 'utf8').trim()
  } catch {
    return '' // it ended meanwhile: none of the engine's
  }
}

let poolStarted: Promise<unknown> | undefined

/**
 * Starts the pool of threads for files and digests that all threads of the process share. Its threads get the priority of the
 * thread that uses it first, so the main thread does, before any steps back.
 */
export async function startSharedPool(): Promise<void> {
  poolStarted ??= stat('/')
  await poolStarted
}
