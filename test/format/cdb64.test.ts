import t from 'tap'
import { KeyHash, startSlot } from '../../src/format/cdb64.js'
import { fc } from '../property.js'

const mask = (1n << 64n) - 1n

function plainHash(bytes: Uint8Array): bigint {
  let hash = 5381n
  for (const byte of bytes) hash = ((hash * 33n) & mask) ^ BigInt(byte)
  return hash
}

function hashOf(bytes: Uint8Array): bigint {
  const { lo, hi } = new KeyHash().of(bytes, 0, bytes.length)
  return (BigInt(hi >>> 0) << 32n) | BigInt(lo >>> 0)
}

t.test('hashes as published ones', async (t) => {
  t.equal(hashOf(Buffer.alloc(0)), 0x1505n)
  t.equal(hashOf(Buffer.from('a')), 0x2b5c4n)
  t.equal(hashOf(Buffer.alloc(32)), 0x5a881a13e92ae905n)
  t.equal(hashOf(Buffer.from(Array.from({ length: 32 }, (_, at) => at))), 0x6650038a522d5d05n)
})

t.test('hashes and slots in halves are those of 64-bit integers', async (t) => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 80 }),
      // Small tables are counted with integers alone.
      fc.oneof(fc.integer({ min: 1, max: 65_500 }), fc.integer({ min: 1, max: 2 ** 29 - 1 })),
      (bytes, slots) => {
        const hash = plainHash(bytes)
        const { lo, hi } = new KeyHash().of(bytes, 0, bytes.length)
        return hashOf(bytes) === hash && startSlot(lo, hi, slots) === Number((hash >> 8n) % BigInt(slots))
      },
    ),
    { numRuns: 5000 },
  )
  for (const slots of [65_407, 65_408, 65_409]) {
    t.equal(startSlot(-1, slots - 2, slots), Number(((BigInt(slots - 2) << 24n) | 0xffffffn) % BigInt(slots)))
  }
  t.pass('for keys and table sizes of any kind')
})
