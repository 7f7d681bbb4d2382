import { loadAddon } from '../addon.js'

interface Addon {
  /** The kernel's error number, 0 for none. */
  set(thread: number, policy: number): number
  /** -1 where there is no such thread. */
  get(thread: number): number
  /** Milliseconds. */
  ran(): number
  /** 1 where something was given back. */
  trim(): number
}

/** SCHED_OTHER and SCHED_IDLE of Linux, as sched(7) has them. Idle: the thread runs where nothing else wants the processor. */
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

/** The policy of a thread; undefined where that cannot be asked, there is no such thread, or it is another one. */
export function policyOf(thread: number): Policy | undefined {
  const code = addon?.get(thread)
  if (code === policies.other) return 'other'
  return code === policies.idle ? 'idle' : undefined
}

/** Milliseconds of the processors that this thread has had; undefined without the addon. */
export function ranMs(): number | undefined {
  return addon?.ran()
}

/** Gives memory that all threads have freed, but the C library keeps, back to the kernel. Without the addon nothing happens. */
export function trimMemory(): void {
  addon?.trim()
}
