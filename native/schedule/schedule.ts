import { loadAddon } from '../addon.js'

interface Addon {
  /** The kernel's error number, 0 for none. */
  setSlice(thread: number, nanoseconds: number): number
  /** Nanoseconds; 0 where the kernel has no slices of threads, -1 where there is no such thread. */
  slice(thread: number): number
  /** Milliseconds. */
  ran(): number
  /** 1 where something was given back. */
  trim(): number
  /** Does not return. */
  leave(code: number): never
}

const addon = process.platform === 'linux' ? loadAddon<Addon>('schedule') : undefined

/**
 * How long a thread of this process (0: this one) wants to run at a time, from 100 to 100,000 us. A thread that wakes takes the
 * processor from one with a longer slice at once, not at the next tick; its share of the processor stays (Linux from 6.12 on,
 * EEVDF; earlier ones accept it without effect). Says why where it was refused; nothing has changed then.
 */
export function setSlice(thread: number, us: number): string | undefined {
  if (addon === undefined) return 'native/schedule was not built'
  const code = addon.setSlice(thread, us * 1000)
  return code === 0 ? undefined : `sched_setattr failed with error ${code}`
}

/** The slice of a thread in microseconds; undefined where the kernel or this program cannot say. */
export function sliceUsOf(thread: number): number | undefined {
  const nanoseconds = addon?.slice(thread) ?? -1
  return nanoseconds > 0 ? nanoseconds / 1000 : undefined
}

/** Milliseconds of the processors that this thread has had; undefined without the addon. */
export function ranMs(): number | undefined {
  return addon?.ran()
}

/** Gives memory that all threads have freed, but the C library keeps, back to the kernel. Without the addon nothing happens. */
export function trimMemory(): void {
  addon?.trim()
}

/**
 * Ends the process at once with this exit code, as a kill would: nothing is run, and no thread is stopped before. `process.exit`
 * stops the other threads first, and one that is just loading an addon, or is inside a call of lmdb, then aborts the whole
 * process (SIGABRT). Without the addon nothing happens, and it returns.
 */
export function leaveAtOnce(code: number): void {
  addon?.leave(code)
}
