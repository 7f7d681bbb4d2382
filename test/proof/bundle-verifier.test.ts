import { deepEqual } from 'node:assert/strict'
import t from 'tap'
import { encodeBundle } from '../../src/format/bundle.js'
import { parseItemHeader } from '../../src/format/item.js'
import { type BundleFindings, BundleVerifier } from '../../src/proof/bundle-verifier.js'
import { verifyItem } from '../../src/proof/item-verifier.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { fixture, sound } from '../fixture-file.js'
import { fc } from '../property.js'

function findings(bytes: Uint8Array, pieceSize = bytes.length): BundleFindings {
  const verifier = new BundleVerifier()
  for (let at = 0; at < bytes.length; at += pieceSize) verifier.update(bytes.subarray(at, at + pieceSize))
  return verifier.finish()
}

const signer = ed25519Signer(Buffer.alloc(32, 1))
const bundleOf = (items: readonly Uint8Array[]) =>
  encodeBundle(items.map((bytes) => ({ id: sound(parseItemHeader(bytes)).id, bytes })))

t.test('every item of real bundles is signed by its owner', async (t) => {
  const all = { items: 2, sound: 2, unsound: [], broken: undefined }
  t.strictSame(findings(fixture('bundles/two-items.bundle')), all)
  const outer = fixture('items/nested-bundle.item')
  t.strictSame(findings(outer.subarray(sound(verifyItem(outer)).headerSize), 100), all)
})

t.test("items that are not their owner's are named, however the bundle is cut", async (t) => {
  const good = [1, 2, 3].map((n) => signItem(signer, {}, Buffer.alloc(n * 100, n)))
  const forged = Buffer.from(good[1] as Uint8Array)
  forged[forged.length - 1] = 99
  const bytes = bundleOf([good[0], forged, fixture('items/invalid-signature.item'), good[2]] as Uint8Array[])
  const whole = findings(bytes)
  t.match(whole, { items: 4, sound: 2, unsound: { length: 2 }, broken: undefined })
  t.match(whole.unsound[0], { id: sound(parseItemHeader(forged)).id, refusal: { refused: 'forged' } })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 500 }), (pieceSize) => {
      deepEqual(findings(bytes, pieceSize), whole)
    }),
    { numRuns: 30 },
  )
})

t.test('only the first unsound items are kept', async (t) => {
  const bad = fixture('items/invalid-signature.item')
  const found = findings(bundleOf(Array.from({ length: 30 }, () => bad)))
  t.match(found, { items: 30, sound: 0, unsound: { length: 10 } })
})

t.test('a bundle that ends early says so', async (t) => {
  const bytes = fixture('bundles/two-items.bundle')
  t.match(findings(bytes.subarray(0, bytes.length - 1)), { sound: 1, broken: { refused: 'malformed' } })
  t.match(findings(new Uint8Array(0)), { items: 0, broken: { message: /cut off in the header/ } })
})
