import { crc32 } from 'node:zlib'
import t from 'tap'
import type { Attributes } from '../../src/catalog/attributes.js'
import {
  attributesIn,
  decodeAttributes,
  decodeBlob,
  encodeAttributes,
  encodeBlob,
  readTouchKey,
  touchKey,
} from '../../src/catalog/catalog-record.js'
import { idOfBytes } from '../../src/format/id.js'
import { fc } from '../property.js'
import { anyAttributes, anyDigest } from './arbitrary.js'

t.test('a record gives back what went in', async (t) => {
  fc.assert(
    fc.property(anyAttributes, (attributes) => {
      t.same(decodeAttributes(attributes.id, encodeAttributes(attributes)), attributes)
    }),
    { numRuns: 60 },
  )
})

t.test('fields of a later version are skipped', async (t) => {
  const attributes: Attributes = {
    id: 'A'.repeat(43) as Attributes['id'],
    size: 7,
    verified: false,
    trusted: true,
  }
  const fields = encodeAttributes(attributes).subarray(0, -4)
  const later = Buffer.concat([fields, Buffer.from([200, 3, 0, 0, 0, 1, 2, 3])])
  const sum = Buffer.alloc(4)
  sum.writeUInt32LE(crc32(later))
  t.same(decodeAttributes(attributes.id, Buffer.concat([later, sum])), attributes)
  const first = Buffer.from(fields)
  first[0] = 1
  t.same(decodeAttributes(attributes.id, first), attributes, 'the first version had no sum')
})

t.test('a bit that changed is damage, and nothing is known then', async (t) => {
  fc.assert(
    fc.property(anyAttributes, fc.nat(), (attributes, chance) => {
      const record = Buffer.from(encodeAttributes(attributes))
      const bit = chance % (record.length * 8)
      record[bit >> 3] = (record[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      return attributesIn(attributes.id, record) === undefined
    }),
  )
  const nowhere = 'A'.repeat(43) as Attributes['id']
  for (const length of [0, 1, 3, 5, 50]) t.equal(attributesIn(nowhere, Buffer.alloc(length, 2)), undefined)
})

t.test('a record that ends early, or of another version, is a failure and not a guess', async (t) => {
  fc.assert(
    fc.property(anyAttributes, fc.nat(), (attributes, cut) => {
      const record = encodeAttributes(attributes)
      const short = record.subarray(0, cut % record.length)
      try {
        // Only a cut exactly between two fields can pass.
        return encodeAttributes(decodeAttributes(attributes.id, short)).length === short.length
      } catch (error) {
        return error instanceof RangeError
      }
    }),
  )
  t.throws(() => decodeAttributes('A'.repeat(43) as Attributes['id'], Buffer.alloc(10, 9)), RangeError)
})

t.test('blob records and their order of use', async (t) => {
  const time = fc.integer({ min: 0, max: 2 ** 45 })
  fc.assert(
    fc.property(time, time, anyDigest, anyDigest, (one, other, digest, another) => {
      t.same(readTouchKey(touchKey(one, digest)), { touchedMs: one, digest })
      const order = Buffer.compare(touchKey(one, digest), touchKey(other, another))
      return one === other || Math.sign(order) === Math.sign(one - other)
    }),
    { numRuns: 50 },
  )
  const blob = { sizeBytes: 2 ** 40, createdMs: 1_700_000_000_000, touchedMs: 1_700_000_000_001 }
  t.same(decodeBlob(encodeBlob(blob)), blob)
  const held = { ...blob, holder: idOfBytes(Buffer.alloc(32, 7)) }
  t.same(decodeBlob(encodeBlob(held)), held)
})
