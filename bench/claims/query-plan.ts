import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type DocumentNode, execute, parse, validate } from 'graphql'
import { systemClock } from '../../src/actor/clock.js'
import { Effort } from '../../src/catalog/effort.js'
import { Generations } from '../../src/catalog/generations.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import type { Row } from '../../src/catalog/row.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { selectionOf, type TransactionsArguments } from '../../src/query/asking.js'
import { rowCursor } from '../../src/query/cursor.js'
import { noHeaders } from '../../src/query/headers.js'
import { Answerer } from '../../src/query/query-answerer.js'
import { queryLimits } from '../../src/query/query-limits.js'
import { schema } from '../../src/query/schema.js'
import { databasesOf } from '../index/build.js'
import { documentFor, kinds, variablesOf } from '../index/questions.js'
import { Dice } from '../kit/dice.js'
import { emptyFolder } from '../kit/folders.js'
import { say, table } from '../kit/say.js'

const help = `query-plan: answers of /graphql by our plan, and by execute of graphql-js with plain resolvers over the same index

  --items N   items of the index (20000)
  --rounds N  of 200 questions for each kind (5)
Processor time for an answer, from the text of the query to the text of the answer. Parsed queries are kept by both. The answers
are compared; exit code 1 where one differs.
`

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

/** Resolvers as a program around the library would have them: each row as a plain value. */
function rootOf(index: ChainIndex) {
  const node = (row: Row) => {
    const tags = row.tags.map((tag) => ({
      name: tag.name.toString(),
      value: tag.value.toString(),
    }))
    return {
      id: text(row.id),
      owner: () => ({ address: text(row.owner) }),
      data: { size: String(row.size), type: tags.find(({ name }) => name === 'Content-Type')?.value },
      tags,
      block: () => (row.height === undefined ? null : index.block(row.height)),
      bundledIn: () => (row.place === undefined ? null : { id: text(row.place.parent) }),
    }
  }
  return {
    transactions(given: TransactionsArguments) {
      const page = { backwards: given.sort !== 'HEIGHT_ASC', limit: given.first ?? 10 }
      const { entries, more } = index.rows(
        selectionOf(given, queryLimits),
        page,
        new Effort(1e6, 60_000, systemClock),
      )
      return {
        pageInfo: { hasNextPage: more },
        edges: entries.map((row) => ({ cursor: rowCursor(row, {}), node: node(row) })),
      }
    },
  }
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    items: { type: 'string', default: '20000' },
    rounds: { type: 'string', default: '5' },
  },
})

async function main(): Promise<number> {
  const folder = emptyFolder('query-plan')
  const { built } = await databasesOf(
    join(folder, 'databases'),
    Number(values.items),
    undefined,
    () => undefined,
  )
  const { environment } = openCatalogTables(join(folder, 'databases', 'catalog'))
  const index = new ChainIndex(environment, new Generations())
  const answerer = new Answerer({ index, headers: noHeaders, clock: systemClock, limits: queryLimits })
  const rootValue = rootOf(index)
  const documents = new Map<string, DocumentNode>()
  const plan = (query: string, variables: Record<string, unknown>): string => {
    const answer = answerer.answer({ query, operationName: null, variables }, answerer.effort())
    if (answer instanceof Promise) throw new Error('nothing of this should have to wait')
    return answer.text
  }
  const library = (query: string, variables: Record<string, unknown>): string => {
    let document = documents.get(query)
    if (document === undefined) {
      document = parse(query)
      if (validate(schema, document).length > 0) throw new Error('the query is not valid')
      documents.set(query, document)
    }
    return JSON.stringify(execute({ schema, document, rootValue, variableValues: variables }))
  }
  const bytes = (all: readonly string[]): Buffer[] => all.map((id) => Buffer.from(id, 'base64url'))
  const { lastHeight, ids, bundles } = built
  const scope = {
    owners: Math.max(10, Math.floor(built.items / 50)),
    lastHeight,
    ids: bytes(ids),
    bundles: bytes(bundles),
  }
  const rows: string[][] = []
  let differ = 0
  for (const kind of ['one id', 'newest of a tag', 'items of a bundle', 'two common tags', 'first: 1000']) {
    const dice = new Dice(99)
    const count = kind === 'first: 1000' ? 10 : 200
    const queries = Array.from({ length: count }, () => {
      const question = kinds[kind]?.(dice, scope) ?? { first: 10 }
      return { query: documentFor(question), variables: variablesOf(question) }
    })
    for (const { query, variables } of queries)
      if (plan(query, variables) !== library(query, variables)) differ += 1
    const cost = { plan: 0, library: 0 }
    for (let round = 0; round < Number(values.rounds); round += 1) {
      for (const [name, answer] of Object.entries({ plan, library })) {
        const before = process.cpuUsage()
        for (const { query, variables } of queries) Buffer.from(answer(query, variables))
        const { user, system } = process.cpuUsage(before)
        cost[name as 'plan' | 'library'] += user + system
      }
    }
    const each = (us: number): string => (us / count / Number(values.rounds)).toFixed(0)
    rows.push([kind, each(cost.plan), each(cost.library), (cost.library / cost.plan).toFixed(2)])
  }
  await environment.close()
  rmSync(folder, { recursive: true })
  for (const line of table(['question', 'plan us', 'execute us', 'ratio'], rows)) say(line)
  if (differ > 0) say(`${differ} answers differ`)
  return differ === 0 ? 0 : 1
}

if (values.help === true) say(help)
else process.exitCode = await main()
