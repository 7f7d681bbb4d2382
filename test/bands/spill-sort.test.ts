import { readdirSync } from 'node:fs'
import t from 'tap'
import { SpillSort } from '../../src/bands/spill-sort.js'
import { fc } from '../property.js'
import { folder } from './l1-chain.js'

t.test('records come out in order, all of them, however many runs they lay in', async (t) => {
  const path = folder(t)
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ minLength: 5, maxLength: 5 }), { maxLength: 300 }),
      fc.integer({ min: 1, max: 400 }),
      (records, bytesMax) => {
        const sort = new SpillSort(path, 'one', 5, bytesMax)
        for (const record of records) sort.next().set(record)
        const found = [...sort.sorted()].map((record) => record.toString('hex'))
        const wanted = records.map((record) => Buffer.from(record).toString('hex')).sort()
        return found.join() === wanted.join()
      },
    ),
    { numRuns: 200 },
  )
  t.same(readdirSync(path), [], 'nothing is left on disk')
})

t.test('what was spilled is gone when it is dropped, and when the reader leaves early', async (t) => {
  const path = folder(t)
  const dropped = new SpillSort(path, 'dropped', 4, 40)
  for (let at = 0; at < 100; at += 1) dropped.next().writeUInt32BE(100 - at)
  t.ok(readdirSync(path).length > 5)
  dropped.drop()
  t.same(readdirSync(path), [])
  const left = new SpillSort(path, 'left', 4, 40)
  for (let at = 0; at < 100; at += 1) left.next().writeUInt32BE(100 - at)
  for (const record of left.sorted()) if (record.readUInt32BE() === 3) break
  t.same(readdirSync(path), [])
})
