import { randomBytes } from 'node:crypto'
import t from 'tap'
import { HeldPieces, PieceMemory } from '../../../src/store/segments/piece-memory.js'
import { random } from '../../property.js'

t.test('bodies side by side, in memory that others had, stay what they were', async (t) => {
  const memory = new PieceMemory()
  for (let turn = 0; turn < 50; turn += 1) {
    const bodies = Array.from({ length: 5 }, () => randomBytes(Math.floor(random() * 200_000)))
    const held = bodies.map(() => new HeldPieces(memory))
    const at = bodies.map(() => 0)
    while (bodies.some((body, index) => (at[index] ?? 0) < body.length))
      for (const [index, body] of bodies.entries()) {
        const start = at[index] ?? 0
        const end = start + Math.floor(random() * (random() < 0.5 ? 3000 : 70_000))
        // The server uses its buffer again.
        const piece = Buffer.from(body.subarray(start, end))
        held[index]?.add(piece)
        piece.fill(0)
        at[index] = Math.min(end, body.length)
      }
    for (const [index, one] of held.entries()) {
      const bytes = one.release((pieces) => Buffer.concat(pieces))
      if (!bytes.equals(bodies[index] as Buffer)) t.fail(`body ${index} of turn ${turn} is another one`)
      t.equal(
        one.release((pieces) => pieces.length),
        0,
      )
    }
  }
})

t.test('a body that comes byte by byte takes little more memory than its bytes', async (t) => {
  const [memory, one, bodyBytes] = [new PieceMemory(), Buffer.of(7), 131_072]
  const held = Array.from({ length: 20 }, () => new HeldPieces(memory))
  const before = process.memoryUsage()
  for (let at = 0; at < bodyBytes; at += 1) for (const body of held) body.add(one)
  const after = process.memoryUsage()
  const taken = after.heapUsed + after.external - before.heapUsed - before.external
  // 14 MiB each where every piece was an object of its own.
  t.ok(taken / held.length < 2_000_000, `${taken / held.length} bytes of ${bodyBytes}`)
  for (const body of held)
    t.ok(body.release((pieces) => Buffer.concat(pieces).equals(Buffer.alloc(bodyBytes, 7))))
})
