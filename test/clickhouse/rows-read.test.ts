/** How many rows ClickHouse reads for a page: by its own counters, whatever the number of rows in the tables. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { Selection } from '../../src/catalog/selection.js'
import type { ClickhouseClient } from '../../src/clickhouse/clickhouse-client.js'
import { recordHeights } from '../../src/clickhouse/heights.js'
import { ensureTables } from '../../src/clickhouse/index-push.js'
import { StableIndex } from '../../src/clickhouse/stable-index.js'
import { isRefusal } from '../../src/format/refusal.js'
import { clickhouseAbsent, startClickhouse } from '../engines/clickhouse.js'
import { quiet } from './both-answers.js'

const [rows, rowsPerBlock] = [60_000, 20] as const
const heights = { from: 0, to: rows / rowsPerBlock - 1, rows, version: 1 }
/** In every table several thousand rows would be read with granules of the usual size. */
const readMax = 4000

/** Made up by ClickHouse itself: 100 owners, a tag of each second row, one of each hundredth, and one of one row. */
const fill = `INSERT INTO sluice_rows (height, block_transaction_index, id, owner_address, target, inserted_at, tags)
  SELECT toUInt32(intDiv(number, ${rowsPerBlock})), toUInt16(number % ${rowsPerBlock}),
    substring(SHA256(toString(number)), 1, 32), substring(SHA256(toString(number % 100)), 1, 32),
    substring(SHA256(toString(number % 101)), 1, 32), now(),
    [('Half', toString(number % 2)), ('Hundredth', toString(number % 97)), ('One', toString(number))]
  FROM numbers(${rows})`

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()
const tag = (name: string, value: string) => ({
  name: Buffer.from(name),
  values: [Buffer.from(value)],
  match: 'is' as const,
})

const selections: Readonly<Record<string, Selection>> = {
  'one id': { ids: [sha256('4711')] },
  'an id that is nowhere': { ids: [sha256('nowhere')] },
  'newest rows': {},
  'rows up to a height': { maxHeight: 1234 },
  'of one owner': { owners: [sha256('7')] },
  'of one recipient': { recipients: [sha256('8')] },
  'a tag of each second row': { tags: [tag('Half', '1')] },
  'a tag of each hundredth': { tags: [tag('Hundredth', '5')] },
  'a tag of one row': { tags: [tag('One', '4711')] },
}

async function readSoFar(client: ClickhouseClient): Promise<number> {
  const sql = "SELECT sumIf(value, event = 'SelectedRows') FROM system.events FORMAT TabSeparated"
  return Number(String(await client.ask(sql, 1000)))
}

t.test('a page reads some granules, and not the tables', clickhouseAbsent, async (t) => {
  const engine = await startClickhouse()
  t.teardown(() => engine.stop())
  const client = engine.client()
  await ensureTables(client)
  t.equal(await client.write(fill), 'done')
  t.equal(await recordHeights(client, heights), 'done')
  const stable = new StableIndex(client, systemClock, quiet)
  t.match(await stable.heights(), { to: heights.to })
  for (const [name, wanted] of Object.entries(selections)) {
    const before = await readSoFar(client)
    const page = await stable.rows(wanted, { backwards: true, limit: 10 }, heights)
    const read = (await readSoFar(client)) - before
    t.comment(`${name}: ${read} rows`)
    t.notOk(isRefusal(page))
    t.ok(read <= readMax, `${name}: ${read} rows`)
  }
})
