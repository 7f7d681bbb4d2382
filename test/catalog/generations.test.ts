import t from 'tap'
import { Generations, shards } from '../../src/catalog/generations.js'
import { fc } from '../property.js'

t.test('whoever looks again finds the shards that have changed since, in order and in runs', async (t) => {
  const shard = fc.oneof(fc.integer({ min: 0, max: 12 }), fc.integer({ min: shards - 4, max: shards - 1 }))
  fc.assert(
    fc.property(fc.array(fc.array(shard, { maxLength: 9 }), { maxLength: 9 }), (commits) => {
      const generations = new Generations()
      const seen = new Int32Array(shards).fill(-1)
      const all = generations.changed(seen)
      for (const touched of commits) {
        generations.commit([], touched)
        const runs = generations.changed(seen)
        const found = runs.flatMap(({ start, end }) =>
          Array.from({ length: end - start }, (_, at) => start + at),
        )
        const expected = [...new Set(touched)].sort((a, b) => a - b)
        if (JSON.stringify(found) !== JSON.stringify(expected)) return false
        if (runs.some(({ start }, at) => at > 0 && start <= (runs[at - 1]?.end ?? 0))) return false
      }
      return JSON.stringify(all) === JSON.stringify([{ start: 0, end: shards }])
    }),
    { numRuns: 40 },
  )
  t.pass()
})
