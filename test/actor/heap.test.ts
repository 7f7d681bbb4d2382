import { deepEqual } from 'node:assert/strict'
import t from 'tap'
import { Heap } from '../../src/actor/heap.js'
import { fc } from '../property.js'

t.test('values leave a heap in their order, whatever came and went before', async (t) => {
  const steps = fc.array(fc.option(fc.integer({ min: 0, max: 50 }), { nil: undefined }), { maxLength: 200 })
  fc.assert(
    fc.property(steps, (all) => {
      const heap = new Heap<number>((one, other) => one < other)
      const model: number[] = []
      for (const step of all) {
        if (step === undefined) deepEqual(heap.pop(), model.shift())
        else {
          heap.push(step)
          model.push(step)
          model.sort((one, other) => one - other)
        }
        deepEqual([heap.first, heap.size], [model[0], model.length])
      }
    }),
  )
  t.pass()
})
