/** What tests of answers out of two indexes have in common: one of the rig alone, and one with older blocks in ClickHouse. */
import assert from 'node:assert/strict'
import { systemClock } from '../../src/actor/clock.js'
import { heightsTable, rowTables, tagTable, wholeRowTable } from '../../src/clickhouse/clickhouse-schema.js'
import { ensureTables, IndexPush } from '../../src/clickhouse/index-push.js'
import type { StableIndex } from '../../src/clickhouse/stable-index.js'
import { fillWholeRows } from '../../src/clickhouse/whole-rows.js'
import { isRefusal } from '../../src/format/refusal.js'
import { GraphqlOverHttp } from '../../src/query/graphql-over-http.js'
import { noHeaders } from '../../src/query/headers.js'
import { queryLimits } from '../../src/query/query-limits.js'
import type { ClickhouseEngine } from '../engines/clickhouse.js'
import { below, pick } from '../property.js'
import type { openRig, QueryResult } from '../query/rig.js'
import { queryOf } from '../query/sqlite/query-text.js'
import type { Question } from '../query/sqlite/questions.js'
import { chance } from '../query/sqlite/story.js'

export const flush = { rows: 60, forkDepth: 3, rowsEach: 64, merges: { segmentsAlike: 3, levelMax: 2 } }
export const quiet = { info: () => undefined, warn: () => undefined }
export type Rig = Awaited<ReturnType<typeof openRig>>
export type Ask = (query: string, variables?: object) => Promise<QueryResult>

async function done(client: ReturnType<ClickhouseEngine['client']>, statement: string): Promise<void> {
  const written = await client.write(statement)
  if (isRefusal(written)) throw new Error(written.message)
}

/** Empties the tables and fills them with some heights; which. */
export async function push(engine: ClickhouseEngine, rig: Rig): Promise<{ from: number; to: number }> {
  const client = engine.client()
  await ensureTables(client)
  for (const table of [...Object.keys(rowTables), tagTable, wholeRowTable, heightsTable])
    await done(client, `TRUNCATE TABLE ${table}`)
  const top = rig.index.topHeight() ?? 0
  const to = top - 1 - below(4)
  const lowest = rig.index.linkedDown(to, 10_000)
  // Not from the lowest one each time: then three parts of a list come from two indexes.
  const from = chance(0.5) ? lowest : Math.min(to, lowest + below(6))
  const pushing = new IndexPush(client, rig.index, systemClock, { rows: 50, bytes: 2 ** 20 })
  const pushed = await pushing.run({ from, to }, () => undefined)
  if (isRefusal(pushed) || pushed === 'replaced') throw new Error(JSON.stringify(pushed))
  // Copies of some rows that no merge has dropped yet.
  if (chance(0.7)) await pushing.run({ from: Math.max(from, to - 4), to }, () => undefined)
  // Else readers use the other tables, as in a database of before.
  const filled = chance(0.7) ? await fillWholeRows(client, () => true) : 'done'
  if (isRefusal(filled)) throw new Error(filled.message)
  return { from, to }
}

/** Asks the index of the rig and, for its older blocks, ClickHouse. */
export function askerOf(rig: Rig, stable: StableIndex): Ask {
  const limits = { ...queryLimits, timeMs: 60_000, wallMs: 60_000 }
  const answers = new GraphqlOverHttp({
    index: rig.index,
    headers: noHeaders,
    clock: systemClock,
    limits,
    stable,
  })
  return async (query, variables) => {
    const body = Buffer.from(JSON.stringify({ query, variables }))
    const answer = await answers.answer({ method: 'POST', query: '', contentType: 'application/json', body })
    return JSON.parse(answer.body) as QueryResult
  }
}

/** All pages of a question of both, which must be the same to the letter, cursors too. */
export async function compared(rig: Rig, ask: Ask, question: Question): Promise<number> {
  const text = queryOf(question)
  const first = pick([2, 7, 30, 1000])
  let rows = 0
  let after: string | undefined
  for (let pages = 0; pages < 8; pages += 1) {
    const variables: object = { ...question.args, first, after }
    const own = await rig.askInside(text, variables)
    const both = await ask(text, variables)
    assert.deepEqual(both, own, `${question.kind} ${JSON.stringify(variables)}`)
    const { edges, pageInfo } = own.data.transactions
    rows += edges.length
    if (!pageInfo.hasNextPage) return rows
    after = chance(0.5) ? pageInfo.endCursor : edges.at(-1).cursor
  }
  return rows
}
