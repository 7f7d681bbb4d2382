import { deepEqual } from 'node:assert/strict'
import t from 'tap'
import { BoundedMap } from '../../src/actor/bounded-map.js'
import { fc } from '../property.js'

t.test('the entry that was set longest ago is removed', async (t) => {
  const map = new BoundedMap<string, number>(3)
  map.set('a', 1).set('b', 2).set('c', 3).set('a', 4)
  t.same([...map.keys()], ['b', 'c', 'a'], 'what is set again is the youngest')
  map.set('d', 5)
  t.same(
    [...map],
    [
      ['c', 3],
      ['a', 4],
      ['d', 5],
    ],
  )
  t.equal(map.get('b'), undefined)
  map.delete('c')
  map.set('e', 6)
  t.equal(map.size, 3, 'what was deleted makes room too')
  t.equal(new BoundedMap<string, number>(0).set('a', 1).size, 0)
})

t.test('any order of setting and deleting leaves the youngest entries', async (t) => {
  const step = fc.record({
    key: fc.integer({ min: 0, max: 40 }),
    times: fc.integer({ min: 1, max: 90 }),
    isSet: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 12 }), fc.array(step, { maxLength: 60 }), (max, steps) => {
      const map = new BoundedMap<number, number>(max)
      let model: [number, number][] = []
      for (const [at, { key, times, isSet }] of steps.entries()) {
        for (let time = 0; time < times; time += 1) {
          model = model.filter(([known]) => known !== key)
          if (isSet) {
            map.set(key, at)
            model = max === 0 ? [] : [...model, [key, at] as [number, number]].slice(-max)
          } else map.delete(key)
        }
      }
      deepEqual([...map], model)
    }),
    { numRuns: 300 },
  )
  t.pass('held for every order')
})
