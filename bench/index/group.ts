import { join } from 'node:path'
import { Generations } from '../../src/catalog/generations.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { indexBytes, openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { type Group, type Order, runCase } from '../cases/run.js'
import { Dice } from '../kit/dice.js'
import { workFolder } from '../kit/folders.js'
import type { CaseWords, Row } from '../report/results.js'
import { type Built, databasesOf } from './build.js'
import { Comparison } from './comparison.js'
import { kinds, type Question } from './questions.js'
import { SqliteReader } from './sqlite-reader.js'

const deepPage = 'page 1000 of half'

const wordsOf = (kind: string): CaseWords => ({
  name: `index: ${kind}`,
  group: 'index',
  about:
    'GraphQL over the index, limits on; SQLite with its usual schema, from the rarest condition, with and without GraphQL',
  cost: 'p50Ms',
  bar: 1,
})

const kindOf = ({ name }: CaseWords): string => name.slice('index: '.length)

const adding: CaseWords = {
  name: 'index: adding rows',
  group: 'index',
  about:
    'cost of adding a row: SQLite sorts all rows at the end and then makes its indexes, the index can be queried all the time',
  cost: 'addUs',
}

function addingRows({ addUs, rows, hasSqlite, sqliteBytes }: Built, bytes: number): Row[] {
  const row = (candidate: string, role: Row['role'], us: number, bytesEach: number): Row => ({
    candidate,
    role,
    metrics: { addUs: us, bytesEach },
    rounds: [us],
  })
  const ours = row('index', 'ours', addUs.index, bytes / rows)
  return hasSqlite ? [ours, row('SQLite', 'rival', addUs.sqlite, sqliteBytes / rows)] : [ours]
}

/** The question for page `page` of the query that half of all items match; `ask` answers the pages before it. */
function deepQuestion(ask: (question: Question) => string, page: number): Question {
  const tags = [{ name: 'Type', values: ['Message'] }]
  let after: string | undefined
  for (let left = (page - 1) * 10; left > 0; left -= 1000) {
    const question = { tags, first: Math.min(left, 1000), ...(after === undefined ? {} : { after }) }
    const found = [...ask(question).matchAll(/"cursor":"([^"]+)"/g)].at(-1)
    after = found?.[1] ?? after
  }
  return { tags, first: 10, ...(after === undefined ? {} : { after }) }
}

function questionsOf(
  kind: string,
  { built, comparison }: { built: Built; comparison: Comparison },
  count: number,
) {
  if (kind === deepPage) {
    const page = Math.min(1000, Math.floor(built.items / 2 / 10) - 1)
    return Array<Question>(count).fill(deepQuestion(comparison.ask, page))
  }
  const draw = kinds[kind]
  if (draw === undefined) throw new Error(`no questions of the kind ${kind}`)
  const dice = new Dice(99)
  const bytes = (all: readonly string[]): Buffer[] => all.map((id) => Buffer.from(id, 'base64url'))
  const { items, lastHeight, ids, bundles } = built
  const owners = Math.max(10, Math.floor(items / 50))
  const scope = { owners, lastHeight, ids: bytes(ids), bundles: bytes(bundles) }
  return Array.from({ length: count }, () => draw(dice, scope))
}

async function run(order: Order, wanted: readonly CaseWords[]): Promise<void> {
  const { indexItems, indexQueries, warmMs } = order.scale
  order.note(`index: ${indexItems} items into both`)
  const folder = join(workFolder, `index-${indexItems}`)
  const { built, sqlite } = await databasesOf(folder, indexItems, order.sqliteModule, order.note)
  const { environment } = openCatalogTables(join(folder, 'catalog'))
  const notes = [
    `${built.rows} rows`,
    ...(sqlite === undefined ? [`no SQLite in Node ${process.version}: no rival (see --sqlite)`] : []),
  ]
  try {
    const index = new ChainIndex(environment, new Generations())
    const bytes = indexBytes(openIndexTables(environment))
    const comparison = new Comparison(index, sqlite === undefined ? undefined : new SqliteReader(sqlite))
    for (const words of wanted) {
      await runCase(order, { ...words, notes }, () =>
        words === adding
          ? addingRows(built, bytes)
          : comparison.run(questionsOf(kindOf(words), { built, comparison }, indexQueries), warmMs),
      )
    }
  } finally {
    sqlite?.close()
    await environment.close()
  }
}

export const indexGroup: Group = {
  name: 'index',
  cases: [...[...Object.keys(kinds), deepPage].map(wordsOf), adding],
  run,
}
