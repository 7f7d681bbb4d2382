import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import {
  readColumns,
  rowTables,
  schemaStatements,
  wholeRowTable,
} from '../../src/clickhouse/clickhouse-schema.js'
import { recordedHeights, wholeHeights } from '../../src/clickhouse/heights.js'
import { ensureTables, IndexPush } from '../../src/clickhouse/index-push.js'
import { RowBinaryReader } from '../../src/clickhouse/row-binary.js'
import { readRow, type StableRow } from '../../src/clickhouse/stable-row.js'
import { isRefusal } from '../../src/format/refusal.js'
import { clickhouseAbsent, startClickhouse } from '../engines/clickhouse.js'
import { eventually } from '../eventually.js'
import { openChainHouse } from './house.js'

type Client = ReturnType<Awaited<ReturnType<typeof startClickhouse>>['client']>

async function rowsIn(client: Client, table: string): Promise<StableRow[]> {
  const order = 'height, block_transaction_index, is_data_item, id'
  const [columns, format] =
    table === wholeRowTable ? ['row', 'RawBLOB'] : [readColumns.join(', '), 'RowBinary']
  const bytes = await client.ask(
    `SELECT ${columns} FROM ${table} FINAL ORDER BY ${order} FORMAT ${format}`,
    2 ** 26,
  )
  if (isRefusal(bytes)) throw new Error(bytes.message)
  const rows: StableRow[] = []
  for (const from = new RowBinaryReader(bytes); from.more; ) rows.push(readRow(from))
  return rows
}

async function numberFrom(client: Client, sql: string): Promise<number> {
  const bytes = await client.ask(sql, 1000)
  if (isRefusal(bytes)) throw new Error(bytes.message)
  return Number(bytes.toString())
}

t.test('rows of stable heights are in all four tables as the index has them', clickhouseAbsent, async (t) => {
  const engine = await startClickhouse()
  const house = await openChainHouse(150)
  t.teardown(async () => {
    await house.close()
    await engine.stop()
  })
  const client = engine.client()
  t.equal(await ensureTables(client), 'done')
  t.equal(await ensureTables(client), 'done', 'and once more')
  const top = house.index.topHeight() ?? 0
  const to = top - 3
  const from = house.index.linkedDown(to, 10_000)
  const push = new IndexPush(client, house.index, systemClock, { rows: 10, bytes: 2 ** 20 })
  const heights: number[] = []
  const done = await push.run({ from, to }, ({ height }) => heights.push(height))
  if (isRefusal(done) || done === 'replaced') throw new Error(`no push: ${JSON.stringify(done)}`)
  const expected = house.index.stretch(from, to, undefined, 100_000)
  t.ok(expected.length > 40, `enough rows: ${expected.length}`)
  t.equal(done.rows, expected.length)
  t.ok(heights.length > 2, 'in several batches')
  t.match(await wholeHeights(client), { from, to, rows: expected.length })
  t.match(await recordedHeights(client), { hasWholeRows: true })
  for (const table of [...Object.keys(rowTables), wholeRowTable]) {
    const found = await rowsIn(client, table)
    t.equal(found.length, expected.length, table)
    for (const [at, { row, block }] of found.entries()) {
      const { isUnjudged: _, ...wanted } = expected[at] as (typeof expected)[number]
      const { isUnjudged: is, ...given } = row
      t.strictSame(
        plain(given),
        plain({ ...wanted, signature: undefined, signatureType: wanted.signatureType || undefined }),
        `row ${at} of ${table}`,
      )
      t.ok(is, 'nobody here has checked it')
      const own = house.index.block(row.height ?? -1)
      t.match(block, { id: own?.id, previous: own?.previous, timestamp: own?.timestamp })
    }
  }
  const tags = expected.reduce(
    (sum, row) => sum + new Set(row.tags.map(tagText)).size + (row.isItem ? 1 : 0),
    0,
  )
  t.equal(
    await numberFrom(client, 'SELECT count() FROM sluice_tags FINAL'),
    tags,
    'each tag of each row, and its bundle',
  )

  t.test('a second push changes nothing, and a push of more heights adds to what is whole', async (t) => {
    const again = new IndexPush(client, house.index, systemClock, { rows: 1000, bytes: 2 ** 20 })
    await again.run({ from, to }, () => undefined)
    t.equal((await rowsIn(client, 'transactions')).length, expected.length)
    t.match(await wholeHeights(client), { from, to })
    await house.play(30)
    const higher = (house.index.topHeight() ?? 0) - 3
    if (higher <= to) return
    await again.run({ from: to + 1, to: higher }, () => undefined)
    t.match(await wholeHeights(client), { from, to: higher })
  })
})

