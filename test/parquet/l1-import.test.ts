import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DuckDBInstance } from '@duckdb/node-api'
import t from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { l1Bands } from '../../src/bands/l1-kind.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import { isRefusal, type Refusal } from '../../src/format/refusal.js'
import { l1Digest, readL1Band } from '../../src/parquet/l1-band.js'
import { buildL1, type L1Order } from '../../src/parquet/l1-build.js'
import { importL1 } from '../../src/parquet/l1-import.js'
import { noHeaders } from '../../src/query/headers.js'
import { Answerer } from '../../src/query/query-answerer.js'
import { queryLimits } from '../../src/query/query-limits.js'
import { dump } from '../catalog/index-model.js'
import { mutated } from '../fuzz/mutate.js'
import { fc } from '../property.js'
import { folder, type L1House, l1House, madeChain, settle } from './l1-chain.js'
import { targetOf } from './l1-target.js'

async function band(house: L1House, path: string, order: Partial<L1Order> = {}): Promise<string> {
  mkdirSync(path, { recursive: true })
  const whole = { from: 0, to: house.index.topHeight() ?? 0, publisher: 'somebody', ...order }
  const made = await buildL1(house.index, path, whole, systemClock)
  if (isRefusal(made)) throw new Error(made.message)
  return path
}

async function take(house: L1House, path: string): Promise<Refusal | undefined> {
  const read = await readL1Band(path)
  if (isRefusal(read)) return read
  const refusal = (await l1Bands.check(path)) ?? (await importL1(path, read, targetOf(house)))
  house.index.refresh()
  return refusal
}

/** Long texts are compared by this, so that a difference does not fill the screen. */
const digest = (lines: readonly string[]): string =>
  createHash('sha256').update(lines.join('\n')).digest('hex')

const document = `query ($after: String, $owners: [String!], $tags: [TagFilter!], $sort: SortOrder) {
  transactions(first: 37, after: $after, owners: $owners, tags: $tags, sort: $sort) {
    pageInfo { hasNextPage } count
    edges { cursor node {
      id anchor recipient signature owner { address key } fee { winston ar } quantity { winston ar }
      data { size type } tags { name value } block { id height timestamp previous } bundledIn { id }
    } }
  }
}`
const blocksDocument = `{ blocks(first: 100) { edges { cursor node { id height timestamp previous } } } }`

/** Every page of some questions, as the text that goes over the wire. */
async function pages({ index }: L1House, query = document): Promise<string[]> {
  const limits = { ...queryLimits, timeMs: 60_000 }
  const answerer = new Answerer({ index, headers: noHeaders, clock: systemClock, limits })
  const ask = async (query: string, variables = {}): Promise<string> =>
    (await answerer.answer({ query, operationName: null, variables }, answerer.effort())).text
  const answers = [await ask(blocksDocument)]
  for (const wanted of [
    {},
    { sort: 'HEIGHT_ASC' },
    { tags: [{ name: 'App-Name', values: ['app-0', 'again'] }] },
    { tags: [{ name: 'content-type', values: ['text/plain'] }], sort: 'HEIGHT_ASC' },
  ]) {
    for (let after: string | undefined, more = true; more; ) {
      const page = await ask(query, { ...wanted, after })
      answers.push(page)
      const { data } = JSON.parse(page) as {
        data: { transactions: { pageInfo: { hasNextPage: boolean }; edges: { cursor: string }[] } }
      }
      more = data.transactions.pageInfo.hasNextPage
      after = data.transactions.edges.at(-1)?.cursor
    }
  }
  return answers
}

t.test('a gateway that began with bands answers the pages of the one that built them', async (t) => {
  const [builder, fresh] = [l1House(t), l1House(t)]
  await settle(builder, madeChain(140))
  const path = folder(t)
  await band(builder, join(path, 'band'), { signatures: true })
  t.equal(await take(fresh, join(path, 'band')), undefined)
  const wanted = await pages(builder)
  t.ok(wanted.length > 20)
  t.notMatch(wanted.join(), /"errors"/)
  t.equal(digest(await pages(fresh)), digest(wanted))
  t.same(checkIndex(fresh.tables).problems, [])

  t.comment('and can build the same band')
  await band(fresh, join(path, 'again'), { signatures: true })
  const [one, other] = [await readL1Band(join(path, 'band')), await readL1Band(join(path, 'again'))]
  t.equal(!isRefusal(one) && l1Digest(one), !isRefusal(other) && l1Digest(other))
})

t.test(
  'without signatures everything else is the same, and signatures are asked for elsewhere',
  async (t) => {
    const [builder, fresh] = [l1House(t), l1House(t)]
    await settle(builder, madeChain(60))
    const path = await band(builder, join(folder(t), 'band'))
    t.equal(await take(fresh, path), undefined)
    const plain = document.replace(' signature ', ' ')
    t.equal(digest(await pages(fresh, plain)), digest(await pages(builder, plain)))
  },
)

t.test('bands are imported in order; blocks that are there are skipped, gaps are refused', async (t) => {
  const builder = l1House(t)
  await settle(builder, madeChain(5030, 1))
  const path = folder(t)
  const low = await band(builder, join(path, 'low'), { to: 4999 })
  const high = await band(builder, join(path, 'high'), { from: 5000 })
  const fresh = l1House(t)
  t.equal(await take(fresh, low), undefined)
  t.equal(await take(fresh, high), undefined)
  t.equal(await take(fresh, low), undefined, 'it is there')
  t.equal(fresh.index.topHeight(), 5030)
  const ids = (house: L1House): string[] => dump(house.tables).filter((line) => line.startsWith('blockIds'))
  t.equal(digest(ids(fresh)), digest(ids(builder)))

  const other = l1House(t)
  await settle(other, madeChain(4999, 1, 77))
  t.match(await take(other, high), { message: /another branch/ })
  const young = l1House(t)
  await settle(young, madeChain(100, 1))
  t.match(await take(young, high), { message: /what is between is missing/ })
  t.equal(await take(young, low), undefined, 'goes on inside a band')
  t.equal(young.index.topHeight(), 4999)
  t.same(checkIndex(young.tables).problems, [])
})

