import t from 'tap'
import { BoundedMap } from '../../src/actor/bounded-map.js'

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
