import t from 'tap'
import { PieceList } from '../../src/format/piece-list.js'
import { fc } from '../property.js'

t.test('pieces keep their bytes and their order, also of those that were taken in between', async () => {
  const steps = fc.array(fc.oneof(fc.integer({ min: 1, max: 9000 }), fc.constant(1), fc.constant('take')), {
    maxLength: 60,
  })
  fc.assert(
    fc.property(steps, (list) => {
      const pieces = new PieceList()
      const [given, taken]: [Uint8Array[], Uint8Array[]] = [[], []]
      for (const [at, step] of list.entries()) {
        const piece = step === 'take' ? pieces.shift() : new Uint8Array(step).fill(at + 1)
        if (piece === undefined) continue
        if (step === 'take') taken.push(piece)
        else {
          given.push(Uint8Array.from(piece))
          // What was copied may be used again.
          if (!pieces.add(piece)) piece.fill(0)
        }
      }
      const left = pieces.pieces.reduce((sum, piece) => sum + piece.length, 0)
      const all = Buffer.concat([...taken, ...pieces.pieces])
      return left === pieces.sizeBytes && all.equals(Buffer.concat(given))
    }),
    { numRuns: 300 },
  )
})

t.test('a hundred thousand single bytes are a few pieces', async (t) => {
  const pieces = new PieceList()
  for (let at = 0; at < 100_000; at += 1) pieces.add(Uint8Array.of(at & 255))
  t.equal(pieces.sizeBytes, 100_000)
  t.ok(pieces.pieces.length < 10, `${pieces.pieces.length} pieces`)
  pieces.clear()
  t.equal(pieces.shift(), undefined)
})
