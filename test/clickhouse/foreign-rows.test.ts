/** A database whose four tables another program has filled: nothing of this program is in it. */
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { endlessEffort } from '../../src/catalog/effort.js'
import type { Selection } from '../../src/catalog/selection.js'
import {
  heightsTable,
  inputTable,
  rowTables,
  tagTable,
  wholeRowTable,
} from '../../src/clickhouse/clickhouse-schema.js'
import { takeForeignRows } from '../../src/clickhouse/foreign-rows.js'
import { recordedHeights, wholeHeights } from '../../src/clickhouse/heights.js'
import { ensureTables, IndexPush } from '../../src/clickhouse/index-push.js'
import { StableIndex } from '../../src/clickhouse/stable-index.js'
import { fillWholeRows } from '../../src/clickhouse/whole-rows.js'
import { isRefusal } from '../../src/format/refusal.js'
import { type ClickhouseEngine, clickhouseAbsent, startClickhouse } from '../engines/clickhouse.js'
import { openChainHouse } from './house.js'

const quiet = { info: () => undefined, warn: () => undefined }

async function done(client: ReturnType<ClickhouseEngine['client']>, statement: string): Promise<void> {
  const written = await client.write(statement)
  if (isRefusal(written)) throw new Error(written.message)
}

t.test('rows that an importer has written are read, and extended', clickhouseAbsent, async (t) => {
  const engine = await startClickhouse()
  const house = await openChainHouse(150)
  t.teardown(async () => {
    await house.close()
    await engine.stop()
  })
  const client = engine.client()
  t.equal(await takeForeignRows(client, {}, systemClock, () => undefined), undefined, 'there is nothing')
  await ensureTables(client)
  const { index } = house
  const top = (index.topHeight() ?? 0) - 3
  const from = index.linkedDown(top, 10_000)
  const to = top - 4
  const push = new IndexPush(client, index, systemClock)
  await push.run({ from, to }, () => undefined)
  // The importer makes the four tables only, and leaves copies until they are merged.
  for (const name of Object.keys(rowTables)) await done(client, `DROP VIEW sluice_rows_${name}`)
  const own = [tagTable, wholeRowTable]
  for (const name of [...own.map((table) => `${table}_view`), ...own, heightsTable, inputTable])
    await done(client, `DROP TABLE ${name}`)
  for (const name of Object.keys(rowTables))
    await done(client, `INSERT INTO ${name} SELECT * REPLACE (inserted_at + 10 AS inserted_at) FROM ${name}`)
  const rows = index.stretch(from, to, undefined, 100_000)
  const heights: number[] = []
  const found = await takeForeignRows(client, { from, to }, systemClock, (height) => heights.push(height))
  t.same(found, { from, to, rows: rows.length })
  t.equal(heights.at(-1), to)
  t.match(await wholeHeights(client), { from, to, rows: rows.length })

  const stable = new StableIndex(client, systemClock, quiet)
  t.match(await stable.heights(), { from, to })
  t.match(await recordedHeights(client), { hasWholeRows: true })
  const keysOf = async (wanted: Selection): Promise<[there: string[], here: string[]]> => {
    const page = { backwards: true, limit: 10_000 }
    const there = await stable.rows(wanted, page, { from, to })
    if (isRefusal(there)) throw new Error(there.message)
    const bounded = { ...wanted, minHeight: from, maxHeight: to }
    const here = index.rows(bounded, page, endlessEffort())
    const hex = (key: Uint8Array): string => Buffer.from(key).toString('hex')
    return [there.entries.map(({ row }) => hex(row.key)), here.entries.map(({ key }) => hex(key))]
  }
  const [tagged] = rows.filter(({ tags }) => tags.length > 0)
  const [held] = rows.filter(({ isItem }) => isItem)
  const tag = tagged?.tags[0]
  if (tag === undefined || held?.place === undefined || tagged === undefined) throw new Error('no such rows')
  const selections: Record<string, Selection> = {
    all: {},
    'a tag': { tags: [{ name: tag.name, values: [tag.value], match: 'is' }] },
    'a bundle': { bundledIn: [held.place.parent] },
    'no bundle': { bundledIn: null },
    'an owner': { owners: [tagged.owner] },
    recipients: {
      recipients: rows.filter(({ recipient }) => recipient.length > 0).map(({ recipient }) => recipient),
    },
    'an id': { ids: [held.id] },
  }
  for (const [name, wanted] of Object.entries(selections)) {
    const [there, here] = await keysOf(wanted)
    t.same(there, here, name)
  }

  // As a release of before has left it: all machines read the other tables, also one that knows of whole rows.
  for (const name of [`${wholeRowTable}_view`, wholeRowTable]) await done(client, `DROP TABLE ${name}`)
  const late = new StableIndex(client, systemClock, quiet)
  await late.heights()
  for (const [name, wanted] of Object.entries(selections)) {
    const page = { backwards: true, limit: 10_000 }
    const there = await late.rows(wanted, page, { from, to })
    if (isRefusal(there)) throw new Error(there.message)
    t.equal(there.entries.length, (await keysOf(wanted))[1].length, `${name}, without whole rows`)
  }
  t.equal(await ensureTables(client), 'done')
  t.match(await recordedHeights(client), { hasWholeRows: false }, 'the new table is empty')
  t.equal(await fillWholeRows(client, () => false), 'done')
  t.match(await recordedHeights(client), { hasWholeRows: false }, 'it was not filled to its end')
  t.equal(await fillWholeRows(client, () => true), 'done')
  t.match(await recordedHeights(client), { hasWholeRows: true })
  await new IndexPush(client, index, systemClock).run({ from: to + 1, to: top }, () => undefined)
  t.match(await wholeHeights(client), { from, to: top })
  t.match(
    await takeForeignRows(client, { from, to }, systemClock, () => undefined),
    { from, to },
    'once more',
  )
  t.match(await wholeHeights(client), { from, to: top }, 'and nothing is lost')
})
