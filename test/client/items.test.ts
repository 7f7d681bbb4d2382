import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  createData,
  DataItem,
  ArweaveSigner as TheirArweave,
  EthereumSigner as TheirEthereum,
} from 'arbundles'
import { build } from 'esbuild'
import t from 'tap'
import { addonSigner } from '#addon-signer'
import { secp256k1By } from '../../native/secp256k1/secp256k1.js'
import { deepDigest, payloadDigestOf } from '../../src/client/deep-digest.js'
import { digestSigner, ethereumMessage, signDigest } from '../../src/client/evm.js'
import { messageOf, readItemHead } from '../../src/client/item-layout.js'
import { isOwnersItem } from '../../src/client/item-proof.js'
import { addonSigner as withoutAddon } from '../../src/client/no-addon.js'
import { signedItem } from '../../src/client/prepare.js'
import type { ArweaveJwk } from '../../src/client/rsa.js'
import {
  type ClientSigner,
  signerOfArweave,
  signerOfEd25519,
  signerOfEthereum,
  signerOfSolana,
} from '../../src/client/signer.js'
import { packTags, unpackTags } from '../../src/client/tags.js'
import { decodeBase64url } from '../../src/format/base64url.js'
import { encodeHex } from '../../src/format/hex.js'
import { deepHash } from '../../src/proof/deep-hash.js'
import { nativeAddress } from '../../src/proof/owner-address.js'
import { fixtureJson, fromHex } from '../fixture-file.js'
import { fc } from '../property.js'

interface Vector {
  readonly id: string
  readonly sigType: number
  readonly owner_b64url: string
  readonly rawTags: string
  readonly signMsg: string
  readonly signature: string
}
const vectors = fixtureJson<Record<string, Vector>>('vectors.json')
const jwk = fixtureJson<ArweaveJwk>('rsa-4096.jwk.json')
const secret = new Uint8Array(32).fill(1)
const tags = [
  { name: 'Content-Type', value: 'text/plain' },
  { name: 'A', value: 'é' },
]
const hello = new TextEncoder().encode('hello')

const signers: Record<string, () => Promise<ClientSigner>> = {
  arweave: () => signerOfArweave(jwk),
  ethereum: () => signerOfEthereum(secret),
  ed25519: () => signerOfEd25519(secret),
  solana: () => signerOfSolana(secret),
}

t.test('known items are made byte for byte where signatures are always the same', async (t) => {
  for (const [vector, name] of [
    ['eth3_tags', 'ethereum'],
    ['ed25519_type2', 'ed25519'],
    ['solana_type4_hex', 'solana'],
  ] as const) {
    const known = vectors[vector] as Vector
    const { id, bytes } = await signedItem(
      hello,
      { tags },
      await (signers[name] as () => Promise<ClientSigner>)(),
    )
    t.equal(id, known.id, vector)
    const header = readItemHead(bytes)
    if (header === undefined || header === 'more') throw new Error(vector)
    t.equal(encodeHex(header.signature), known.signature)
    t.equal(encodeHex(header.rawTags), known.rawTags)
    t.equal(encodeHex(messageOf(header, await payloadDigestOf(hello))), known.signMsg)
  }
})

for (const [name, make] of Object.entries(signers)) {
  t.test(`${name}: items verify here, there and nowhere after a change`, async (t) => {
    const signer = await make()
    t.equal(signer.address, nativeAddress(signer.signatureType, signer.owner))
    const { id, bytes } = await signedItem(
      hello,
      { tags, anchor: 'a'.repeat(32), target: 'A'.repeat(43) },
      signer,
    )
    const theirs = new DataItem(Buffer.from(bytes))
    t.equal(theirs.id, id)
    t.strictSame(theirs.tags, tags)
    t.equal(await DataItem.verify(Buffer.from(bytes)), true)
    const header = readItemHead(bytes)
    if (header === undefined || header === 'more') throw new Error('no header')
    t.equal(await isOwnersItem(header, await payloadDigestOf(hello)), true)
    t.equal(await isOwnersItem(header, await payloadDigestOf(hello.subarray(1))), false)
    const bent = { ...header, signature: header.signature.map((byte, at) => (at === 3 ? byte ^ 1 : byte)) }
    t.equal(await isOwnersItem(bent, await payloadDigestOf(hello)), false)
  })
}

