import { loadAddon } from '../addon.js'

interface Addon {
  /** The kernel's error number, 0 for none. */
  set(thread: number, policy: number): number
  /** -1 where there is no such thread. */
  get(thread: number): number
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

/**
 * SCHED_OTHER and SCHED_IDLE of Linux, as sched(7) has them. Idle: the thread runs only while no other wants the processor.
 */
const policies = { other: 0, idle: 5 } as const

export type Policy = keyof typeof policies

const addon = process.platform === 'linux' ? loadAddon<Addon>('schedule') : undefined

/**
 * The policy of a thread of this process, by the number that the kernel gave it (0: this one), and of those that it starts from
 * then on. Its nice value stays. Says why where it was refused: EPERM (1), ESRCH (3), ENOSYS (38), or no addon; nothing has
 * changed then.
 */
export function setPolicy(thread: number, policy: Policy): string | undefined {
  if (addon === undefined) return 'native/schedule was not built'
  const code = addon.set(thread, policies[policy])
  return code === 0 ? undefined : `sched_setscheduler failed with error ${code}`
}

/** The policy of a thread; undefined where the system does not state it, there is no such thread, or it is another one. */
export function policyOf(thread: number): Policy | undefined {
  const code = addon?.get(thread)
  if (code === policies.other) return 'other'
  return code === policies.idle ? 'idle' : undefined
}

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
