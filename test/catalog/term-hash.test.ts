import t from 'tap'
import { TermHash } from '../../src/catalog/term-hash.js'

/** The authors' vectors of HalfSipHash-2-4 with 64 bits: key 0 to 7, texts of so many bytes 0, 1, 2 and so on. */
const vectors = [
  '218d1f59b9b83cc8',
  'be552412f8387315',
  '064f39ef7c50eb57',
  'ce0f1a45f7060679',
  'd5e78a175be52ea1',
  'cb9d7c3f2f3db580',
  'ce3e91358aa2bc25',
  'ff202728b07bc684',
]

t.test('words are hashed as the authors of the hash do, however long the one before was', async (t) => {
  const hash = new TermHash(Uint8Array.from({ length: 8 }, (_, at) => at))
  for (const [length, expected] of vectors.entries()) {
    hash.take(Uint8Array.from({ length }, (_, at) => at))
    const hashBytes = Buffer.alloc(8)
    hashBytes.writeUInt32LE(hash.first, 0)
    hashBytes.writeUInt32LE(hash.second, 4)
    t.equal(hashBytes.toString('hex'), expected, `${length} bytes`)
    hash.take(new Uint8Array(5000 * (length + 1)).fill(255))
  }
})
