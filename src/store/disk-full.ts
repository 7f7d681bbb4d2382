import { statfsSync } from 'node:fs'
import { constants } from 'node:os'

/** More than a transaction of this program writes: with less free on its disk no change of a database is begun. */
export const roomMinBytes = 16 * 2 ** 20

/**
 * Does `act`, a transaction of LMDB. Where the disk of `folder` has no room for it this throws, as LMDB would in its middle. The
 * look takes some 2 us. What comes all of a sudden, or by a quota, LMDB meets itself (`native/database`).
 */
export function withRoom<T>(folder: string, act: () => T): T {
  if (freeBytes(folder) >= roomMinBytes) return act()
  const error = new Error(`ENOSPC: less than ${roomMinBytes} bytes are free, no change is begun: ${folder}`)
  throw Object.assign(error, { code: 'ENOSPC', errno: -constants.errno.ENOSPC, syscall: 'statfs' })
}

/** Infinity where it is unknown: some file systems do not state it, and of a folder that was removed LMDB has its file open. */
function freeBytes(folder: string): number {
  try {
    const { bavail, bsize, blocks } = statfsSync(folder)
    return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
