/** Memory of rows on their way into a segment: what a batch and a merge hold. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { writeBatch } from '../../src/index/batch-writer.js'
import { RowNumbers } from '../../src/index/merge-order.js'
import { RowBatch } from '../../src/index/row-batch.js'
import { Segment } from '../../src/index/segment.js'
import { scratch } from '../scratch.js'
import { newPath } from './model.js'
import { plainRow } from './rows.js'

const limits = { rows: 20_000, bytes: 8 * 2 ** 20 }
const idOf = (at: number): Buffer => createHash('sha256').update(String(at)).digest()
const tag = (name: string, value: string) => ({ name: Buffer.from(name), value: Buffer.from(value) })

/** Rows whose words take more room than an empty batch has. */
function fill(batch: RowBatch, from: number, count: number): void {
  for (let at = from; at < from + count; at += 1) {
    const tags = [tag('Name', `value ${at}`), tag('Text', `${at}`.padStart(200)), tag('Type', 'file')]
    batch.add(plainRow(at, { id: idOf(at), tags }))
  }
}

const memoryOf = ({ keys, flags, wordStarts, factStarts, rowWords, words, facts }: RowBatch) => [
  ...[keys, flags, wordStarts, factStarts, rowWords, words.keys, words.starts].map(({ buffer }) => buffer),
  facts.written.buffer,
]

t.test('a batch that was cleared takes its next rows into the same memory', async (t) => {
  const folder = scratch('index')
  const batch = new RowBatch(limits)
  fill(batch, 0, 9000)
  const before = memoryOf(batch)
  batch.addOwnerKey(Buffer.alloc(32, 7), Buffer.alloc(512, 7))
  batch.drop(3)
  for (const from of [9000, 18_000]) {
    batch.clear()
    t.equal(batch.bytes, 0)
    fill(batch, from, 9000)
    t.ok(memoryOf(batch).every((buffer, at) => buffer === before[at]))
    const path = newPath(folder)
    t.equal(writeBatch(batch, path).rows, 9000)
    const segment = Segment.open(path)
    if (segment === undefined) throw new Error('no segment was written')
    t.equal(segment.find(idOf(from - 1)), -1, 'nothing of the rows before is left')
    t.equal(segment.footer.keyCount, 0)
    const row = segment.row(segment.find(idOf(from + 3)))
    t.same(String(row.tags[0]?.value), `value ${from + 3}`)
    segment.close()
  }
})

t.test('a batch makes room for all of its limits at once', async (t) => {
  const batch = new RowBatch(limits)
  fill(batch, 0, 9000)
  const before = memoryOf(batch)
  fill(batch, 9000, 4000)
  t.ok(
    memoryOf(batch).every((buffer, at) => buffer === before[at]),
    'nothing was copied',
  )
})

t.test('numbers of rows in a merge, by one distance or one by one', async (t) => {
  const numbersOf = (gone: readonly number[], gapAt: number): (number | string)[] => {
    const numbers = new RowNumbers(9)
    for (const row of gone) numbers.leaveOut(row)
    let number = 4
    for (let row = 0; row < 9; row += 1) {
      if (row === gapAt) number += 2
      if (numbers.isLeftOut(row)) continue
      numbers.set(row, number)
      number += 1
    }
    numbers.settle()
    return Array.from({ length: 9 }, (_, row) => (numbers.isLeftOut(row) ? '-' : numbers.of(row)))
  }
  t.same(numbersOf([], -1), [4, 5, 6, 7, 8, 9, 10, 11, 12])
  t.same(numbersOf([], 3), [4, 5, 6, 9, 10, 11, 12, 13, 14])
  t.same(numbersOf([0, 1], -1), ['-', '-', 4, 5, 6, 7, 8, 9, 10])
  t.same(numbersOf([4, 8], 6), [4, 5, 6, 7, '-', 8, 11, 12, '-'])
  t.same(numbersOf([8], -1), [4, 5, 6, 7, 8, 9, 10, 11, '-'])
  t.same(numbersOf([0, 1, 2, 3, 4, 5, 6, 7, 8], -1), Array(9).fill('-'))
})