t.test('a killed import is resumed and gives the same index', async (t) => {
  const builder = l1House(t)
  await settle(builder, madeChain(300, 24))
  const path = folder(t)
  await band(builder, join(path, 'bands', 'one'))
  const whole = l1House(t)
  await take(whole, join(path, 'bands', 'one'))
  const catalog = join(path, 'catalog')
  const importer = fileURLToPath(new URL('./killed-l1.js', import.meta.url))
  for (let kills = 0, done = false; !done; kills += 1) {
    const child = fork(importer, [catalog, join(path, 'bands')], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    const ended = once(child, 'exit')
    await once(child, 'message')
    await (kills < 7 ? Promise.race([ended, pause(60 + 60 * kills)]) : ended)
    done = child.exitCode === 0
    child.kill('SIGKILL')
    await ended
    const house = l1House(t, catalog)
    t.same(checkIndex(house.tables).problems, [], `after kill ${kills}`)
    await house.close()
  }
  const house = l1House(t, catalog)
  t.equal(digest(dump(house.tables)), digest(dump(whole.tables)))
})

t.test('a band with any error is refused before a row of it is imported', async (t) => {
  const builder = l1House(t)
  await settle(builder, madeChain(40))
  const path = folder(t)
  const good = await band(builder, join(path, 'good'))
  const fresh = l1House(t)
  let cases = 0
  const refused = async (name: string, change: (path: string) => void | Promise<void>): Promise<void> => {
    cases += 1
    const copy = join(path, `bad-${cases}`)
    cpSync(good, copy, { recursive: true })
    await change(copy)
    t.match(await take(fresh, copy), { refused: 'malformed' }, name)
  }
  const json = (copy: string, change: (band: Record<string, unknown>) => void): void => {
    const read = JSON.parse(readFileSync(join(copy, 'band.json'), 'utf8')) as Record<string, unknown>
    change(read)
    writeFileSync(join(copy, 'band.json'), JSON.stringify(read))
  }
  await refused('no JSON', (copy) => writeFileSync(join(copy, 'band.json'), '{'))
  await refused('a long band.json', (copy) => writeFileSync(join(copy, 'band.json'), ' '.repeat(70_000)))
  await refused('another layout', (copy) => json(copy, (read) => Object.assign(read, { schema: 'l1-9' })))
  await refused('a range off the grid', (copy) =>
    json(copy, (read) => Object.assign(read, { heightRange: [3, 40] })),
  )
  await refused('a range too long', (copy) =>
    json(copy, (read) => Object.assign(read, { heightRange: [0, 41] })),
  )
  await refused('one file too many', (copy) => writeFileSync(join(copy, 'more.parquet'), ''))
  await refused('an empty file', (copy) => writeFileSync(join(copy, 'tags.parquet'), ''))
  await refused('another table in its place', (copy) =>
    cpSync(join(copy, 'blocks.parquet'), join(copy, 'tags.parquet')),
  )
  const duck = await (await DuckDBInstance.create()).connect()
  const rewrite = async (copy: string, table: string, select: string): Promise<void> => {
    const file = join(copy, `${table}.parquet`)
    await duck.run(`CREATE OR REPLACE TABLE one AS SELECT * FROM '${file}'`)
    await duck.run(`COPY (SELECT ${select}) TO '${file}' (FORMAT PARQUET, COMPRESSION snappy)`)
  }
  await refused('one value changed', (copy) =>
    rewrite(
      copy,
      'transactions',
      '* REPLACE (CASE WHEN height = 20 THEN 5 ELSE reward END AS reward) FROM one',
    ),
  )
  await refused('a column of another type', (copy) =>
    rewrite(copy, 'tags', '* REPLACE (height::BIGINT AS height) FROM one'),
  )
  t.equal(fresh.index.topHeight(), undefined)

  t.comment('bytes that are damaged anywhere')
  for (let seed = 0; seed < 60; seed += 1) {
    const name = ['blocks', 'transactions', 'tags', 'wallets', 'lookup_tag'][seed % 5]
    const copy = join(path, 'damaged')
    cpSync(good, copy, { recursive: true })
    const file = join(copy, `${name}.parquet`)
    const bytes = readFileSync(file)
    const changed = Buffer.from(fc.sample(mutated([bytes]), { numRuns: 1, seed })[0] ?? bytes)
    writeFileSync(file, changed)
    const found = await take(fresh, copy)
    if (found === undefined && !bytes.equals(changed)) {
      // Bytes that say nothing of the rows (statistics, offsets of an index) may be other ones.
      t.equal(fresh.index.topHeight(), 40)
    }
  }

  t.comment('the same rows by another writer are the same band')
  const other = join(path, 'other')
  cpSync(good, other, { recursive: true })
  for (const table of ['blocks', 'block_transactions', 'transactions', 'tags', 'wallets'])
    await rewrite(other, table, '* FROM one')
  const late = l1House(t)
  t.equal(await take(late, other), undefined)
  t.equal(late.index.topHeight(), 40)
})
