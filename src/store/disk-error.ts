import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'
import type { Log } from '../actor/log.js'
import { Outage } from '../actor/outage.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { codeOf } from './blobs.js'
import { countDiskError } from './disk-errors.js'

/** What the system says where a disk is full, has no room for this user, or fails. */
const diskErrors: ReadonlySet<string> = new Set(['EDQUOT', 'EFBIG', 'EIO', 'ENOSPC', 'EROFS'])

/** LMDB's own code where an earlier update of its first pages failed: no state of that file is known until it is opened anew. */
export const lostStateCode = -30_795

/** The system's name of an error of the disk; undefined where it is none. Addons give the system's number instead of its name. */
function nameOf(error: unknown): string | undefined {
  const name = codeOf(error)
  if (name !== undefined) return diskErrors.has(name) ? name : undefined
  // What reports a failure carries the error that was the reason.
  if (error instanceof Error && error.cause instanceof Error) return nameOf(error.cause)
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === lostStateCode) return 'EIO'
  if (typeof code !== 'number' || code <= 0) return undefined
  return Object.entries(constants.errno).find(([one, number]) => number === code && diskErrors.has(one))?.[0]
}

/**
 * Whether something threw because the disk is full or fails: `Environment.write`, whose transaction was undone and whose
 * environment can be used as before, or a call of the file system.
 */
export function isDiskError(error: unknown): boolean {
  return nameOf(error) !== undefined
}

/** Errors that are about one place of one file. Others (too many open files) would make all places look lost. */
const placeErrors: ReadonlySet<string> = new Set(['EIO', 'ENOENT', 'EBADMSG', 'EUCLEAN', 'ENODATA'])

/** Whether something threw because bytes of one file cannot be read: other files may be well. */
export function isPlaceError(error: unknown): boolean {
  return placeErrors.has(codeOf(error) ?? '')
}

/** An error as Node gives it, for the system's number of it. `what`: was refused. */
export function diskError(code: number, what: string, cause?: unknown): Error {
  const name = getSystemErrorName(-code)
  return Object.assign(new Error(`${name}: ${what}`, { cause }), {
    code: name,
    errno: -code,
    syscall: 'write',
  })
}

/** The refusal for an error of a disk. */
export function diskRefusal(error: unknown): Refusal {
  countDiskError(error)
  const name = nameOf(error)
  const isFull = name === 'ENOSPC' || name === 'EDQUOT'
  return refuse('busy', 'self', isFull ? 'the disk is full' : 'the disk failed')
}

/** Does `write` once. Refusal (busy): the disk is full or fails, and nothing was written. Throws any other error. */
export function tryWrite<T = undefined>(write: () => T): T | Refusal {
  try {
    return write()
  } catch (error) {
    if (!isDiskError(error)) throw error
    return diskRefusal(error)
  }
}

/** Says that what is named waits for the disk, and that it goes on. */
export function diskOutage(log: Pick<Log, 'warn' | 'info'>, what: string): Outage {
  return new Outage(
    log,
    `the disk is full or fails: ${what} wait, and are tried again`,
    `the disk takes changes again: ${what} go on`,
  )
}

/**
 * Does `work`, which comes again by itself. False: the disk is full or fails, `outage` says so once, and what was not written is
 * written next time. Throws any other error.
 */
export function whileDiskTakes(outage: Pick<Outage, 'failed' | 'well'>, work: () => void): boolean {
  try {
    work()
  } catch (error) {
    if (!isDiskError(error)) throw error
    countDiskError(error)
    outage.failed({ err: error })
    return false
  }
  outage.well()
  return true
}
