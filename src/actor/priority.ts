import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { getPriority, setPriority } from 'node:os'
import { type Schedule, schedule, scheduleOf } from '../../native/schedule/schedule.js'
import type { Log } from './log.js'

/** So long a slice (microseconds; the kernel's longest) makes a thread give way at once to any that wakes. */
const giveWayUs = 100_000

/**
 * How far threads stand behind those that answer requests. While both want the same processor, one with a niceness of 10 gets a
 * tenth of what an edge thread gets, one with 5 a third; nothing is lost where a processor is idle. Where the policy or the slice
 * is refused there is still the niceness.
 */
export const ranks = {
  /** Fills the index, opens bundles and verifies their items, builds bands: hours of work that nobody waits for. */
  background: { policy: 'idle', niceness: 10, sliceUs: giveWayUs },
  /** Writes what the background has found, but also what a client may wait for: so it keeps its share. */
  keeper: { policy: 'other', niceness: 10, sliceUs: giveWayUs },
  /** Checks bytes that somebody may wait for, and the cache between times. */
  proof: { policy: 'other', niceness: 5, sliceUs: giveWayUs },
  /** Compiles and collects garbage for all threads: an edge thread waits for it now and then. */
  engine: { policy: 'other', niceness: 5, sliceUs: giveWayUs },
} as const satisfies Readonly<Record<string, Schedule>>

/**
 * Lets threads of higher rank go first: this thread (or another of this process, by the kernel's number) and those that it starts
 * from now on. One that stands farther back already stays there. Linux only: there each thread has a schedule of its own. Where
 * something is not allowed the rest works as before, and a line in the log says so.
 */
export function stepBack(rank: Schedule, log?: Pick<Log, 'info'>, thread = ownThread()): void {
  const refused = (reason: unknown): void =>
    log?.info({ reason, thread }, 'a thread may delay those that answer requests: it could not step back')
  try {
    const niceness = Math.max(getPriority(thread), rank.niceness)
    if (niceness > getPriority(thread)) setPriority(thread, niceness)
    if (scheduleOf(thread)?.policy === 'idle') return
    const reason = schedule(thread, { ...rank, niceness })
    if (reason !== undefined) refused(reason)
  } catch (error) {
    refused((error as Error).message)
  }
}

function ownThread(): number {
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
  return readFileSync(`/proc/self/task/${thread}/comm`, 'utf8').trim()
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
