import { readFileSync } from 'node:fs'
import { ownThread } from '../actor/priority.js'

/** The kernel's numbers of threads stay below this one (the largest pid_max of Linux). */
const threadBits = 22
/** Bits of the time at which the thread started: numbers of threads are used again. */
const startBits = 9

/** Errors of the system for a thread that has ended, before and while its file is read. */
const endedCodes: ReadonlySet<unknown> = new Set(['ENOENT', 'ESRCH'])

/**
 * The number under which a thread of this process holds locks. It has the thread's own number, and the lowest bits of its start
 * time in ticks of the kernel (proc_pid_stat(5)). 0: there is no such thread any more. Throws where it cannot be read because
 * no descriptor is free. native/server/lock-holder.h makes the same ones.
 */
function holderOf(thread: number): number {
  let text: string
  try {
    text = readFileSync(`/proc/self/task/${thread}/stat`, 'latin1')
  } catch (error) {
    if (endedCodes.has((error as NodeJS.ErrnoException).code)) return 0
    throw error
  }
  // The 22nd field; the second one stands in parentheses and may contain blanks.
  const started = Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[19])
  return ((started % 2 ** startBits) << threadBits) | thread
}

/** The holder that stands for this thread in locks. */
export function ownHolder(): number {
  return holderOf(ownThread())
}

/** Whether the thread that holds under this number still runs, or could: one that was stopped, or of which nothing is known. */
export function isAlive(holder: number): boolean {
  try {
    return holderOf(holder & (2 ** threadBits - 1)) === holder
  } catch {
    return true // it is looked at again: a lock that two hold is worse than one that is waited for
  }
}
