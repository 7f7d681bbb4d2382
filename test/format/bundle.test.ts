import { deepEqual } from 'node:assert/strict'
import { Bundle } from 'arbundles'
import t from 'tap'
import { encodeBundle, encodeBundleHeader, parseBundleHeader } from '../../src/format/bundle.js'
import { idOfBytes } from '../../src/format/id.js'
import { fixture, sound } from '../fixture-file.js'
import { fc } from '../property.js'

const entry = fc.record({
  id: fc.uint8Array({ minLength: 32, maxLength: 32 }).map(idOfBytes),
  sizeBytes: fc.nat({ max: 2 ** 40 }),
})

t.test('a header comes back as it was written, with the place of every item', async (t) => {
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 20 }), (items) => {
      const bytes = encodeBundleHeader(items)
      const header = sound(parseBundleHeader(bytes))
      deepEqual(
        header.entries.map(({ id, sizeBytes }) => ({ id, sizeBytes })),
        items.map(({ id, sizeBytes }) => ({ id, sizeBytes })),
      )
      let at = 32 + 64 * items.length
      for (const [i, item] of items.entries()) {
        deepEqual(header.entries[i]?.offset, at)
        at += item.sizeBytes
      }
      deepEqual(header.sizeBytes, at)
      for (let cut = 0; cut < bytes.length; cut += 7)
        deepEqual(parseBundleHeader(bytes.subarray(0, cut)), 'more')
    }),
    { numRuns: 50 },
  )
  t.pass('held for every sample')
})

t.test('a real bundle is read as an independent library reads it', async (t) => {
  const bytes = fixture('bundles/two-items.bundle')
  const ours = sound(parseBundleHeader(bytes, { itemsMax: 10, sizeBytes: bytes.length }))
  const theirs = new Bundle(Buffer.from(bytes))
  t.strictSame(
    ours.entries.map((entry) => entry.id),
    theirs.getIds(),
  )
  for (const [i, entry] of ours.entries.entries()) {
    const item = bytes.subarray(entry.offset, entry.offset + entry.sizeBytes)
    t.ok(Buffer.from(theirs.items[i]?.getRaw() ?? []).equals(item))
  }
  t.equal(ours.sizeBytes, bytes.length)
  const again = encodeBundle(
    ours.entries.map(({ id, offset, sizeBytes }) => ({
      id,
      bytes: bytes.subarray(offset, offset + sizeBytes),
    })),
  )
  t.ok(Buffer.from(again).equals(bytes))
})

t.test('no items are 32 zero bytes', async (t) => {
  t.strictSame(sound(parseBundleHeader(new Uint8Array(32))), { entries: [], headerSize: 32, sizeBytes: 32 })
  t.equal(parseBundleHeader(new Uint8Array(31)), 'more')
})

t.test('counts and sizes that cannot be are refused at once', async (t) => {
  const count = (value: bigint, at = 0) => {
    const bytes = Buffer.alloc(32 + 64)
    bytes.writeBigUInt64LE(value, at)
    return bytes
  }
  t.match(parseBundleHeader(count(1_000_001n)), { refused: 'malformed', message: /more than \d+ items/ })
  t.match(parseBundleHeader(count(1n, 24)), { refused: 'malformed', message: /more than \d+ items/ })
  t.match(parseBundleHeader(count(5n), { itemsMax: 10, sizeBytes: 100 }), { message: /do not fit/ })
  const one = encodeBundleHeader([{ id: idOfBytes(Buffer.alloc(32)), sizeBytes: 200 }])
  t.match(parseBundleHeader(one, { itemsMax: 10, sizeBytes: 200 }), { message: /end at 296/ })
  const huge = Buffer.from(one)
  huge[32 + 31] = 1
  t.match(parseBundleHeader(huge), { refused: 'malformed', message: /2\^53/ })
  const sum = encodeBundleHeader(
    [1, 2].map((n) => ({ id: idOfBytes(Buffer.alloc(32, n)), sizeBytes: 2 ** 52 })),
  )
  t.match(parseBundleHeader(sum), { refused: 'malformed', message: /2\^53/ })
})
