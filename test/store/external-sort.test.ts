import { readdirSync } from 'node:fs'
import t from 'tap'
import { ExternalSort } from '../../src/store/external-sort.js'
import { fc } from '../property.js'

// Blocks of a few entries, so that nearly all of them go through the file.
const unique = { keyBytes: 32, unique: true, blockBytes: 256 }
const plain = { unique: false, blockBytes: 64 }

t.test(
  'records of any number come out sorted, one a key: the highest, then the fuller, then the lesser',
  async (t) => {
    const folder = t.testdir()
    const key = fc.uint8Array({ minLength: 32, maxLength: 32 })
    // Few different first bytes, so that chains are dealt again and again.
    const near = fc.tuple(fc.constantFrom(0, 255), fc.constantFrom(3, 4), fc.nat(3)).map(([a, b, c]) => {
      return Uint8Array.from({ length: 32 }, (_, at) => (at === 31 ? c : at % 2 === 0 ? a : b))
    })
    const entry = fc.record({
      key: fc.oneof(key, near),
      value: fc.uint8Array({ maxLength: 40 }),
      rank: fc.nat(3),
      weight: fc.constantFrom(0 as const, 1 as const),
    })
    fc.assert(
      fc.property(
        fc.array(entry, { maxLength: 200 }),
        fc.constantFrom(0, 100, 2000, 4_000_000),
        (entries, bucketMaxBytes) => {
          const sorter = new ExternalSort(folder, 'one', { ...unique, bucketMaxBytes })
          const best = new Map<string, (typeof entries)[number]>()
          for (const one of entries) {
            const at = sorter.begin(one.key, 64)
            sorter.memory.set(one.value, at)
            sorter.end(one.value.length, one.rank, one.weight)
            const name = Buffer.from(one.key).toString('hex')
            const before = best.get(name)
            const better =
              before === undefined ||
              (one.rank - before.rank ||
                one.weight - before.weight ||
                Buffer.compare(before.value, one.value)) > 0
            if (better) best.set(name, one)
          }
          const got: string[] = []
          for (let first = 0; first < 256; first += 1) {
            for (const bucket of sorter.group(first)) {
              while (bucket.next()) {
                const { bytes, start, valueBytes } = bucket
                got.push(bytes.subarray(start, start + 32 + valueBytes).toString('hex'))
              }
            }
          }
          sorter.close()
          const wanted = [...best].sort(([one], [other]) => (one < other ? -1 : 1))
          t.strictSame(
            got,
            wanted.map(([name, { value }]) => name + Buffer.from(value).toString('hex')),
          )
        },
      ),
      { numRuns: 60 },
    )
    t.strictSame(readdirSync(folder), [], 'nothing is left behind')
  },
)

/** Records of 9 bytes, many of them with long beginnings in common or the same. */
const record = fc.oneof(
  fc.uint8Array({ minLength: 9, maxLength: 9 }),
  fc.tuple(fc.nat(9), fc.constantFrom(0, 7, 255), fc.nat(3)).map(([length, byte, last]) => {
    return Uint8Array.from({ length: 9 }, (_, at) => (at < length ? byte : last))
  }),
)

t.test('records without values come out in order, all of them, however much fits into memory', async (t) => {
  const folder = t.testdir()
  fc.assert(
    fc.property(
      fc.array(record, { maxLength: 300 }),
      fc.constantFrom(0, 40, 500, 4_000_000),
      (records, bucketMaxBytes) => {
        const sort = new ExternalSort(folder, 'one', { ...plain, keyBytes: 9, bucketMaxBytes })
        for (const one of records) sort.add(one)
        const found: string[] = []
        for (const one of sort.sorted()) found.push(one.toString('hex'))
        const wanted = records.map((one) => Buffer.from(one).toString('hex')).sort()
        t.strictSame(found, wanted)
      },
    ),
    { numRuns: 200 },
  )
  t.strictSame(readdirSync(folder), [], 'nothing is left on disk')
})

t.test('any number of records with one key needs no more memory than a block', async (t) => {
  const folder = t.testdir()
  const sort = new ExternalSort(folder, 'one', { ...plain, keyBytes: 9, bucketMaxBytes: 1000 })
  const key = Buffer.from('one value')
  for (let at = 0; at < 10_000; at += 1) sort.add(key)
  let found = 0
  let largest = 0
  for (const bucket of sort.group(key[0] as number)) {
    largest = Math.max(largest, bucket.bytes.length)
    while (bucket.next()) found += 1
  }
  sort.close()
  t.equal(found, 10_000)
  t.ok(largest <= plain.blockBytes)
})

t.test('files are removed when the sort is closed, and when the reader ends early', async (t) => {
  const folder = t.testdir()
  const filled = (): ExternalSort => {
    const sort = new ExternalSort(folder, 'one', { ...plain, keyBytes: 4, bucketMaxBytes: 100 })
    const key = Buffer.alloc(4)
    for (let at = 0; at < 1000; at += 1) {
      key.writeUInt32BE(1000 - at)
      sort.add(key)
    }
    return sort
  }
  const closed = filled()
  t.strictSame(readdirSync(folder), ['one.0.sort'])
  closed.close()
  t.strictSame(readdirSync(folder), [])
  for (const key of filled().sorted()) if (key.readUInt32BE() === 500) break
  t.strictSame(readdirSync(folder), [])
})
