import { readlinkSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { getPriority, setPriority } from 'node:os'
import type { Log } from './log.js'

/**
 * How far a thread steps back behind those that answer requests. A step of one is a tenth of the time while both want the same
 * processor, and nothing where one is idle: at 10 a thread gets a tenth of what an edge thread gets.
 */
export const niceness = {
  /** Fills the index, writes it, builds bands: hours of work that nobody waits for. */
  background: 10,
  /** Checks bytes that somebody may wait for, and the cache between times. */
  proof: 5,
} as const

/**
 * Lets threads of higher priority go first: this thread and those that it starts from now on. Linux only: there each thread
 * has a priority of its own. Where it is not allowed everything works as before, and a line at level debug says so.
 */
export function stepBack(steps: number, log?: Pick<Log, 'debug'>): void {
  try {
    // "<process>/task/<thread>"
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    if (getPriority(thread) < steps) setPriority(thread, steps)
  } catch (error) {
    log?.debug({ err: error }, 'this thread keeps its priority: it competes with those that answer requests')
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
