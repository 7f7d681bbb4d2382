import { loadAddon } from '../addon.js'

interface Addon {
  guard(): boolean
  /** The system's error number, 0 for none. */
  refusedWrite(): number
}

const addon = process.platform === 'linux' ? loadAddon<Addon>('database') : undefined

/**
 * From now on a write that the disk refuses to LMDB is an error of its transaction, and nothing else. False where it may still
 * end the process: no addon, or the one of lmdb-js is built in an unknown way. To be called on each thread that has loaded it.
 */
export function guardDatabases(): boolean {
  return addon?.guard() ?? false
}

/** The system's number of the error for which LMDB's last write on this thread was refused; stated once. */
export function refusedWrite(): number | undefined {
  const code = addon?.refusedWrite() ?? 0
  return code === 0 ? undefined : code
}
