import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { l1Bands } from '../../src/bands/l1-kind.js'
import { isRefusal } from '../../src/format/refusal.js'
import { l1Digest, l1Ranges, readL1Band } from '../../src/parquet/l1-band.js'
import { type BuiltL1, buildL1, type L1Order } from '../../src/parquet/l1-build.js'
import {
  lookupColumns,
  lookupFile,
  lookupNames,
  sha256of64,
  tableColumns,
  tableFile,
  tableNames,
  type Value,
} from '../../src/parquet/l1-layout.js'
import { RowDigest } from '../../src/parquet/row-digest.js'
import { folder, type L1House, l1House, madeChain, settle } from './l1-chain.js'

const order: L1Order = { from: 0, to: 120, publisher: 'somebody' }

async function built(house: L1House, path: string, change: Partial<L1Order> = {}): Promise<BuiltL1> {
  mkdirSync(path)
  const made = await buildL1(house.index, path, { ...order, ...change }, systemClock)
  if (isRefusal(made)) throw new Error(made.message)
  return made
}

/** The digest of a file's rows as DuckDB reads them, without any code of ours but the digest. */
async function duckDigest(path: string, columns: readonly (readonly [string, string])[]) {
  const duck = await (await DuckDBInstance.create()).connect()
  const described = await (await duck.runAndReadAll(`DESCRIBE SELECT * FROM '${path}'`)).getRows()
  const read = await duck.runAndReadAll(`SELECT * FROM '${path}'`)
  const digest = new RowDigest()
  for (const row of read.getRows()) {
    digest.add(
      row.map((value): Value => {
        if (value === null || ['string', 'bigint', 'number', 'boolean'].includes(typeof value)) {
          return value as Value
        }
        const found = value as { bytes?: Uint8Array; value?: bigint }
        return found.bytes ?? found.value ?? null
      }),
    )
  }
  return {
    types: described.map(([name, type]) => [name, type]),
    wanted: columns.map(([name, type]) => [name, type]),
    rows: read.currentRowCount,
    digest: digest.hex(),
  }
}

t.test('DuckDB finds the types, rows and digests that the band says', async (t) => {
  const house = l1House(t)
  await settle(house, madeChain(130))
  const path = join(folder(t), 'band')
  const { band } = await built(house, path)
  for (const name of tableNames) {
    const found = await duckDigest(join(path, tableFile(name)), tableColumns[name])
    t.same(found.types, found.wanted, `types of ${name}`)
    t.same({ rows: found.rows, rowDigest: found.digest }, band.tables[name], `rows of ${name}`)
  }
  for (const name of lookupNames) {
    const found = await duckDigest(join(path, lookupFile(name)), lookupColumns[name])
    t.same(found.types, found.wanted, `types of the lookup ${name}`)
    t.same({ rows: found.rows, rowDigest: found.digest }, band.lookups[name], `rows of the lookup ${name}`)
  }
  t.equal(await l1Bands.check(path), undefined, 'we find the same')
})

t.test('DuckDB finds what is in the tables by their lookups', async (t) => {
  const house = l1House(t)
  await settle(house, madeChain(130))
  const path = join(folder(t), 'band')
  await built(house, path)
  const duck = await (await DuckDBInstance.create()).connect()
  const ask = async (text: string) => (await duck.runAndReadAll(text)).getRows()
  const at = (name: string): string => `'${join(path, name)}.parquet'`
  const byTable = await ask(
    `SELECT tag_name::VARCHAR n, tag_value v, count(DISTINCT id), min(height), max(height) FROM ${at('tags')}
     WHERE tag_name = 'App-Name'::BLOB GROUP BY ALL ORDER BY v`,
  )
  const byLookup = await ask(
    `SELECT name::VARCHAR, value v, txs, first_height, last_height FROM ${at('lookup_tag')}
     WHERE name8 = ${sha256of64(Buffer.from('App-Name'))} ORDER BY v`,
  )
  t.ok(byTable.length > 3)
  t.same(byLookup, byTable)
  const order = await ask(
    `SELECT count(*) FROM (SELECT name8 >= lag(name8) OVER () ok FROM ${at('lookup_tag')}) WHERE NOT ok`,
  )
  t.same(order, [[0n]], 'in the order of the hashes')
  const sent = await ask(
    `SELECT count(*), sum(data_size)::VARCHAR FROM ${at('lookup_wallet')} WHERE role = 0`,
  )
  t.same(sent, await ask(`SELECT count(*), sum(data_size)::VARCHAR FROM ${at('transactions')}`))
  const received = await ask(`SELECT count(*) FROM ${at('lookup_wallet')} WHERE role = 1`)
  t.same(received, await ask(`SELECT count(*) FROM ${at('transactions')} WHERE octet_length(target) > 0`))
  const root = await ask(`SELECT count(*) FROM ${at('blocks')} WHERE tx_root IS NOT NULL`)
  t.same(root, [[0n]], 'no tx_root below the height at which the layout has it')
})

