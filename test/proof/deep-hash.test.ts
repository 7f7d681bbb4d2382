import { equal } from 'node:assert/strict'
import arweaveDeepHash from 'arweave/node/lib/deepHash.js'
import t from 'tap'
import { type DeepHashElement, deepHash, StreamedDeepHash } from '../../src/proof/deep-hash.js'
import { fixtureJson, toHex } from '../fixture-file.js'
import { fc } from '../property.js'

const vectors = fixtureJson<Record<string, string>>('vectors.json')
const text = (value: string) => Buffer.from(value)

t.test('known values of blobs and lists', async (t) => {
  t.equal(toHex(deepHash(new Uint8Array(0))), vectors.deepHash_emptyBlob)
  t.equal(toHex(deepHash([])), vectors.deepHash_emptyList)
  const receipt = ['Bundlr', '0.2.0', 'AAAA', '100', '1700000000000'].map(text)
  t.equal(toHex(deepHash(receipt)), vectors.deepHash_receipt)
})

t.test('an independent library gives the same for any nesting', async (t) => {
  const { tree } = fc.letrec<{ tree: DeepHashElement }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 3 },
      fc.uint8Array({ maxLength: 40 }),
      fc.array(tie('tree'), { maxLength: 4 }),
    ),
  }))
  const library = arweaveDeepHash as unknown as { default: (value: unknown) => Promise<Uint8Array> }
  await fc.assert(
    fc.asyncProperty(tree, async (value) => {
      equal(toHex(deepHash(value)), toHex(await library.default(value)))
    }),
    { numRuns: 100 },
  )
  t.pass('held for every sample')
})

t.test('a last blob in pieces gives what it gives at once', async (t) => {
  const blob = fc.uint8Array({ maxLength: 100 })
  fc.assert(
    fc.property(fc.array(blob, { maxLength: 4 }), fc.array(blob, { maxLength: 6 }), (leading, pieces) => {
      const running = new StreamedDeepHash(leading)
      for (const piece of pieces) running.update(piece)
      equal(toHex(running.digest()), toHex(deepHash([...leading, Buffer.concat(pieces)])))
    }),
  )
  t.pass('held for every sample')
})
