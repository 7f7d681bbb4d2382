import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '../src/actor/clock.js'
import { Generations } from '../src/catalog/generations.js'
import { ChainIndex } from '../src/catalog/index-reader.js'
import { indexBytes, openIndexTables } from '../src/catalog/index-tables.js'
import { CatalogKeeper } from '../src/catalog/keeper.js'
import { openCatalogTables } from '../src/catalog/tables.js'
import { Chain, type ChainBlock, Dice, messagesOf } from './index-chain.js'
import { Comparison } from './index-comparison.js'
import { deepQuestion, kinds, questionsOf } from './index-questions.js'
import { openSqlite, SqliteBuilder } from './index-sqlite.js'
import { SqliteReader } from './index-sqlite-reader.js'

const help = `index-bench: the index beside SQLite with the schema that is usual for it: same data, same questions, same answers

  --items N        items of the made-up chain (100000)
  --queries N      of each kind (300)
  --only TEXT      kinds whose name has this text
  --sqlite PATH    better-sqlite3, where Node brings no SQLite of its own
  --no-sqlite      the index alone
  --folder PATH    where the databases go and stay: the next time they are only asked (a temporary folder, removed at the end)
  --clock          by the clock instead of the processor's time: on a machine where nothing else runs

Columns: the index, from the GraphQL text to the JSON text; SQLite from prepared statements to the same JSON text; SQLite behind
the same GraphQL; then how many times the index's time each of them takes.
`

const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

/** Blocks that go to the keeper at once: what a real importer has waiting. */
const blocksAtOnce = 20
const seenMs = 1_700_000_000_000
/** Rows between two lines that say how far it is. */
const rowsPerLine = 1_000_000

/** What a folder of databases holds; it is written last. */
interface Built {
  readonly items: number
  readonly rows: number
  readonly lastHeight: number
  readonly hasSqlite: boolean
  readonly ids: readonly string[]
}

class Spent {
  wall = 0
  cpu = 0

  async during(act: () => Promise<unknown> | unknown): Promise<void> {
    const cpu = process.cpuUsage()
    const started = systemClock.monotonic()
    await act()
    const { user, system } = process.cpuUsage(cpu)
    this.wall += (systemClock.monotonic() - started) / 1000
    this.cpu += (user + system) / 1e6
  }

  rate(rows: number): string {
    const { wall, cpu } = this
    return `${wall.toFixed(0)} s, ${Math.round(rows / wall)} rows/s (${Math.round(rows / cpu)} per second of processor time)`
  }
}

/** Makes the chain once, and fills both with it. */
async function build(items: number, folder: string, sqlite: SqliteBuilder | undefined): Promise<Built> {
  // Cursors tell when a row was first seen: for both it is the same moment.
  const clock = { ...systemClock, now: () => seenMs }
  const generations = new Generations()
  const keeper = new CatalogKeeper({ path: join(folder, 'catalog'), touchEveryMs: 1000 }, generations, clock)
  const spent = { index: new Spent(), sqlite: new Spent() }
  const ids: string[] = []
  let [rows, lastHeight, waiting]: [number, number, ChainBlock[]] = [0, 0, []]
  const flush = async (): Promise<void> => {
    const messages = waiting.flatMap(messagesOf)
    await spent.index.during(() => Promise.all(messages.map((message) => keeper.handle(message))))
    await spent.sqlite.during(() => sqlite?.add(waiting, seenMs / 1000))
    const before = rows
    for (const { transactions, bundles } of waiting) {
      rows += transactions.length
      for (const bundle of bundles) rows += bundle.items.length
    }
    const some = waiting[0]?.bundles[0]?.items[0]?.id
    if (some !== undefined) ids.push(some)
    if (Math.floor(rows / rowsPerLine) > Math.floor(before / rowsPerLine)) {
      say(`${rows} rows: index ${spent.index.wall.toFixed(0)} s, SQLite ${spent.sqlite.wall.toFixed(0)} s`)
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
  say(`index: ${spent.index.rate(rows)}`)
  if (sqlite !== undefined) {
    await spent.sqlite.during(() => sqlite.finish(say))
    say(`SQLite: ${spent.sqlite.rate(rows)}, ${(sqlite.bytes / rows).toFixed(0)} bytes per row`)
  }
  return { items, rows, lastHeight, hasSqlite: sqlite !== undefined, ids }
}

/** What stands in the folder, built now where it is not there. */
async function prepare(
  folder: string,
  items: number,
  modulePath: string | undefined,
  withSqlite: boolean,
): Promise<{ built: Built; sqlite: SqliteReader | undefined }> {
  const file = join(folder, 'index.sqlite')
  const note = join(folder, 'built.json')
  mkdirSync(folder, { recursive: true })
  let built = existsSync(note) ? (JSON.parse(readFileSync(note, 'utf8')) as Built) : undefined
  if (built !== undefined && (built.items !== items || (withSqlite && !built.hasSqlite))) {
    throw new Error(`${folder} holds ${built.items} items${built.hasSqlite ? '' : ' and no SQLite'}`)
  }
  if (built === undefined) {
    for (const left of [file, join(folder, 'catalog')]) rmSync(left, { recursive: true, force: true })
    const database = withSqlite ? await openSqlite(file, modulePath) : undefined
    if (database === undefined && withSqlite) {
      say('SQLite is not there: the index alone is measured (see --sqlite)')
    }
    built = await build(items, folder, database === undefined ? undefined : new SqliteBuilder(database, file))
    database?.close()
    writeFileSync(note, JSON.stringify(built))
  }
  const database = withSqlite && built.hasSqlite ? await openSqlite(file, modulePath) : undefined
  return { built, sqlite: database === undefined ? undefined : new SqliteReader(database) }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      items: { type: 'string', default: '100000' },
      queries: { type: 'string', default: '300' },
      only: { type: 'string', default: '' },
      sqlite: { type: 'string' },
      'no-sqlite': { type: 'boolean', default: false },
      folder: { type: 'string' },
      clock: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return say(help)
  const items = Number(values.items)
  const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'sluice-index-bench-'))
  try {
    const { built, sqlite } = await prepare(folder, items, values.sqlite, !values['no-sqlite'])
    const { environment } = openCatalogTables(join(folder, 'catalog'))
    const index = new ChainIndex(environment, new Generations())
    const bytes = indexBytes(openIndexTables(environment)) / built.rows
    say(`${built.rows} rows, ${bytes.toFixed(0)} bytes each in the index\n`)
    const comparison = new Comparison(index, sqlite, values.clock, say)
    comparison.head()
    const dice = new Dice(99)
    const ids = built.ids.map((id) => Buffer.from(id, 'base64url'))
    const scope = { owners: Math.max(10, Math.floor(items / 50)), lastHeight: built.lastHeight, ids }
    for (const kind of kinds.filter((kind) => kind.includes(values.only))) {
      const count = kind.includes('50') ? Math.min(Number(values.queries), 60) : Number(values.queries)
      comparison.run(
        kind,
        Array.from({ length: count }, () => questionsOf(kind, dice, scope)),
      )
    }
    for (const page of [1, Math.min(10_000, Math.floor(items / 2 / 10))]) {
      const name = `tag on half, page ${page}`
      if (!name.includes(values.only)) continue
      const question = deepQuestion(comparison.ask, page)
      comparison.run(name, Array(Number(values.queries)).fill(question))
    }
    await environment.close()
  } finally {
    if (values.folder === undefined) rmSync(folder, { recursive: true, force: true })
  }
}

await main()
