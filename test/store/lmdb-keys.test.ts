/** Keys that strangers make up: none of them is there, and none is an error. */
import { join } from 'node:path'
import t from 'tap'
import { openEnvironment } from '../../src/store/lmdb.js'

t.test('a key of any length may be looked up', async (t) => {
  const environment = openEnvironment(join(t.testdir(), 'tables'), 2)
  t.teardown(() => environment.close())
  const table = environment.table('names')
  const [kept, value] = [Buffer.from('kept'), Buffer.from('value')]
  environment.write(() => table.put(kept, value))
  for (const length of [0, 1, 255, 300, 511, 512, 1977, 1978, 1979, 2100, 70_000]) {
    const wanted = Buffer.alloc(length, 'k')
    t.equal(table.get(wanted), undefined, `${length} bytes`)
    t.equal(table.view(wanted), undefined)
    // A range that begins with no bytes begins at the first key.
    if (length === 0) continue
    const isBehind = length > 1
    t.equal(table.ceiling(wanted)?.key.length, isBehind ? undefined : 4)
    t.equal(table.floor(wanted)?.key.length, isBehind ? 4 : undefined)
    t.equal(table.from(wanted, 5).length, isBehind ? 0 : 1)
    t.equal([...table.span({ start: wanted })].length, isBehind ? 0 : 1)
    t.equal([...table.keys({ start: kept, end: wanted })].length, isBehind ? 1 : 0)
  }
})
