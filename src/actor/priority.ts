import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { getPriority, setPriority } from 'node:os'
import { setSlice } from '../../native/schedule/schedule.js'
import type { Log } from './log.js'

/**
 * Nice values (-20 to 19) of threads that give way to those that answer requests. While both want the same processor, a thread
 * with 10 gets a tenth of the time of an edge thread, one with 5 a third; where a processor is idle, nothing is lost.
 *
 * None has the policy SCHED_IDLE. All threads share locks of V8, of Node's task queue and of the C library. An idle thread that
 * loses the processor while it holds one gets it back after a second or more, and edge threads wait for the lock meanwhile
 * (native/schedule/README.md).
 */
export const ranks = {
  /** Fills the index, opens bundles and verifies their items, builds bands: long work that no client waits for. */
  background: 10,
  /** Writes what the background has found, but also what a client may wait for: so it keeps its share. */
  keeper: 10,
  /** Checks bytes that a client may wait for, and otherwise content of the cache. */
  proof: 5,
  /** Signs receipts, some milliseconds each: full intake has what content leaves of the processors. */
  receipts: 10,
  /** Answers queries: a client waits, but an expensive query must not delay content. */
  query: 10,
  /** Compiles and collects garbage for all threads: an edge thread waits for it now and then. */
  engine: 10,
} as const

/**
 * Lowers the priority of this thread (or another of this process, by the kernel's number) and of those that it starts
 * from now on. A priority that is lower already is kept. Linux only, where each thread has a priority of its own.
 * Where the system does not allow it, the thread works on as before, and this is logged.
 */
export function stepBack(niceness: number, log?: Pick<Log, 'info'>, thread = ownThread()): void {
  try {
    if (getPriority(thread) < niceness) setPriority(thread, niceness)
  } catch (error) {
    const { message: reason } = error as Error
    log?.info(
      { reason, thread },
      'a thread may delay those that answer requests: its priority could not be lowered',
    )
  }
}

/** The shortest that the kernel takes: more than most answers need. */
const shortSliceUs = 100

/**
 * For threads that answer requests: this thread takes the processor at once when it wakes. Others (of the index, of queries, of
 * V8) would otherwise keep it until the next tick of the scheduler (4 ms with HZ=250). The share of this thread does not change.
 * Where the system does not allow it, nothing changes.
 */
export function preemptAtOnce(log: Pick<Log, 'info'>): void {
  const reason = setSlice(0, shortSliceUs)
  if (reason !== undefined)
    log.info({ reason }, 'answers may wait for other threads: no short slice was given')
}

/** The kernel's number of this thread. Throws where there is no /proc. */
export function ownThread(): number {
  // "<process>/task/<thread>"
  return Number(readlinkSync('/proc/thread-self').split('/').at(-1))
}

/** Threads of V8 by default: one for timers, and a pool of four. */
const engineThreads = 5

/** Thread numbers start again below this one (the largest pid_max of Linux). */
const threadNumbers = 2 ** 22

/**
 * Lowers the priority of V8's own threads: they also collect garbage for the background threads, in bursts, on all
 * processors. They have names since Node 24; in older versions they are the first threads that a process starts. Call
 * it on the main thread.
 */
export function stepEngineBack(log: Pick<Log, 'info'>): void {
  for (const thread of threadsOfEngine()) stepBack(ranks.engine, log, thread)
}

function threadsOfEngine(): number[] {
  // With a pool of another size the order does not tell which threads are V8's.
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
 * Starts the pool of threads for files and digests that all threads of the process share. Its threads inherit the
 * priority of the thread that uses it first, so the main thread does that before any priority is lowered.
 */
export async function startSharedPool(): Promise<void> {
  poolStarted ??= stat('/')
  await poolStarted
}
