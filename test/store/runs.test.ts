import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { RunWriter } from '../../src/store/run-writer.js'
import { type RunShape, Runs } from '../../src/store/runs.js'
import { orderOf } from '../../src/store/sort-records.js'
import { fc } from '../property.js'
import { scratch } from '../scratch.js'

const shape: RunShape = { name: 'pairs', width: 4, isHashed: true }
const anyWord = fc.oneof(fc.nat(0xffff_ffff), fc.constantFrom(0, 1, 2, 0xffff_ffff))
const anyRecord = fc.tuple(anyWord, anyWord, fc.nat(3), fc.nat(3))
type Record = [number, number, number, number]

const compare = (one: readonly number[], other: readonly number[]): number => {
  const at = one.findIndex((word, index) => word !== other[index])
  return at === -1 ? 0 : (one[at] as number) - (other[at] as number)
}

/** A writer whose list stands in memory, and a reader of the same list. */
function made() {
  let list: Uint8Array | undefined
  const folder = join(scratch('runs'), 'runs')
  const runs = new Runs(folder, shape, () => list)
  const ledger = {
    read: () => list,
    put: (next: Uint8Array) => {
      list = next
    },
  }
  const writer = new RunWriter(runs, ledger, { filesAlike: 2, smallRecords: 2 })
  const reader = new Runs(folder, shape, () => list)
  return { folder, runs, ledger, writer, reader }
}

t.test('records are put in order whatever their numbers are', async () => {
  fc.assert(
    fc.property(fc.array(anyRecord, { maxLength: 200 }), (records) => {
      const order = orderOf(Uint32Array.from(records.flat()), shape.width, records.length)
      const sorted = [...order].map((at) => records[at] as Record)
      assert.deepEqual(sorted, [...records].sort(compare))
    }),
  )
})

t.test('what was added is found, before and after it became a file and files were merged', async () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(anyRecord, { minLength: 1, maxLength: 40 }), { maxLength: 6 }),
      (batches) => {
        const { writer, reader, runs } = made()
        const added: Record[] = []
        const found = (from: Pick<Runs, 'find'>, [first, second]: Record): string[] => {
          const rests = new Set<string>()
          from.find(first, second, (words, at) => !rests.add(`${words[at + 2]} ${words[at + 3]}`))
          return [...rests].sort()
        }
        for (const batch of batches) {
          for (const record of batch) {
            writer.add(record)
            added.push(record)
          }
          for (const record of batch) assert.ok(found(writer, record).includes(`${record[2]} ${record[3]}`))
          writer.adopt()
          writer.settle()
          writer.tend(17)
        }
        for (const record of added) {
          const rests = added
            .filter(([a, b]) => a === record[0] && b === record[1])
            .map(([, , c, d]) => `${c} ${d}`)
          assert.deepEqual(found(reader, record), [...new Set(rests)].sort())
        }
        assert.equal(
          reader.find(3, 3, () => added.every(([a, b]) => a !== 3 || b !== 3)),
          false,
        )
        writer.close()
        runs.close()
        reader.close()
      },
    ),
    { numRuns: 40 },
  )
})

t.test('files that no list names are removed at the next start, and no other', async (t) => {
  const { folder, runs, ledger, writer } = made()
  writer.add([1, 2, 3, 4])
  writer.settle()
  writeFileSync(join(folder, 'pairs-77'), 'left by a process that was killed')
  writeFileSync(join(folder, 'other-1'), 'of another kind')
  new RunWriter(runs, ledger, { filesAlike: 2, smallRecords: 2 })
  t.same(readdirSync(folder).sort(), ['other-1', 'pairs-1'])
  runs.close()
})

t.test('what there is becomes known some records at a time, and is found meanwhile', async (t) => {
  const { writer, runs } = made()
  const mixed = (at: number): Record => [
    Math.imul(at + 1, 0x9e3779b1) >>> 0,
    Math.imul(at + 7, 0x85ebca6b) >>> 0,
    at,
    0,
  ]
  const write = (from: number, count: number): void => {
    for (let at = from; at < from + count; at += 1) writer.add(mixed(at))
    writer.settle()
  }
  const isFound = (at: number): boolean => {
    const [first, second] = mixed(at)
    return writer.find(first, second, (words, place) => words[place + 2] === at)
  }
  write(0, 150_000)
  let read = 0
  const [file] = [...runs.files().values()]
  if (file === undefined) throw new Error('no file was written')
  const at = file.at.bind(file)
  file.at = (record) => {
    read += 1
    return at(record)
  }
  for (let absent = 0; absent < 20_001; absent += 1) t.notOk(isFound(1_000_000 + absent))
  for (let step = 0; step < 3; step += 1) {
    t.ok(isFound(0) && isFound(149_999))
    read = 0
    writer.tend(0)
    t.ok(read > 0 && read <= 65_536, `${read} records are read at once`)
  }
  read = 0
  for (let absent = 0; absent < 5000; absent += 1) t.notOk(isFound(2_000_000 + absent))
  t.ok(read < 5000, 'most of what is absent is not looked for')
  t.ok(isFound(0) && isFound(149_999))
  // What comes later, and what is merged.
  write(150_000, 150_000)
  writer.tend(1_000_000)
  t.ok(writer.adopt())
  t.equal(runs.files().size, 1)
  for (const one of [0, 149_999, 150_000, 299_999]) t.ok(isFound(one))
  t.notOk(isFound(3_000_000))
})
