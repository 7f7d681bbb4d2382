import type { ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/actor/clock.js'
import type { ClickhouseClient } from '../../src/clickhouse/clickhouse-client.js'
import { ensureTables } from '../../src/clickhouse/index-push.js'
import { StableIndex } from '../../src/clickhouse/stable-index.js'
import { isRefusal } from '../../src/format/refusal.js'
import { GraphqlOverHttp } from '../../src/query/graphql-over-http.js'
import { noHeaders } from '../../src/query/headers.js'
import { queryLimits } from '../../src/query/query-limits.js'
import { startClickhouse } from '../../test/engines/clickhouse.js'
import { openRig } from '../../test/query/rig.js'
import { say, table } from '../kit/say.js'

const help = `stable-pages: pages of GraphQL whose rows are in ClickHouse

  --rows N         rows in ClickHouse (10000000); 100 a block, 90 of them items
  --folder PATH    where they are kept, or are already (a temporary folder, removed at the end)
  --each N         times that each question is put, with other values (30)

The rows are made up by ClickHouse itself. Wall time of a page, processor time of this process and of ClickHouse's, and what
ClickHouse reads for a page: statements, parts of tables, rows, bytes. \`SELECT 1\` is what a statement costs at least, with the
bounds that each one has.
`

const ticksPerSecond = 100
const batchRows = 100_000
const [firstHeight, rowsPerBlock] = [1_000_000, 100]

const hash = (word: string): string => `substring(SHA256(${word}), 1, 32)`

/** Rows `from` to `to` of all: skewed owners, tags of a third, a hundredth, a thousandth of the rows, and of 40 of them. */
function fillStatement(from: number, to: number, rows: number): string {
  const rare = Math.floor(rows / 40)
  const item = `number % 10 != 0`
  const columns: Readonly<Record<string, string>> = {
    height: `toUInt32(${firstHeight} + intDiv(number, ${rowsPerBlock}))`,
    block_transaction_index: `toUInt16(intDiv(number % ${rowsPerBlock}, 10))`,
    is_data_item: item,
    id: hash(`toString(number)`),
    owner_address: hash(
      `concat('owner ', toString(toUInt32(100000 * pow(cityHash64(number) % 1000000 / 1000000, 3))))`,
    ),
    target: `if(${item}, '', ${hash(`concat('owner ', toString(cityHash64(number, 1) % 100000))`)})`,
    data_size: `toUInt64(cityHash64(number, 2) % 1000000)`,
    content_type: `'image/png'`,
    parent_id: `if(${item}, ${hash(`toString(number - number % 10)`)}, '')`,
    root_transaction_id: `if(${item}, ${hash(`toString(number - number % 10)`)}, '')`,
    block_indep_hash: `substring(SHA512(toString(intDiv(number, ${rowsPerBlock}))), 1, 48)`,
    block_timestamp: `toUInt32(1600000000 + intDiv(number, ${rowsPerBlock}) * 120)`,
    inserted_at: `now()`,
    tags: `arrayFilter(t -> t.2 != '', [
      ('App-Name', ['Drive', 'Mail', 'Mirror'][number % 3 + 1]), ('Content-Type', ['image/png', 'text/html'][number % 2 + 1]),
      ('Hundredth', toString(cityHash64(number, 3) % 100)), ('Unit', toString(cityHash64(number, 4) % 1000)),
      ('File-Id', toString(number)), ('Rare', if(number % ${rare} = 7, 'yes', ''))])`,
    tags_count: `toUInt32(5)`,
  }
  const selected = Object.entries(columns).map(([name, value]) => `${value} AS ${name}`)
  const names = Object.keys(columns).join(', ')
  return `INSERT INTO sluice_rows (${names}) SELECT ${selected.join(', ')} FROM numbers(${from}, ${to - from})`
}

async function done(client: ClickhouseClient, statement: string): Promise<void> {
  const written = await client.write(statement)
  if (isRefusal(written)) throw new Error(written.message)
}

async function fill(client: ClickhouseClient, rows: number): Promise<void> {
  await ensureTables(client)
  for (let from = 0; from < rows; from += batchRows) {
    await done(client, fillStatement(from, Math.min(rows, from + batchRows), rows))
    say(`${Math.min(rows, from + batchRows)} rows`)
  }
  const to = firstHeight + Math.ceil(rows / rowsPerBlock) - 1
  await done(
    client,
    `INSERT INTO sluice_heights (from_height, to_height, row_count, version) VALUES (${firstHeight}, ${to}, ${rows}, 1)`,
  )
}

/** Processor time of another process so far, in milliseconds. */
function spentBy(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond
}

const counted = ['SelectQuery', 'SelectedParts', 'SelectedRows', 'SelectedBytes'] as const

/** What ClickHouse has read so far, in the order of `counted`. */
async function readSoFar(client: ClickhouseClient): Promise<number[]> {
  const words = counted.map((event) => `sumIf(value, event = '${event}')`)
  const text = await client.ask(`SELECT ${words.join(', ')} FROM system.events FORMAT TabSeparated`, 1024)
  if (isRefusal(text)) throw new Error(text.message)
  return text.toString().trim().split('\t').map(Number)
}

type Draw = () => { readonly text: string; readonly variables: object }

const sha256 = (word: string): string => createHash('sha256').update(word).digest('base64url')
const below = (count: number): number => Math.floor(Math.random() * count)
const fields =
  'id owner { address } data { size } tags { name value } block { id height timestamp } bundledIn { id }'
const pageText = `query($ids: [ID!], $owners: [String!], $recipients: [String!], $tags: [TagFilter!], $block: BlockFilter,
    $sort: SortOrder, $first: Int) {
  transactions(ids: $ids, owners: $owners, recipients: $recipients, tags: $tags, block: $block, sort: $sort, first: $first) {
    pageInfo { hasNextPage } edges { cursor node { ${fields} } } } }`

/** Questions by name, each with other values at each call. */
function questionsOf(rows: number): Readonly<Record<string, Draw>> {
  const blocks = Math.floor(rows / rowsPerBlock)
  const page =
    (variables: () => object): Draw =>
    () => ({ text: pageText, variables: { first: 10, ...variables() } })
  const owner = (): string => sha256(`owner ${below(1000)}`)
  const tag = (name: string, value: string): object => ({ name, values: [value] })
  const middle = (): object => ({ max: firstHeight + below(blocks) })
  return {
    'one id': () => ({
      text: `query($id: ID!) { transaction(id: $id) { ${fields} } }`,
      variables: { id: sha256(`${below(rows)}`) },
    }),
    'an id that is nowhere': () => ({
      text: `query($id: ID!) { transaction(id: $id) { ${fields} } }`,
      variables: { id: sha256(`nowhere ${Math.random()}`) },
    }),
    'ten ids': page(() => ({ ids: Array.from({ length: 10 }, () => sha256(`${below(rows)}`)) })),
    'newest rows': page(() => ({})),
    'rows up to a height': page(() => ({ block: middle() })),
    'of one owner': page(() => ({ owners: [owner()] })),
    'of one recipient': page(() => ({ recipients: [owner()] })),
    'a tag of a third of the rows': page(() => ({ tags: [tag('App-Name', 'Mail')], block: middle() })),
    'a tag of a hundredth': page(() => ({ tags: [tag('Hundredth', `${below(100)}`)] })),
    'a tag of a thousandth, oldest first': page(() => ({
      tags: [tag('Unit', `${below(1000)}`)],
      sort: 'HEIGHT_ASC',
    })),
    'a tag of 40 rows': page(() => ({ tags: [tag('Rare', 'yes')] })),
    'a tag of one row': page(() => ({ tags: [tag('File-Id', `${below(rows)}`)] })),
    'one owner, one tag': page(() => ({ owners: [owner()], tags: [tag('App-Name', 'Drive')] })),
    'two tags': page(() => ({ tags: [tag('App-Name', 'Drive'), tag('Hundredth', `${below(100)}`)] })),
  }
}

function share(sorted: readonly number[], part: number): string {
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(1)
}

/** Wall time and processor times of a question, put some times, and what is read for it. */
async function measured(
  name: string,
  each: number,
  { child, client }: Measured,
  act: () => Promise<void>,
): Promise<string[]> {
  for (let warm = 0; warm < 3; warm += 1) await act()
  const pid = child.pid ?? 0
  const before = await readSoFar(client)
  const [here, there] = [process.cpuUsage(), spentBy(pid)]
  const wall: number[] = []
  for (let at = 0; at < each; at += 1) {
    const begun = systemClock.monotonic()
    await act()
    wall.push(systemClock.monotonic() - begun)
  }
  const { user, system } = process.cpuUsage(here)
  wall.sort((one, other) => one - other)
  const spent = [(user + system) / 1000 / each, (spentBy(pid) - there) / each].map((ms) => ms.toFixed(1))
  const read = (await readSoFar(client)).map((count, at) => (count - (before[at] ?? 0)) / each)
  const [statements = 0, parts = 0, rows = 0, bytes = 0] = read
  const reads = [statements.toFixed(1), parts.toFixed(0), rows.toFixed(0), (bytes / 1024).toFixed(0)]
  return [name, share(wall, 0.5), share(wall, 0.99), ...spent, ...reads]
}

interface Measured {
  readonly child: ChildProcess
  readonly client: ClickhouseClient
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rows: { type: 'string', default: '10000000' },
      each: { type: 'string', default: '30' },
      folder: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) {
    say(help)
    return
  }
  const [rows, each] = [Number(values.rows), Number(values.each)]
  const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'sluice-stable-'))
  mkdirSync(folder, { recursive: true })
  const engine = await startClickhouse(folder)
  const client = engine.client({ timeoutMs: 600_000, writeMs: 600_000 })
  const rig = await openRig([])
  try {
    if (isRefusal(await client.ask('SELECT 1 FROM sluice_heights LIMIT 1 FORMAT RowBinary', 1024)))
      await fill(client, rows)
    const stable = new StableIndex(client, systemClock, { info: () => undefined, warn: () => undefined })
    const limits = { ...queryLimits, timeMs: 60_000, wallMs: 60_000 }
    const answers = new GraphqlOverHttp({
      index: rig.index,
      headers: noHeaders,
      clock: systemClock,
      limits,
      stable,
    })
    const about = { child: engine.child, client }
    const found = [
      await measured('SELECT 1', each, about, async () => {
        const one = await client.ask('SELECT 1 FORMAT RowBinary', 1024)
        if (isRefusal(one)) throw new Error(one.message)
      }),
    ]
    for (const [name, draw] of Object.entries(questionsOf(rows)))
      found.push(
        await measured(name, each, about, async () => {
          const { text: query, variables } = draw()
          const body = Buffer.from(JSON.stringify({ query, variables }))
          const request = { method: 'POST', query: '', contentType: 'application/json', body }
          const answer = JSON.parse((await answers.answer(request)).body) as { errors?: unknown }
          if (answer.errors !== undefined) throw new Error(`${name}: ${JSON.stringify(answer.errors)}`)
        }),
      )
    const head = ['ms', 'p50', 'p99', 'CPU here', 'CPU there', 'statements', 'parts', 'rows', 'KiB']
    for (const line of table(head, found)) say(line)
  } finally {
    await rig.close()
    await engine.stop()
    if (values.folder === undefined) rmSync(folder, { recursive: true, force: true })
  }
}

await main()
