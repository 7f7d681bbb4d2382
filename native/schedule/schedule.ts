import { loadAddon } from '../addon.js'

/** How the kernel lets a thread run; the words of sched(7). */
export interface Schedule {
  /** `idle`: where nothing else wants the processor. */
  readonly policy: 'other' | 'idle'
  /** -20 to 19; an idle thread keeps it for the time after. */
  readonly niceness: number
  /** How long it wants to run at a time, microseconds, 100 to 100,000; who wants less goes first. 0: as the kernel likes. */
  readonly sliceUs: number
}

interface Addon {
  /** The kernel's error number, 0 for none. */
  set(thread: number, policy: number, niceness: number, sliceUs: number): number
  get(thread: number): [policy: number, niceness: number, sliceUs: number] | undefined
}

/** SCHED_OTHER and SCHED_IDLE of Linux. */
const policies = { other: 0, idle: 5 } as const

const addon = process.platform === 'linux' ? loadAddon<Addon>('schedule') : undefined

/**
 * Schedules a thread of this process, by the number that the kernel gave it (0: this one), and those that it starts from then
 * on. Says why where it was refused: `EPERM` (1), `ENOSYS` (38), or no addon. Nothing has changed then.
 */
export function schedule(thread: number, { policy, niceness, sliceUs }: Schedule): string | undefined {
  if (addon === undefined) return 'native/schedule was not built'
  const code = addon.set(thread, policies[policy], niceness, sliceUs)
  return code === 0 ? undefined : `sched_setattr failed with error ${code}`
}

/** How a thread of this process is scheduled; undefined where that cannot be asked, there is no such thread, or otherwise. */
export function scheduleOf(thread: number): Schedule | undefined {
  const [code, niceness = 0, sliceUs = 0] = addon?.get(thread) ?? []
  if (code === policies.other) return { policy: 'other', niceness, sliceUs }
  return code === policies.idle ? { policy: 'idle', niceness, sliceUs } : undefined
}
