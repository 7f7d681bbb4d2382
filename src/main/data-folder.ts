import { closeSync, existsSync, openSync, statSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Claim, claimFolder, tryClaimFolder } from '../actor/claim.js'
import { type Log, silentLog } from '../actor/log.js'
import { makeFolder } from '../store/folder.js'
import { CrashNote } from './crash-note.js'
import { checkAfterRuns, checkDatabases, UnusableData } from './databases.js'

const reasons: Readonly<Record<string, string>> = {
  EEXIST: 'there is a file of that name',
  ENOTDIR: 'it is a file, or lies below one',
  ENOENT: 'no folder can be made there',
  EACCES: 'this user may not use it',
  EPERM: 'this user may not use it',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  ELOOP: 'its symbolic links form a loop',
}

/**
 * Claims DATA_PATH for this process. Makes the folder where it is missing (mode 0700). Checks that it can be written, that no
 * other process uses it, and that every database in it can be opened. After a run that ended by a fault, every page of the
 * databases is checked. Rejects with an error for the operator otherwise; then nothing is claimed. From then on a signal that
 * ends this process leaves a line for the next start.
 */
export async function claimDataFolder(
  root: string,
  log: Pick<Log, 'warn' | 'error'> = silentLog,
): Promise<Claim> {
  try {
    makeFolder(root)
    const probe = join(root, `.probe-${process.pid}`)
    closeSync(openSync(probe, 'w', 0o600))
    unlinkSync(probe)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error)
    throw new UnusableData(
      `DATA_PATH: ${root} cannot be used: ${reasons[code] ?? 'the system refuses'} (${code})`,
    )
  }
  const mode = statSync(root).mode & 0o777
  if ((mode & 0o077) !== 0) {
    const say =
      'others on this machine may enter DATA_PATH, and the program trusts what lies there: chmod 700'
    log.warn({ path: root, mode: mode.toString(8) }, say)
  }
  const claim = await claimFolder(root)
  try {
    const note = new CrashNote(root)
    checkAfterRuns(root, note, log)
    note.keep()
  } catch (error) {
    await claim.release()
    throw error
  }
  return claim
}

/** The same check for a command that may run while the program runs. Then the program has checked already. */
export async function checkWhileIdle(root: string): Promise<void> {
  if (!existsSync(root)) return
  const claimed = await tryClaimFolder(root)
  if (claimed === undefined) return
  try {
    checkDatabases(root)
  } finally {
    await claimed.release()
  }
}