t.test('an addon signs what the library signs', async (t) => {
  t.equal(addonSigner(secret) === undefined, secp256k1By === 'fallback', 'where it was built, it is taken')
  const digest = ethereumMessage(hello)
  t.strictSame(digestSigner(secret)(digest), signDigest(digest, secret))
  t.equal(withoutAddon(secret), undefined)
})

t.test('bundled as CommonJS for Node, where a file does not know its place, the library signs', async (t) => {
  const outfile = join(t.testdir({}), 'client.cjs')
  const entry = fileURLToPath(new URL('../../src/client/index.js', import.meta.url))
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    logLevel: 'silent',
  })
  const bundled = createRequire(import.meta.url)(outfile) as typeof import('../../src/client/index.js')
  const given = Buffer.from(secret)
  const signer = await bundled.signerOfEthereum(given)
  given.fill(0)
  t.strictSame(await signer.sign(hello), signDigest(ethereumMessage(hello), secret))
})

t.test('items of arbundles are read and verified', async (t) => {
  for (const their of [new TheirArweave(jwk as never), new TheirEthereum('01'.repeat(32))]) {
    const item = createData('some text', their, { tags, anchor: 'b'.repeat(32) })
    await item.sign(their)
    const header = readItemHead(new Uint8Array(item.getRaw()))
    if (header === undefined || header === 'more') throw new Error('no header')
    t.equal(header.id, item.id)
    t.strictSame(header.tags, tags)
    t.equal(await isOwnersItem(header, await payloadDigestOf(new TextEncoder().encode('some text'))), true)
  }
})

t.test('a key of Ed25519 that anybody can sign for signs nothing', async (t) => {
  const neutral = Uint8Array.from({ length: 32 }, (_, at) => (at === 0 ? 1 : 0))
  const signature = Uint8Array.from([...neutral, ...new Uint8Array(32)])
  for (const signatureType of [2, 4, 5])
    for (const sign of [0, 0x80]) {
      const owner = neutral.map((byte, at) => (at === 31 ? sign : byte))
      const none = new Uint8Array(0)
      const fields = { signatureType, owner, target: none, anchor: none, tags: [], rawTags: none, signature }
      for (const content of ['one content', 'another one', 'a third', 'a fourth', 'and so on']) {
        const payload = await payloadDigestOf(new TextEncoder().encode(content))
        t.equal(await isOwnersItem(fields, payload), false, `${signatureType}: ${content}`)
      }
    }
})

t.test('an item typed by EIP-712 verifies', async (t) => {
  const known = vectors.typedEth7 as Vector
  const fields = {
    signatureType: 7,
    owner: decodeBase64url(known.owner_b64url) ?? new Uint8Array(0),
    target: new Uint8Array(0),
    anchor: new Uint8Array(0),
    tags,
    rawTags: packTags(tags),
    signature: fromHex(known.signature),
  }
  t.equal(await isOwnersItem(fields, await payloadDigestOf(hello)), true)
  t.equal(
    await isOwnersItem(
      { ...fields, owner: fields.owner.map((byte) => byte ^ 1) },
      await payloadDigestOf(hello),
    ),
    false,
  )
})

t.test('tags go both ways, and deep hashes are those of the program', async () => {
  const bytes = fc.uint8Array({ maxLength: 100 })
  const tag = fc.record({ name: fc.string({ maxLength: 20 }), value: fc.string({ maxLength: 20 }) })
  fc.assert(
    fc.property(fc.array(tag, { maxLength: 20 }), (some) => {
      return JSON.stringify(unpackTags(packTags(some))) === JSON.stringify(some)
    }),
  )
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (some) => {
      const read = unpackTags(some)
      return read === undefined || Array.isArray(read)
    }),
  )
  fc.assert(
    fc.property(fc.array(bytes, { maxLength: 5 }), (list) => {
      return encodeHex(deepDigest(list)) === encodeHex(deepHash(list))
    }),
  )
})