t.test(
  'two builders of the same heights make bands with the same digest, however they came to the index',
  async (t) => {
    const [one, other] = [l1House(t), l1House(t)]
    await settle(one, madeChain(130))
    await settle(other, madeChain(125))
    const path = folder(t)
    const first = await built(one, join(path, 'one'))
    const second = await built(other, join(path, 'other'), { publisher: 'somebody else' })
    t.equal(l1Digest(first.band), l1Digest(second.band))
    t.match(first.id, /^l1-h0-120-[0-9a-f]{8}-[0-9a-f]{12}$/)
    t.not(first.id, second.id, 'each has its own tag')
    t.equal(first.id.slice(-12), second.id.slice(-12))
    const kept = await built(one, join(path, 'kept'), { signatures: true })
    t.not(l1Digest(kept.band), l1Digest(first.band), 'signatures are rows too')
    t.equal(await l1Bands.check(join(path, 'kept')), undefined)
  },
)

t.test('a band is described as publications list it', async (t) => {
  const house = l1House(t)
  await settle(house, madeChain(20))
  const path = join(folder(t), 'band')
  const { band } = await built(house, path, { to: 20, supersedes: ['l1-h0-10-00000000-000000000000'] })
  t.same(await readL1Band(path), band)
  t.match(await l1Bands.describe(path), {
    heightRange: [0, 20],
    records: band.tables.transactions.rows,
    supersedes: ['l1-h0-10-00000000-000000000000'],
    metadata: { schema: 'l1-3' },
  })
})

t.test('no band is built of an incomplete range', async (t) => {
  const house = l1House(t)
  const chain = [...madeChain(30)]
  const gap = chain.find(({ transactions }) => transactions.length > 2)
  await settle(
    house,
    chain.map((made) => (made === gap ? { ...made, transactions: made.transactions.slice(1) } : made)),
  )
  const path = folder(t)
  mkdirSync(join(path, 'gap'))
  t.match(await buildL1(house.index, join(path, 'gap'), { ...order, to: 20 }, systemClock), {
    refused: 'unknown',
    message: /transactions of block/,
  })
  mkdirSync(join(path, 'high'))
  const high = await buildL1(house.index, join(path, 'high'), { ...order, from: 20, to: 31 }, systemClock)
  t.match(high, { message: /block 31 is not in the index/ })
  const old = l1House(t)
  await settle(
    old,
    [...madeChain(10, 2, 9)].map(({ block: { header: _header, ...block }, transactions }) => {
      return { block, transactions }
    }),
  )
  mkdirSync(join(path, 'old'))
  const without = await buildL1(old.index, join(path, 'old'), { ...order, to: 10 }, systemClock)
  t.match(without, { message: /did not keep its header/ })
})

t.test('ranges lie on the grid', async (t) => {
  t.same(l1Ranges(0, 12_000), [
    [0, 4999],
    [5000, 9999],
    [10_000, 12_000],
  ])
  const high = l1Ranges(0, 207_000)
  t.same(high.slice(0, 3), [
    [0, 99_999],
    [100_000, 199_999],
    [200_000, 204_999],
  ])
  t.same(high.at(-1), [205_000, 207_000])
  t.same(l1Ranges(93_001, 100_002).slice(0, 2), [
    [95_000, 99_999],
    [100_000, 100_002],
  ])
  t.same(l1Ranges(1, 4000), [], 'the index begins behind the line and ends in front of the next')
})