const tagText = ({ name, value }: { name: Buffer; value: Buffer }): string =>
  `${name.toString('hex')}=${value.toString('hex')}`

function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, plain(field)]))
}

t.test('a writer that was replaced records nothing', clickhouseAbsent, async (t) => {
  const engine = await startClickhouse()
  const house = await openChainHouse(80)
  t.teardown(async () => {
    await house.close()
    await engine.stop()
  })
  const client = engine.client()
  await ensureTables(client)
  const to = (house.index.topHeight() ?? 0) - 3
  const push = new IndexPush(client, house.index, systemClock, { rows: 5, bytes: 2 ** 20 })
  const leads = [true, false]
  const from = house.index.linkedDown(to, 10_000)
  t.equal(
    await push.run(
      { from, to },
      () => undefined,
      async () => leads.shift() ?? false,
    ),
    'replaced',
  )
  const whole = await wholeHeights(client)
  t.ok(whole !== undefined && !isRefusal(whole) && whole.to < to, 'only what it wrote before')
})

t.test(
  'a server that refuses, lies or is away is a refusal, and no word names the password',
  clickhouseAbsent,
  async (t) => {
    const engine = await startClickhouse()
    t.teardown(() => engine.stop())
    const wrong = engine.client({ password: 'wrong-one' })
    const refused = await wrong.ask('SELECT 1', 1000)
    t.match(refused, { refused: 'upstream' })
    t.notMatch(JSON.stringify(refused), /wrong-one/)
    t.equal(wrong.fault, 'credentials')
    const client = engine.client({ timeoutMs: 10_000 })
    t.match(await client.ask('SELECT nonsense', 1000), { refused: 'upstream' })
    t.match(
      await client.ask('SELECT number FROM numbers(100000)', 1000),
      { refused: 'too-large' },
      'more than wanted',
    )
    const rows = await client.ask('SELECT 1 FROM nowhere', 1000)
    t.match(rows, { refused: 'unknown' })
    t.equal(client.fault, 'tables')
    for (let tries = 0; tries < 3; tries += 1)
      t.match(await client.ask('SELECT nonsense', 1000), { refused: 'upstream' })
    t.match(await client.ask('SELECT 1', 1000), { refused: 'busy' }, 'left alone after three failures')
    const again = await eventually('it is tried again', async () => {
      const answer = await client.ask('SELECT 1', 1000)
      return isRefusal(answer) ? undefined : answer
    })
    t.equal(String(again), '1\n')
    t.equal(client.fault, undefined)
    engine.child.kill('SIGSTOP')
    t.match(await client.ask('SELECT 1', 1000), { refused: 'late' }, 'it hangs, and nobody here does')
    t.equal(client.fault, 'away')
    engine.child.kill('SIGCONT')
  },
)

t.test('the statements of the tables name what the other gateway names', async (t) => {
  const text = schemaStatements().join('\n')
  for (const name of ['transactions', 'id_transactions', 'owner_transactions', 'target_transactions'])
    t.match(
      text,
      `EXISTS ${name} (height UInt32, block_transaction_index UInt16, is_data_item Bool, id String`,
    )
})
