import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../actor/log.js'
import { databaseFault } from '../store/lmdb-check.js'
import type { CrashNote } from './crash-note.js'

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
  proofs: `${again}: cached content that waits to be verified is found in the catalog; what gateways stated of its place is lost`,
  tier: `${again}: what the object store has is read anew; sluice store push puts there what waited for it`,
  neighbours: `${again}: what other machines keep in the object store is read anew`,
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
  // DurableLog beside the tables has the items themselves (upload/intake/spool.ts).
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

/** The index of the segments, which is made anew from the segments. */
const segmentIndex = join('segments', 'index')

/** What the console remembers: nothing rests on it, and it is begun anew where it is broken. */
const history = 'history'

/** Content that waits to be verified: the catalog lists it, too. */
const proofs = 'proofs'

/** What is known of the object store: read anew from there. */
const tier = 'tier'

/** The same of uploads of other machines. */
const neighbours = 'neighbours'

const renewable: ReadonlySet<string> = new Set([segmentIndex, history, proofs, tier, neighbours])

/** Behind the name of a folder that was set aside. */
const asideMark = '.broken'

/** Throws at the first database below `root` that must not be opened. Nobody may write to them meanwhile. */
export function checkDatabases(root: string): void {
  for (const name of databasesIn(root).filter((one) => one !== history)) {
    const fault = databaseFault(join(root, name), pagesMax)
    if (fault !== undefined) throw brokenFolder(root, name, fault)
  }
}

function databasesIn(root: string): string[] {
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.endsWith(asideMark))
    .map(({ name }) => name)
}

/** Why the database in the folder `name` below `root` must not be opened, and what an operator does then. */
export function brokenFolder(root: string, name: string, fault: string): UnusableData {
  const way = ways[name] ?? 'move that folder away, or put a copy of it back'
  return new UnusableData(`${join(root, name, 'data.mdb')} is broken: ${fault}. What to do: ${way}`)
}

/**
 * The same check, of every page where a run before ended by a fault of its own (`note`). What can be made anew without anybody's
 * help is set aside then; for all else it throws. A database in which the program ended twice counts as broken, whatever its
 * pages say: LMDB has no checksums.
 */
export function checkAfterRuns(root: string, note: CrashNote, log: Pick<Log, 'warn' | 'error'>): void {
  const refused = note.stillRefused()
  if (refused !== undefined) throw brokenFolder(root, nameBelow(root, refused), blamed)
  const lines = note.fresh()
  if (lines.length === 0) {
    checkDatabases(root)
    note.clear()
    return
  }
  log.warn({ lines }, 'the program ended by a fault before: every page of every database is looked at')
  for (const name of [...databasesIn(root), segmentIndex]) {
    const fault = databaseFault(join(root, name), Number.POSITIVE_INFINITY)
    if (fault !== undefined) settle(root, name, fault, log)
  }
  for (const path of note.blamed()) {
    if (!existsSync(join(path, 'data.mdb'))) continue
    if (!isRenewable(root, nameBelow(root, path))) note.refuse(path)
    settle(root, nameBelow(root, path), blamed, log)
  }
  note.judgedSound()
}

const blamed = 'the program ended twice by a signal inside it, though its pages look sound'

function nameBelow(root: string, path: string): string {
  return path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path
}

/** The cache is fetched anew; an index that has grown into files may have been imported, and an operator may have a copy. */
function isRenewable(root: string, name: string): boolean {
  if (renewable.has(name)) return true
  const hasFiles = ['runs', 'runs-2', 'segments'].some((folder) => {
    const path = join(root, name, folder)
    return existsSync(path) && readdirSync(path).length > 0
  })
  return name === 'catalog' && !hasFiles
}

/** Sets a broken database aside where it is made anew by itself; throws where it is not. */
function settle(root: string, name: string, fault: string, log: Pick<Log, 'error'>): void {
  if (!isRenewable(root, name)) throw brokenFolder(root, name, fault)
  const path = join(root, name)
  // One is kept, so that the disk is not filled with them.
  rmSync(`${path}${asideMark}`, { recursive: true, force: true })
  renameSync(path, `${path}${asideMark}`)
  log.error(
    { path, fault, aside: `${path}${asideMark}` },
    'a database is broken: it was set aside, and is made anew. See "A database is broken" in deploy/OPERATING.md',
  )
}
