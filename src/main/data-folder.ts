import { closeSync, existsSync, openSync, readdirSync, statSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Claim, claimFolder, tryClaimFolder } from '../actor/claim.js'
import type { Log } from '../actor/log.js'
import { makeFolder } from '../store/folder.js'
import { databaseFault } from '../store/lmdb-check.js'

/** DATA_PATH as it is cannot be used; the message is for an operator. */
export class UnusableData extends Error {}

/**
 * Pages of each database that are checked before it is opened: the upper levels of every tree, which takes some
 * milliseconds.
 */
const pagesMax = 1000

const again = 'move that folder away and start again'

/** What an operator does where a database is broken, by its folder below DATA_PATH. */
const ways: Readonly<Record<string, string>> = {
  catalog: `${again}: the index is built anew from START_HEIGHT on, or faster by sluice import, and content is fetched anew`,
  agenda: `${again}: bundles and transactions that waited there are found again when their blocks are imported anew`,
  moderation:
    'put a copy of that folder back. Without one nothing of the list is blocked: move it away, start, and block again',
  names: `${again}: the names that this machine knows itself are set again with sluice names`,
  admission: `${again}: every bucket begins full, and tokens that were paid for are lost`,
  payments:
    'put a copy of that folder back. Without one, move it away: look on the chain for payments that were not settled yet',
  ledger: 'put a copy of that folder back: it holds the credits of every wallet. Without one they are lost',
  webhooks: `${again}: events that no receiver heard of yet are lost`,
  'webhooks-cached': `${again}: events that no receiver heard of yet are lost`,
  'webhooks-uploads': `${again}: events that no receiver heard of yet are lost`,
  // DurableLog beside the tables has the items themselves (upload/intake.ts).
  uploads:
    'move its files data.mdb and lock.mdb away, not its folder log, and start again: what was accepted and is in no block ' +
    'yet is taken up from the log. Parts of uploads, used free bytes, and what is known of older uploads are lost',
  'ledger-x402':
    'put a copy of that folder back. Without one, move it away: look on the chain for payments that were not settled yet',
  pins: `${again}: content that the operator pinned has to be pinned again`,
  'name-leases':
    'put a copy of that folder back: it holds who leased which name. Without one the leases are lost',
  devnet: `${again}: the embedded chain begins anew; what was indexed of it goes with the folder catalog`,
}

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
 * Claims DATA_PATH for this process: makes the folder where it is missing (mode 0700), and checks that it can be
 * written, that no other process uses it, and that every database in it can be opened. Rejects with an error for the
 * operator otherwise; then nothing is claimed.
 */
export async function claimDataFolder(root: string, log?: Pick<Log, 'warn'>): Promise<Claim> {
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
    log?.warn({ path: root, mode: mode.toString(8) }, say)
  }
  const claim = await claimFolder(root)
  try {
    checkDatabases(root)
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

/** Throws at the first database below `root` that must not be opened. Nobody may write to them meanwhile. */
export function checkDatabases(root: string): void {
  const folders = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  for (const { name } of folders) {
    const fault = databaseFault(join(root, name), pagesMax)
    if (fault !== undefined) throw brokenFolder(root, name, fault)
  }
}

/** Why the database in the folder `name` below `root` must not be opened, and what an operator does then. */
export function brokenFolder(root: string, name: string, fault: string): UnusableData {
  const way = ways[name] ?? 'move that folder away, or put a copy of it back'
  return new UnusableData(`${join(root, name, 'data.mdb')} is broken: ${fault}. What to do: ${way}`)
}
