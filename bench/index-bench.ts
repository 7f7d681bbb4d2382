import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '../src/actor/clock.js'
import { Effort } from '../src/catalog/effort.js'
import { Generations } from '../src/catalog/generations.js'
import type { IndexRequest } from '../src/catalog/index-protocol.js'
import { ChainIndex } from '../src/catalog/index-reader.js'
import { indexBytes, openIndexTables } from '../src/catalog/index-tables.js'
import { CatalogKeeper } from '../src/catalog/keeper.js'
import { packItems, packTransactions } from '../src/catalog/pack.js'
import { openCatalogTables } from '../src/catalog/tables.js'
import { Answerer } from '../src/query/answer.js'
import { selectionOf } from '../src/query/asking.js'
import { readRowCursor } from '../src/query/cursor.js'
import { noHeaders } from '../src/query/headers.js'
import { queryLimits } from '../src/query/limits.js'
import { appTag, Chain, type ChainBlock, Dice, halfTag, named, rareTag } from './index-chain.js'
import { openSqlite, SqliteIndex, type SqliteRow, type SqliteSelection } from './index-sqlite.js'

const help = `index-bench: the index beside SQLite with the schema that is usual for it: same data, same questions

  --items N        items of the made-up chain (100000)
  --queries N      of each kind (300)
  --sqlite PATH    better-sqlite3, where Node brings no SQLite of its own
  --no-sqlite      the index alone
  --folder PATH    where the databases go (a temporary folder, removed at the end)
`

const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

/** Blocks that go to the keeper at once: what a real importer has waiting. */
const blocksAtOnce = 20

interface Question {
  readonly graphql: Record<string, unknown>
  readonly sqlite: SqliteSelection
}

function messagesOf({ block, transactions, bundles }: ChainBlock): IndexRequest[] {
  return [
    { kind: 'index-block', block, transactions: packTransactions(transactions) },
    ...bundles.map(
      ({ rootId, items }): IndexRequest => ({ kind: 'index-items', rootId, items: packItems(items) }),
    ),
  ]
}

/** Seconds of the clock and of the processor that `act` takes. */
async function timed(act: () => Promise<void> | void): Promise<{ wall: number; cpu: number }> {
  const cpu = process.cpuUsage()
  const started = systemClock.monotonic()
  await act()
  const { user, system } = process.cpuUsage(cpu)
  return { wall: (systemClock.monotonic() - started) / 1000, cpu: (user + system) / 1e6 }
}

async function importAll(chain: Chain, keeper: CatalogKeeper, sqlite: SqliteIndex | undefined) {
  const spent = { index: { wall: 0, cpu: 0 }, sqlite: { wall: 0, cpu: 0 }, rows: 0, lastHeight: 0 }
  let waiting: ChainBlock[] = []
  const flush = async (): Promise<void> => {
    const messages = waiting.flatMap(messagesOf)
    const ours = await timed(async () => {
      await Promise.all(messages.map((message) => keeper.handle(message)))
    })
    const theirs = await timed(() => sqlite?.add(waiting))
    for (const unit of ['wall', 'cpu'] as const) {
      spent.index[unit] += ours[unit]
      spent.sqlite[unit] += theirs[unit]
    }
    waiting = []
  }
  for (const made of chain.blocks()) {
    waiting.push(made)
    spent.lastHeight = made.block.height
    spent.rows += made.transactions.length
    for (const { items } of made.bundles) spent.rows += items.length
    if (waiting.length === blocksAtOnce) await flush()
  }
  await flush()
  return spent
}

