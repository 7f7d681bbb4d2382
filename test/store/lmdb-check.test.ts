import { randomFillSync } from 'node:crypto'
import { copyFileSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openEnvironment } from '../../src/store/lmdb.js'
import { databaseFault } from '../../src/store/lmdb-check.js'
import { scratch } from '../scratch.js'

const all = Number.POSITIVE_INFINITY

/** A database with some thousand entries in two tables, large values, and pages that were freed. */
async function sound(durable: boolean): Promise<string> {
  const path = join(scratch('lmdb'), 'sound')
  const environment = openEnvironment(path, 16, durable)
  const [one, other] = [environment.table('one'), environment.table('other')]
  for (let round = 0; round < 20; round += 1) {
    environment.write(() => {
      for (let n = 0; n < 300; n += 1) {
        one.put(Buffer.from(`key ${round} ${n}`), Buffer.alloc(60, n))
        if (n % 50 === 0) other.put(Buffer.from(`large ${round} ${n}`), Buffer.alloc(9000, n))
      }
    })
    environment.write(() => {
      for (let n = 0; n < 300; n += 2) one.remove(Buffer.from(`key ${round} ${n}`))
    })
  }
  await environment.close()
  return path
}

const places: ReadonlyMap<boolean, string> = new Map([
  [false, await sound(false)],
  [true, await sound(true)],
])

/** A copy of a sound database, changed as `spoil` says. */
function spoilt(durable: boolean, spoil: (file: string, bytes: Buffer) => void): string {
  const path = join(scratch('lmdb'), 'spoilt')
  mkdirSync(path)
  const file = join(path, 'data.mdb')
  copyFileSync(join(places.get(durable) ?? '', 'data.mdb'), file)
  spoil(file, readFileSync(file))
  return path
}

t.test('no fault is reported for a sound database, an empty one, or none', async (t) => {
  for (const durable of [false, true]) {
    t.equal(databaseFault(places.get(durable) ?? '', all), undefined)
    t.equal(
      databaseFault(
        spoilt(durable, (file) => truncateSync(file, 0)),
        all,
      ),
      undefined,
    )
  }
  t.equal(databaseFault('/nowhere', all), undefined)
})

t.test('a database that is being written to has a sound header at any time', async (t) => {
  const path = join(scratch('lmdb'), 'busy')
  const environment = openEnvironment(path)
  const table = environment.table('one')
  for (let n = 0; n < 200; n += 1) {
    environment.write(() => table.put(Buffer.from(`key ${n}`), Buffer.alloc(3000, n)))
    if (databaseFault(path, 0) !== undefined) t.fail(`after ${n} entries: ${databaseFault(path, 0)}`)
  }
  await environment.close()
  t.equal(databaseFault(path, all), undefined)
})

/** Where the page at the root of the table of tables begins, by the newest header. */
function rootOf(bytes: Buffer): number {
  const transaction = (page: number): bigint => bytes.readBigUInt64LE(page * 4096 + 24 + 0x80)
  const newest = transaction(0) > transaction(1) ? 0 : 1
  return Number(bytes.readBigUInt64LE(newest * 4096 + 24 + 0x70)) * 4096
}

t.test('a page that LMDB would take for one of its own transaction is reported', (t) => {
  // Numbers of transactions are at byte 8 of a page, flags at byte 18.
  const bits: readonly (readonly [at: number, bit: number])[] = [
    ...[10, 12, 15].map((at) => [at, 0x02] as const),
    ...[0x10, 0x20, 0x40].map((flag) => [18, flag] as const),
    [19, 0x40],
  ]
  for (const durable of [false, true]) {
    for (const [at, bit] of bits) {
      const path = spoilt(durable, (file, bytes) => {
        const place = rootOf(bytes) + at
        bytes[place] = (bytes[place] ?? 0) ^ bit
        writeFileSync(file, bytes)
      })
      t.match(databaseFault(path, all), /page \d+ was overwritten/, `byte ${at}, bit ${bit}`)
    }
  }
  t.end()
})

