import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { family } from './usage.js'

/** A memory controller of the kernel: its folder, and the file of a group that holds the bound (cgroups(7)). */
interface Controller {
  readonly folder: string
  readonly bound: string
}

/** The controller of version 1 or 2 in which this process may make groups. */
function controller(): Controller | undefined {
  if (process.getuid?.() !== 0) return undefined
  const known: readonly Controller[] = [
    { folder: '/sys/fs/cgroup/memory', bound: 'memory.limit_in_bytes' },
    { folder: '/sys/fs/cgroup', bound: 'memory.max' },
  ]
  return known.find(({ folder, bound }) => {
    const group = join(folder, `bench-${process.pid}`)
    try {
      mkdirSync(group)
    } catch {
      return false // no such controller, or one that is only to be read
    }
    const isThere = existsSync(join(group, bound))
    rmdirSync(group)
    return isThere
  })
}

/** Whether `boundMemory` can work here. */
export function canBoundMemory(): boolean {
  return controller() !== undefined
}

/**
 * Bounds the memory of a running program and its descendants, with the pages of files that they read. What they have already
 * is not counted, and neither are pages that another program has read: see `forgetPages`. Returns how to end the bound once
 * the program has ended. Throws where `canBoundMemory` is false.
 */
export function boundMemory(pid: number, bytes: number): () => void {
  const found = controller()
  if (found === undefined) throw new Error('the kernel lets us bound no memory')
  const group = join(found.folder, `bench-${pid}`)
  mkdirSync(group)
  writeFileSync(join(group, found.bound), String(bytes))
  for (const member of family(pid)) writeFileSync(join(group, 'cgroup.procs'), String(member))
  return () => rmdirSync(group)
}

/** Drops the pages of all files that lie on the disk, whoever has read them. Throws where we are not root. */
export function forgetPages(): void {
  writeFileSync('/proc/sys/vm/drop_caches', '1')
}