function percentile(times: readonly number[], share: number): number {
  const sorted = [...times].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

const figure = (ms: number): string => `${ms < 10 ? ms.toFixed(2) : ms.toFixed(1)} ms`.padStart(10)

const document = `query ($tags: [TagFilter!], $owners: [String!], $block: BlockFilter, $first: Int, $after: String) {
  transactions(tags: $tags, owners: $owners, block: $block, first: $first, after: $after) {
    pageInfo { hasNextPage }
    edges { cursor node {
      id tags { name value } data { size type } block { height timestamp } owner { address } bundledIn { id }
    } }
  }
}`

/** Milliseconds of the processor: the clock's would measure who else uses the machine. */
function processorMs(act: () => void): number {
  const before = process.cpuUsage()
  act()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** More than any question needs. */
const readsMax = 10_000_000

class Comparison {
  readonly #answerer: Answerer
  /** Index reads of the last question. */
  #reads = 0

  constructor(
    private readonly index: ChainIndex,
    private readonly sqlite: SqliteIndex | undefined,
  ) {
    const limits = { ...queryLimits, timeMs: 60_000, stepsMax: Number.MAX_SAFE_INTEGER }
    this.#answerer = new Answerer({ index, headers: noHeaders, clock: systemClock, limits })
  }

  /** The whole answer as text, as it would go over the wire. */
  ask(variables: Record<string, unknown>): string {
    const answer = this.#answerer.answer(
      { query: document, operationName: null, variables },
      this.#answerer.effort(),
    )
    if (answer instanceof Promise) throw new Error('nothing of this should have to wait')
    return JSON.stringify(answer.result)
  }

  /** The rows and their tags, without GraphQL: what the databases are compared by. */
  rows(asked: Record<string, unknown>): string[] {
    const wanted = selectionOf(asked, queryLimits)
    const after = typeof asked.after === 'string' ? readRowCursor(asked.after) : undefined
    const request = { backwards: true, limit: Number(asked.first), ...(after === undefined ? {} : { after }) }
    const effort = new Effort(readsMax, 60_000, systemClock)
    const { words } = this.index
    const rows = this.index.rows(wanted, request, effort).entries.map((row) => {
      const tags = row.tags.map((tag) => ({ name: words.name(tag), value: words.value(tag) }))
      if (tags.length !== row.tags.length) throw new Error('tags are missing')
      return Buffer.from(row.id).toString('base64url')
    })
    this.#reads = readsMax - effort.left
    return rows
  }

  /** Asks each question of all in turn; the first tenth warms up and does not count. */
  run(name: string, questions: readonly Question[]): void {
    const times: { index: number; graphql: number; sqlite: number }[] = []
    const reads: number[] = []
    let rows = 0
    for (const [at, question] of questions.entries()) {
      let ids: string[] = []
      let found: readonly { row: SqliteRow }[] | undefined
      const index = processorMs(() => {
        ids = this.rows(question.graphql)
      })
      const graphql = processorMs(() => {
        this.ask(question.graphql)
      })
      const sqlite = processorMs(() => {
        found = this.sqlite?.page(question.sqlite)
      })
      const other = found?.map(({ row }) => Buffer.from(row.id).toString('base64url')) ?? ids
      if (ids.join() !== other.join()) throw new Error(`${name}: the answers differ`)
      rows += ids.length
      reads.push(this.#reads)
      if (at >= questions.length / 10) times.push({ index, graphql, sqlite })
    }
    const figures = (of: 'index' | 'graphql' | 'sqlite'): number[] => {
      const all = times.map((time) => time[of])
      return [percentile(all, 0.5), percentile(all, 0.99)]
    }
    const ours = figures('index')
    const theirs = this.sqlite === undefined ? [] : figures('sqlite')
    const ratios = theirs.map((ms, at) => `${(ms / (ours[at] ?? 1)).toFixed(1)}x`.padStart(8))
    const cells = [...ours, ...figures('graphql'), ...theirs].map(figure).join('')
    const read = String(percentile(reads, 0.99)).padStart(6)
    say(
      `${name.padEnd(26)}${(rows / questions.length).toFixed(1).padStart(6)}${read}${cells}${ratios.join('')}`,
    )
  }
}

/** Questions as applications ask them, drawn by the same laws as the chain. */
function questionsOf(kind: string, dice: Dice, options: { owners: number; lastHeight: number }): Question {
  const app = appTag(dice.zipf(200))
  const owner = named(1, dice.zipf(options.owners))
  const min = 1000 + dice.below(options.lastHeight - 1000)
  const max = min + dice.below(options.lastHeight - min + 1)
  const limit = 10
  const tag = ({ name, value }: { name: string; value: string }) => ({ name, values: [value] })
  const owners = [owner.toString('base64url')]
  const block = { min, max }
  const range = { minHeight: min, maxHeight: max }
  switch (kind) {
    case 'tag + owner + heights':
      return {
        graphql: { tags: [tag(app)], owners, block, first: limit },
        sqlite: { tags: [app], owner, ...range, limit },
      }
    case 'tag on half AND tag on 50':
      return {
        graphql: { tags: [tag(halfTag), tag(rareTag)], first: 100 },
        sqlite: { tags: [halfTag, rareTag], limit: 100 },
      }
    case 'tag on 50 AND tag on half':
      return {
        graphql: { tags: [tag(rareTag), tag(halfTag)], first: 100 },
        sqlite: { tags: [rareTag, halfTag], limit: 100 },
      }
    case 'tag, newest':
      return { graphql: { tags: [tag(app)], first: limit }, sqlite: { tags: [app], limit } }
    case 'two common tags':
      return {
        graphql: { tags: [tag(app), tag(halfTag)], first: limit },
        sqlite: { tags: [app, halfTag], limit },
      }
    case 'owner, newest':
      return { graphql: { owners, first: limit }, sqlite: { owner, limit } }
    default:
      return { graphql: { block, first: limit }, sqlite: { ...range, limit } }
  }
}

const kinds = [
  ...['tag + owner + heights', 'tag on half AND tag on 50', 'tag on 50 AND tag on half', 'tag, newest'],
  ...['two common tags', 'owner, newest', 'heights'],
]

/** The rows in front of page `page` of the half of all items, and the question for that page. */
function deepQuestion(comparison: Comparison, page: number, limit: number): Question[] {
  let after: string | undefined
  for (let left = (page - 1) * limit; left > 0; ) {
    const first = Math.min(left, 1000)
    const variables = { tags: [{ name: halfTag.name, values: [halfTag.value] }], first, after }
    const told = JSON.parse(comparison.ask(variables)) as {
      data: { transactions: { edges: { cursor: string }[] } }
    }
    const { edges } = told.data.transactions
    after = edges.at(-1)?.cursor ?? after
    left -= first
  }
  const [height, index, isItem, id] = JSON.parse(Buffer.from(after ?? 'W10', 'base64url').toString()) as [
    number,
    number,
    boolean,
    string,
  ]
  const before: SqliteRow | undefined =
    after === undefined
      ? undefined
      : { height, place: index * 2 + Number(isItem), id: Buffer.from(id, 'base64url') }
  const graphql = { tags: [{ name: halfTag.name, values: [halfTag.value] }], first: limit, after }
  return Array.from({ length: 100 }, () => ({
    graphql,
    sqlite: { tags: [halfTag], limit, ...(before === undefined ? {} : { before }) },
  }))
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      items: { type: 'string', default: '100000' },
      queries: { type: 'string', default: '300' },
      sqlite: { type: 'string' },
      'no-sqlite': { type: 'boolean', default: false },
      folder: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return say(help)
  const items = Number(values.items)
  const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'sluice-index-bench-'))
  const file = join(folder, 'index.sqlite')
  const database = values['no-sqlite'] ? undefined : await openSqlite(file, values.sqlite)
  if (database === undefined) say('SQLite is not there: the index alone is measured (see --sqlite)')
  const sqlite = database === undefined ? undefined : new SqliteIndex(database, file)
  const generations = new Generations()
  const path = join(folder, 'catalog')
  const keeper = new CatalogKeeper({ path, touchEveryMs: 1000 }, generations, systemClock)
  const chain = new Chain({ items, itemsPerBundle: 1000, bundlesPerBlock: 2, seed: 1 })

  const spent = await importAll(chain, keeper, sqlite)
  const { environment } = openCatalogTables(path)
  const index = new ChainIndex(environment, generations)
  const bytes = indexBytes(openIndexTables(environment))
  const rate = ({ wall, cpu }: { wall: number; cpu: number }): string =>
    `${Math.round(spent.rows / wall)} rows/s (${Math.round(spent.rows / cpu)} per second of processor time)`
  say(`${spent.rows} rows imported: ${rate(spent.index)}, ${(bytes / spent.rows).toFixed(0)} bytes per row`)
  if (sqlite !== undefined) {
    sqlite.database.exec('PRAGMA wal_checkpoint(TRUNCATE); ANALYZE;')
    say(`SQLite: ${rate(spent.sqlite)}, ${(sqlite.bytes / spent.rows).toFixed(0)} bytes per row`)
  }
  say('')
  say('processor time per question: the index, with GraphQL and JSON around it, SQLite, and SQLite / index')
  const columns = ['p50', 'p99', 'GraphQL', 'p99', 'SQLite', 'p99'].map((name) => name.padStart(10)).join('')
  say(
    `${'question'.padEnd(26)}${'rows'.padStart(6)}${'reads'.padStart(6)}${columns}${'p50'.padStart(8)}${'p99'.padStart(8)}`,
  )
  const comparison = new Comparison(index, sqlite)
  const dice = new Dice(99)
  const scope = { owners: Math.max(10, Math.floor(items / 50)), lastHeight: spent.lastHeight }
  for (const kind of kinds) {
    const count = kind.includes('50') ? Math.min(Number(values.queries), 60) : Number(values.queries)
    comparison.run(
      kind,
      Array.from({ length: count }, () => questionsOf(kind, dice, scope)),
    )
  }
  const limit = 10
  const lastPage = Math.min(10_000, Math.floor(items / 2 / limit))
  for (const page of [1, lastPage]) {
    comparison.run(`tag on half, page ${page}`, deepQuestion(comparison, page, limit))
  }
  await environment.close()
  await keeper.close()
  database?.close()
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true })
}

await main()
