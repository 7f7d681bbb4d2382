import t from 'tap'
import { BodyRooms } from '../../../src/source/upstream/body-rooms.js'
import { below } from '../../property.js'

t.test('no two pieces in use share memory, and what was given back is used again', async (t) => {
  const memory = new BodyRooms()
  const used: Uint8Array[] = []
  for (let at = 0; at < 2000; at += 1) {
    const length = 1 + below(2 ** (8 + below(12)))
    const piece = memory.take(length)
    if (piece.length !== length) t.fail(`${piece.length} bytes in place of ${length}`)
    used.push(piece)
    const [given] = below(3) > 0 ? used.splice(below(used.length), 1) : []
    if (given !== undefined) memory.give(given)
  }
  t.equal(new Set(used.map(({ buffer }) => buffer)).size, used.length)
  const fresh = new BodyRooms()
  const piece = fresh.take(14_000)
  fresh.give(piece)
  t.equal(fresh.take(9000).buffer, piece.buffer)
  t.not(fresh.take(9000).buffer, piece.buffer)
})

t.test('memory of other sizes is not kept, and of each size no more than a bound', async (t) => {
  const memory = new BodyRooms()
  memory.give(new Uint8Array(5000))
  t.equal(memory.take(5000).buffer.byteLength, 8192)
  const pieces = Array.from({ length: 20 }, () => memory.take(131_072))
  for (const piece of pieces) memory.give(piece)
  const again = Array.from({ length: 20 }, () => memory.take(131_072))
  t.equal(again.filter(({ buffer }) => pieces.some((piece) => piece.buffer === buffer)).length, 8)
})
