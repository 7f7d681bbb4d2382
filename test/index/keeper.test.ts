import { strict as assert } from 'node:assert'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { RowBatch } from '../../src/index/row-batch.js'
import { decodeSegmentList, encodeSegmentList } from '../../src/index/segment-list.js'
import { fc, random } from '../property.js'
import { scratch } from '../scratch.js'
import { batchRows, KeptSegments, rowsPerBatch } from './kept-segments.js'
import { comparePages } from './model.js'
import { plain, plainRow } from './rows.js'

const child = fileURLToPath(new URL('./killed-keeper.js', import.meta.url))

/** Compares every row of every batch with the segments, and pages of them. */
function compareAll(kept: KeptSegments, batches: number): void {
  kept.segments.refresh()
  const segments = kept.segments.all()
  const rows = Array.from({ length: batches }, (_, batch) => batchRows(batch)).flat()
  assert.equal(
    segments.reduce((sum, { count }) => sum + count, 0),
    batches * rowsPerBatch,
  )
  for (const [at, row] of rows.entries()) {
    const found = segments.flatMap((segment) => {
      const number = segment.find(row.id)
      return number < 0 ? [] : [segment.row(number)]
    })
    assert.equal(found.length, 1, `row ${at}`)
    assert.deepEqual(plain(found[0]!), plain(row))
  }
  const tag = { name: Buffer.from('Type'), values: [Buffer.from('odd')] }
  comparePages(segments, rows, { tags: [tag], minHeight: 1200, maxHeight: 1300 }, 30)
  comparePages(segments, rows, { owners: [Buffer.alloc(32, 7)], tags: [tag] }, 30)
}

t.test('segments are added and merged, and stay what their rows are', async (t) => {
  const kept = new KeptSegments(scratch('index-kept'))
  for (let batches = 1; batches <= 10; batches += 1) {
    kept.addNext()
    compareAll(kept, batches)
    while (kept.keeper.tend(3) === 'more');
    compareAll(kept, batches)
  }
  t.ok(kept.segments.all().length < 4)
  const retired = kept.keeper.takeRetired()
  t.ok(retired.length >= 9 && retired.every((path) => existsSync(path)))
  for (const path of retired) rmSync(path)
  compareAll(kept, 10)
  t.equal(readdirSync(kept.folder).length, kept.segments.all().length)
  await kept.close()
})

t.test('a writer that is killed again and again loses nothing and leaves nothing', async (t) => {
  const path = scratch('index-killed')
  const batches = 18
  let [kills, known] = [0, 0]
  for (let isDone = false; !isDone; ) {
    const process = fork(child, [path, String(batches)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    const ended = once(process, 'exit')
    // It says how far it is after each step.
    let left = kills < 10 ? 1 + Math.floor(random() * 5) : Number.POSITIVE_INFINITY
    process.on('message', (count: number) => {
      known = Math.max(known, count)
      left -= 1
      if (left === 0) process.kill('SIGKILL')
    })
    await ended
    isDone = process.exitCode === 0
    if (!isDone) kills += 1
    const kept = new KeptSegments(path)
    t.ok(kept.batches >= known, 'what was said to be there is there')
    compareAll(kept, kept.batches)
    t.equal(kept.keeper.takeRetired().length, 0)
    t.equal(readdirSync(kept.folder).length, kept.segments.all().length, 'no file is left that no list names')
    await kept.close()
  }
  t.ok(kills > 3, `${kills} kills`)
  const kept = new KeptSegments(path)
  t.equal(kept.batches, batches)
  await kept.close()
})

t.test('what goes wrong while a segment is listed leaves the list and the folder as they were', async (t) => {
  const kept = new KeptSegments(scratch('index-undone'))
  kept.addNext()
  const batch = new RowBatch()
  batch.add(plainRow(99_999))
  const fails = (): void => {
    throw new Error('not now')
  }
  t.throws(() => kept.keeper.add(batch, fails), /not now/)
  compareAll(kept, 1)
  t.equal(readdirSync(kept.folder).length, 1)
  await kept.close()
})

t.test('a file of the list that is missing or another one is an error, and no answer', async (t) => {
  const kept = new KeptSegments(scratch('index-missing'))
  kept.addNext()
  const [name = ''] = readdirSync(kept.folder)
  kept.segments.close()
  rmSync(join(kept.folder, name))
  t.throws(() => kept.segments.all(), /missing/)
  writeFileSync(join(kept.folder, name), 'something else')
  t.throws(() => kept.segments.all(), { name: 'DamagedSegment' })
  await kept.close()
})

t.test('a list is what was encoded', async (t) => {
  const number = fc.maxSafeNat()
  const segments = fc.array(
    fc.record({ number, level: fc.nat(9), rows: number, bytes: number }, { noNullPrototype: true }),
  )
  fc.assert(
    fc.property(fc.record({ next: number, segments }, { noNullPrototype: true }), (list) => {
      assert.deepEqual(decodeSegmentList(encodeSegmentList(list)), list)
    }),
  )
  t.same(decodeSegmentList(undefined), { next: 1, segments: [] })
  t.throws(() => decodeSegmentList(Buffer.of(2)), RangeError)
})
