import { equal } from 'node:assert/strict'
import type { JsonWebKey } from 'node:crypto'
import {
  ArweaveSigner,
  bundleAndSignData,
  createData,
  DataItem,
  EthereumSigner,
  type Signer,
  SolanaSigner,
  TypedEthereumSigner,
} from 'arbundles'
import t from 'tap'
import { encodeBase58 } from '../../src/format/base58.js'
import { type BundleEvent, BundleReader } from '../../src/format/bundle-reader.js'
import { parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { tagOf } from '../../src/format/tag.js'
import { ItemVerifier, verifyItem } from '../../src/proof/item-verifier.js'
import {
  ed25519Signer,
  ethereumSigner,
  type ItemSigner,
  rsaSigner,
  signItem,
  solanaSigner,
} from '../../src/proof/sign.js'
import { fixture, fixtureJson, fixtureNames, sound } from '../fixture-file.js'
import { fc } from '../property.js'

const jwk = fixtureJson<JsonWebKey>('rsa-4096.jwk.json')
const seed = Buffer.alloc(32, 1)
const ours: readonly (readonly [name: string, signer: ItemSigner])[] = [
  ['RSA', rsaSigner(jwk)],
  ['Ed25519', ed25519Signer(seed)],
  ['Solana', solanaSigner(seed)],
  ['Ethereum', ethereumSigner(seed)],
]

for (const name of fixtureNames('items').filter((name) => !name.startsWith('invalid'))) {
  t.test(`${name} is by its owner`, async (t) => {
    const bytes = fixture(`items/${name}`)
    const header = sound(verifyItem(bytes))
    t.ok(!name.startsWith('data_item_') || name === `data_item_${header.id}`)
    for (const at of [bytes.length - 1, header.headerSize - 1, 40, 700]) {
      if (at >= bytes.length) continue
      const bent = Buffer.from(bytes)
      bent[at] = (bent[at] ?? 0) ^ 1
      t.ok(isRefusal(verifyItem(bent)), `byte ${at} changed`)
    }
  })
}

t.test('an item with a bad signature is refused with a clear reason', async (t) => {
  t.match(verifyItem(fixture('items/invalid-signature.item')), {
    refused: 'forged',
    message: /the signature is not by the owner over this content/,
  })
})

t.test('an item that is cut off in its header is refused', async (t) => {
  t.match(verifyItem(fixture('items/ethereum.item').subarray(0, 100)), {
    refused: 'malformed',
    message: /cut off/,
  })
})

t.test('a payload in pieces of any length verifies as at once', async (t) => {
  const bytes = signItem(ed25519Signer(seed), {}, Buffer.alloc(10_000, 5))
  const header = sound(parseItemHeader(bytes))
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1 }),
      fc.boolean(),
      (sizes, whole) => {
        const verifier = new ItemVerifier(header)
        const payload = bytes.subarray(header.headerSize, whole ? bytes.length : bytes.length - 1)
        for (let at = 0, i = 0; at < payload.length; i++) {
          const next = at + (sizes[i % sizes.length] ?? 1)
          verifier.update(payload.subarray(at, next))
          at = next
        }
        equal(verifier.finish() === true, whole)
      },
    ),
    { numRuns: 50 },
  )
  t.pass('held for every sample')
})

const parts = {
  target: Buffer.alloc(32, 3),
  anchor: Buffer.from('an anchor of thirty-two letters.'),
  tags: [tagOf('Content-Type', 'text/plain'), tagOf('A', 'é')],
}

for (const [name, signer] of ours) {
  t.test(
    `an independent library verifies an item signed as ${name}, with and without everything optional`,
    async (t) => {
      for (const [each, payload] of [
        [parts, 'hello'],
        [{}, ''],
      ] as const) {
        const bytes = signItem(signer, each, Buffer.from(payload))
        const header = sound(verifyItem(bytes))
        t.equal(await DataItem.verify(Buffer.from(bytes)), true)
        t.equal(new DataItem(Buffer.from(bytes)).id, header.id)
      }
    },
  )
}

const solanaKey = encodeBase58(Buffer.concat([seed, ed25519Signer(seed).owner]))
const theirs: readonly (readonly [name: string, signer: Signer])[] = [
  ['RSA', new ArweaveSigner(jwk as ConstructorParameters<typeof ArweaveSigner>[0])],
  ['Ethereum', new EthereumSigner(seed.toString('hex'))],
  ['Solana', new SolanaSigner(solanaKey)],
  ['typed Ethereum', new TypedEthereumSigner(seed.toString('hex'))],
]

for (const [name, signer] of theirs) {
  t.test(`an item that an independent library signs as ${name} verifies`, async (t) => {
    const item = createData('hello', signer, { tags: [{ name: 'Content-Type', value: 'text/plain' }] })
    await item.sign(signer)
    t.equal(sound(verifyItem(item.getRaw())).id, item.id)
  })
}

/** Reads a bundle in pieces, verifying each item as it passes: ids that hold. */
function verified(bytes: Uint8Array, pieceSize: number): string[] {
  const reader = new BundleReader({ itemsMax: 10, sizeBytes: bytes.length })
  const ids: string[] = []
  let verifier: ItemVerifier | undefined
  const take = (event: BundleEvent) => {
    if (event.kind === 'header') verifier = new ItemVerifier(event.header)
    else if (event.kind === 'payload') verifier?.update(event.bytes)
    else if (event.kind === 'end' && verifier?.finish() === true) ids.push(verifier.header.id)
  }
  for (let at = 0; at < bytes.length; at += pieceSize) {
    for (const event of reader.push(bytes.subarray(at, at + pieceSize))) take(event)
  }
  return ids
}

t.test('a bundle that an independent library makes verifies item by item as it streams past', async (t) => {
  const signer = theirs[1]?.[1] as Signer
  const items = ['a', 'b'.repeat(5000), ''].map((data) => createData(data, signer))
  const bundle = await bundleAndSignData(items, signer)
  t.strictSame(verified(bundle.getRaw(), 777), bundle.getIds())
})

t.test('a real bundle inside an item verifies on both levels', async (t) => {
  const outer = fixture('items/nested-bundle.item')
  const header = sound(verifyItem(outer))
  t.equal(verified(outer.subarray(header.headerSize), 1000).length, 2)
  t.equal(verified(fixture('bundles/two-items.bundle'), 64).length, 2)
})
