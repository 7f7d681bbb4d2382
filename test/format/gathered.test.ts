import t from 'tap'
import { Gathered } from '../../src/format/gathered.js'

t.test('pieces of any size give their bytes in order', async (t) => {
  const gathered = new Gathered()
  const all = Buffer.alloc(100_000)
  for (let at = 0; at < all.length; at += 1) all[at] = at % 251
  let at = 0
  for (const size of [1, 0, 2, 1020, 1, 1, 5000, 70_000, 1, 23_974]) {
    gathered.add(all.subarray(at, at + size))
    at += size
  }
  t.equal(gathered.sizeBytes, all.length)
  t.ok(all.equals(gathered.bytes()))
  t.ok(gathered.roomBytes <= 2 * all.length)
})

t.test('what is announced is made room for as it comes, and not beyond', async (t) => {
  const gathered = new Gathered(1_000_000)
  gathered.add(new Uint8Array(1))
  t.equal(gathered.roomBytes, 1024)
  for (let at = 1; at < 1_000_000; at += 999) gathered.add(new Uint8Array(999))
  t.equal(gathered.sizeBytes, 1_000_000)
  t.equal(gathered.roomBytes, 1_000_000)
  gathered.add(new Uint8Array(5))
  t.equal(gathered.sizeBytes, 1_000_005, 'a sender that announced less than it sends loses nothing')
})

t.test('nothing came', async (t) => {
  t.equal(new Gathered(10).bytes().length, 0)
})