t.test('damage that would end the process is reported before LMDB opens the file', async (t) => {
  const pageBytes = 4096
  const ways: Readonly<Record<string, (file: string, bytes: Buffer) => void>> = {
    zeros: (file, bytes) => writeFileSync(file, bytes.fill(0)),
    noise: (file, bytes) => writeFileSync(file, randomFillSync(bytes)),
    'a text': (file) => writeFileSync(file, 'this is no database\n'.repeat(1000)),
    'a few bytes': (file) => writeFileSync(file, 'x'),
    'one page of it': (file) => truncateSync(file, pageBytes),
    'its headers alone': (file) => truncateSync(file, 2 * pageBytes),
    'half of it': (file, bytes) => truncateSync(file, Math.floor(bytes.length / 2)),
    'zeros behind its headers': (file, bytes) => writeFileSync(file, bytes.fill(0, 2 * pageBytes)),
    'noise behind its headers': (file, bytes) => {
      randomFillSync(bytes, 2 * pageBytes)
      writeFileSync(file, bytes)
    },
    'zeros behind one page': (file, bytes) => writeFileSync(file, bytes.fill(0, pageBytes)),
    'another version': (file, bytes) => {
      bytes.writeUInt32LE(7, 28)
      writeFileSync(file, bytes)
    },
    'pages of no size': (file, bytes) => {
      bytes.writeUInt32LE(1000, 48)
      writeFileSync(file, bytes)
    },
  }
  for (const durable of [false, true]) {
    for (const [name, spoil] of Object.entries(ways)) {
      const path = spoilt(durable, spoil)
      const fault = databaseFault(path, 1000)
      t.type(fault, 'string', `${name}: ${fault}`)
    }
  }
  const text = spoilt(false, (file) => writeFileSync(file, 'this is no database\n'.repeat(1000)))
  t.throws(() => openEnvironment(text), /data\.mdb is broken: it is no database of LMDB/)
})

t.test('a file that lacks only free pages is not looked at whole, however large it is', async (t) => {
  const path = join(scratch('lmdb'), 'short')
  const environment = openEnvironment(path)
  const table = environment.table('one')
  environment.write(() => {
    for (let n = 0; n < 3000; n += 1) table.put(Buffer.from(`key ${n}`), Buffer.alloc(60, n))
  })
  // Its list of free pages has room then, so that the next transaction ends below what it takes and gives back.
  for (let n = 0; n < 30; n += 1)
    environment.write(() => table.put(Buffer.from('key 1'), Buffer.alloc(60, n)))
  const large = Array.from({ length: 40 }, (_, n) => Buffer.from(`large ${n}`))
  environment.write(() => {
    for (const key of large) table.put(key, Buffer.alloc(9000))
    for (const key of large) table.remove(key)
  })
  await environment.close()
  const file = join(path, 'data.mdb')
  const bytes = readFileSync(file)
  const lastPage = Math.max(...[0, 1].map((meta) => Number(bytes.readBigUInt64LE(meta * 4096 + 24 + 0x78))))
  t.ok((lastPage + 1) * 4096 - bytes.length > 100 * 4096, 'LMDB left them out')
  t.equal(databaseFault(path, all), undefined)
  // A page far below the roots: whoever looks at all of them finds it, and only whoever does.
  const leaf = bytes.indexOf('key 2000')
  const broken = Buffer.from(bytes).fill(0xff, leaf - (leaf % 4096), leaf - (leaf % 4096) + 4096)
  writeFileSync(file, broken)
  t.match(databaseFault(path, all), /^page \d+ was overwritten$/)
  t.equal(databaseFault(path, 3), undefined)
  // What is used is missing, too.
  writeFileSync(file, broken.subarray(0, bytes.length - 20 * 4096))
  t.match(databaseFault(path, 3), /cut off/)
  // Whoever looks at all pages looks at the order of keys, too, as in a file that lacks nothing.
  const disordered = Buffer.from(bytes)
  // Unused room of a page may hold an old copy in front of the entry itself.
  disordered.write('zey', bytes.lastIndexOf('key 2000'))
  writeFileSync(file, disordered)
  t.match(databaseFault(path, all), /^page \d+ holds keys out of order$/)
})
