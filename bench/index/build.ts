import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/actor/clock.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations } from '../../src/catalog/generations.js'
import { Chain, type ChainBlock, messagesOf } from './chain.js'
import { openSqlite, SqliteBuilder } from './sqlite.js'

/** Blocks that go to the keeper at once, as from a real importer. */
const blocksAtOnce = 20
const seenMs = 1_700_000_000_000
/** To be changed when the content of the databases changes: those of another version are made anew. */
const version = 2

/** What a folder of databases holds. It is written last. */
export interface Built {
  readonly version: number
  readonly items: number
  readonly rows: number
  readonly lastHeight: number
  readonly hasSqlite: boolean
  readonly sqliteBytes: number
  readonly ids: readonly string[]
  readonly bundles: readonly string[]
  /** Microseconds of processor time for a row that is added. */
  readonly addUs: { readonly index: number; readonly sqlite: number }
}

/** Adds up the processor time of what it is given to run, microseconds. */
class Spent {
  us = 0

  async during(act: () => Promise<unknown> | unknown): Promise<void> {
    const before = process.cpuUsage()
    await act()
    const { user, system } = process.cpuUsage(before)
    this.us += user + system
  }
}

/** Makes the chain once, and fills both with it. */
async function build(
  items: number,
  folder: string,
  sqlite: SqliteBuilder | undefined,
  say: (line: string) => void,
): Promise<Built> {
  // Cursors hold the time at which a row was first seen, so it has to be the same for both.
  const clock = { ...systemClock, now: () => seenMs }
  const options = { path: join(folder, 'catalog'), touchEveryMs: 1000 }
  const keeper = new CatalogKeeper(options, new Generations(), clock)
  const spent = { index: new Spent(), sqlite: new Spent() }
  const [ids, bundles]: [string[], string[]] = [[], []]
  let [rows, lastHeight, waiting]: [number, number, ChainBlock[]] = [0, 0, []]
  const flush = async (): Promise<void> => {
    const messages = waiting.flatMap(messagesOf)
    await spent.index.during(() => Promise.all(messages.map((message) => keeper.handle(message))))
    await spent.sqlite.during(() => sqlite?.add(waiting, seenMs / 1000))
    for (const { transactions, bundles: made } of waiting) {
      rows += transactions.length
      for (const bundle of made) rows += bundle.items.length
    }
    const some = waiting[0]?.bundles[0]
    if (some?.items[0] !== undefined) {
      ids.push(some.items[0].id)
      bundles.push(some.rootId)
    }
    waiting = []
  }
  for (const made of new Chain({ items, itemsPerBundle: 1000, bundlesPerBlock: 2, seed: 1 }).blocks()) {
    waiting.push(made)
    lastHeight = made.block.height
    if (waiting.length === blocksAtOnce) await flush()
  }
  await flush()
  await keeper.close()
  await spent.sqlite.during(() => sqlite?.finish(say))
  const addUs = { index: spent.index.us / rows, sqlite: spent.sqlite.us / rows }
  const sqliteBytes = sqlite?.bytes ?? 0
  return {
    version,
    items,
    rows,
    lastHeight,
    hasSqlite: sqlite !== undefined,
    sqliteBytes,
    ids,
    bundles,
    addUs,
  }
}

/** The databases in a folder, made where they are missing. SQLite: the module's, or that of Node from 22.13 on. */
export async function databasesOf(
  folder: string,
  items: number,
  modulePath: string | undefined,
  say: (line: string) => void,
) {
  const file = join(folder, 'index.sqlite')
  const note = join(folder, 'built.json')
  const kept = existsSync(note) ? (JSON.parse(readFileSync(note, 'utf8')) as Built) : undefined
  const isThere = (await openSqlite(':memory:', modulePath)) !== undefined
  const isFit = kept?.version === version && kept.items === items && (kept.hasSqlite || !isThere)
  let built = kept
  if (built === undefined || !isFit) {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    const database = await openSqlite(file, modulePath)
    built = await build(items, folder, database && new SqliteBuilder(database, file), say)
    database?.close()
    writeFileSync(note, JSON.stringify(built))
  }
  return { built, sqlite: isThere ? await openSqlite(file, modulePath) : undefined }
}
