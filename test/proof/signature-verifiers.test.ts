import { createHash, createPrivateKey, type JsonWebKey, sign } from 'node:crypto'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import t from 'tap'
import { encodeTags } from '../../src/format/avro-tags.js'
import { signatureTypes } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { tagOf } from '../../src/format/tag.js'
import { deepHash } from '../../src/proof/deep-hash.js'
import { itemMessage } from '../../src/proof/item-verifier.js'
import { newEd25519Key } from '../../src/proof/new-key.js'
import { ed25519Signer, ethereumSigner, solanaSigner } from '../../src/proof/sign.js'
import { isOnlyForm } from '../../src/proof/signature-form.js'
import { verifySignature } from '../../src/proof/signature-verifiers.js'
import { fixtureJson, fromBase64url, fromHex, toHex } from '../fixture-file.js'

interface Vector {
  readonly sigType: number
  readonly owner_b64url: string
  readonly rawTags: string
  readonly signMsg: string
  readonly signature: string
}
const vectors = fixtureJson<Record<string, Vector>>('vectors.json')
const names = Object.keys(vectors).filter((name) => vectors[name]?.signMsg !== undefined)
const signedOf = (vector: Vector) => ({
  owner: fromBase64url(vector.owner_b64url),
  message: fromHex(vector.signMsg),
  signature: fromHex(vector.signature),
})
const vectorOf = (name: string) => signedOf(vectors[name] as Vector)

/** A copy with one byte of one field changed. */
function bent<T extends Record<string, Uint8Array>>(signed: T, field: keyof T, at: number): T {
  const copy = Buffer.from(signed[field] as Uint8Array)
  copy[at] = (copy[at] ?? 0) ^ 1
  return { ...signed, [field]: copy }
}

for (const name of names) {
  const { sigType } = vectors[name] as Vector
  const signed = vectorOf(name)
  t.test(`${name}: the signature holds, and no changed byte of it does`, async (t) => {
    t.equal(verifySignature(sigType, signed), true)
    const signatureSize = sigType === 3 ? 64 : signed.signature.length
    for (const at of [0, 31, 32, signatureSize - 1]) {
      t.not(verifySignature(sigType, bent(signed, 'signature', at)), true, `signature byte ${at}`)
    }
    t.not(verifySignature(sigType, bent(signed, 'message', 0)), true)
    for (const at of [0, 5, signed.owner.length - 1]) {
      t.not(verifySignature(sigType, bent(signed, 'owner', at)), true, `owner byte ${at}`)
    }
  })
}

t.test('the messages of the known items are rebuilt from their parts', async (t) => {
  const rawTags = encodeTags([tagOf('Content-Type', 'text/plain'), tagOf('A', 'é')])
  const none = new Uint8Array(0)
  for (const name of ['eth3_tags', 'ed25519_type2', 'solana_type4_hex', 'typedEth7']) {
    const { sigType, owner_b64url, signMsg } = vectors[name] as Vector
    const header = {
      signatureType: sigType,
      owner: fromBase64url(owner_b64url),
      target: none,
      anchor: none,
      rawTags,
    }
    t.equal(toHex(itemMessage(header, Buffer.from('hello'))), signMsg, name)
  }
})

t.test(
  'type 3: the recovery byte is not looked at, a high s is refused, and so is an owner off the curve',
  async (t) => {
    const signed = vectorOf('eth3_tags')
    t.equal(verifySignature(3, bent(signed, 'signature', 64)), true)
    const { r, s } = secp256k1.Signature.fromBytes(signed.signature.subarray(0, 64), 'compact')
    const high = new secp256k1.Signature(r, secp256k1.Point.Fn.ORDER - s).toBytes('compact')
    t.equal(verifySignature(3, { ...signed, signature: Buffer.concat([high, Buffer.from([27])]) }), false)
    t.match(verifySignature(3, bent(signed, 'owner', 64)), { refused: 'malformed', message: /not a point/ })
    const compressed = Buffer.from(signed.owner)
    compressed[0] = 2
    t.match(verifySignature(3, { ...signed, owner: compressed }), {
      refused: 'malformed',
      message: /uncompressed/,
    })
    t.equal(verifySignature(3, { ...signed, signature: new Uint8Array(65) }), false)
    t.equal(verifySignature(3, { ...signed, signature: Buffer.alloc(65, 255) }), false)
  },
)

t.test("types 2 and 4 do not take each other's signatures", async (t) => {
  t.equal(verifySignature(4, vectorOf('ed25519_type2')), false)
  t.equal(verifySignature(2, vectorOf('solana_type4_hex')), false)
})

t.test('type 7: the owner may be spelled in any case, the recovery byte must be one', async (t) => {
  const signed = vectorOf('typedEth7')
  const upper = Buffer.from(`0x${Buffer.from(signed.owner).toString().slice(2).toUpperCase()}`)
  t.equal(verifySignature(7, { ...signed, owner: upper }), true)
  t.match(verifySignature(7, { ...signed, owner: Buffer.alloc(42, 'z') }), { refused: 'malformed' })
  const v = Buffer.from(signed.signature)
  v[64] = (v[64] ?? 0) - 27
  t.equal(verifySignature(7, { ...signed, signature: v }), true)
  v[64] = 5
  t.match(verifySignature(7, { ...signed, signature: v }), { refused: 'malformed', message: /recovery/ })
  v[64] = 28 + 27 - (signed.signature[64] ?? 0)
  t.equal(verifySignature(7, { ...signed, signature: v }), false, 'the other point is another address')
  const { r, s } = secp256k1.Signature.fromBytes(signed.signature.subarray(0, 64), 'compact')
  const high = new secp256k1.Signature(r, secp256k1.Point.Fn.ORDER - s).toBytes('compact')
  const highSigned = Buffer.concat([high, Buffer.from([28 + 27 - (signed.signature[64] ?? 0)])])
  t.equal(verifySignature(7, { ...signed, signature: highSigned }), false, 'the second form with a high s')
  t.equal(verifySignature(7, { ...signed, signature: new Uint8Array(65) }), false)
})

t.test('type 5 signs a text that names its chain', async (t) => {
  const { publicKey: owner, privateKey } = newEd25519Key()
  const message = deepHash([Buffer.from('x')])
  const text = `APTOS\nmessage: ${toHex(message)}\nnonce: bundlr`
  const signature = sign(null, Buffer.from(text), privateKey)
  t.equal(verifySignature(5, { owner, message, signature }), true)
  t.equal(verifySignature(5, { owner, message, signature: sign(null, message, privateKey) }), false)
})

t.test('type 6 wants as many sound signatures as its threshold, and at least one', async (t) => {
  const message = deepHash([Buffer.from('x')])
  const keys = [0, 9, 31].map((slot) => ({ slot, ...newEd25519Key() }))
  /** Signed by the keys in `signers`, with a bit set for each slot in `bits`. */
  const multi = (threshold: number, signers: readonly number[], bits: readonly number[]) => {
    const owner = Buffer.alloc(32 * 32 + 1)
    const signature = Buffer.alloc(32 * 64 + 4)
    for (const { slot, publicKey, privateKey } of keys) {
      owner.set(publicKey, slot * 32)
      if (signers.includes(slot)) signature.set(sign(null, message, privateKey), slot * 64)
    }
    for (const bit of bits) {
      const at = 32 * 64 + Math.floor(bit / 8)
      signature[at] = (signature[at] ?? 0) | (0x80 >> (bit % 8))
    }
    owner[32 * 32] = threshold
    return { owner, message, signature }
  }
  t.equal(verifySignature(6, multi(1, [0], [0])), true)
  t.equal(verifySignature(6, multi(2, [0, 31], [0, 31])), true)
  t.equal(verifySignature(6, multi(2, [9, 31, 0], [0, 9, 31])), true)
  t.equal(verifySignature(6, multi(2, [9], [9])), false, 'fewer than the threshold')
  t.equal(verifySignature(6, multi(1, [0], [])), false, 'no signature at all')
  t.not(verifySignature(6, multi(1, [0], [0, 9])), true, 'a bit without a signature')
  t.not(verifySignature(6, multi(1, [0], [1])), true, 'a bit for another slot')
  t.match(verifySignature(6, multi(0, [0], [0])), { refused: 'malformed', message: /threshold 0 is not/ })
  t.match(verifySignature(6, multi(33, [0], [0])), { refused: 'malformed', message: /threshold 33 is not/ })
})

t.test('of all forms of a signature that hold, one counts', (t) => {
  for (const name of names) {
    const { sigType } = vectors[name] as Vector
    t.equal(isOnlyForm(sigType, vectorOf(name)), true, name)
  }
  for (const [type, name] of [
    [3, 'eth3_tags'],
    [7, 'typedEth7'],
  ] as const) {
    const signed = vectorOf(name)
    const taken = Array.from({ length: 256 }, (_, v) => v).filter((v) => {
      const signature = Buffer.concat([signed.signature.subarray(0, 64), Buffer.of(v)])
      return (
        verifySignature(type, { ...signed, signature }) === true && isOnlyForm(type, { ...signed, signature })
      )
    })
    t.strictSame(taken, [signed.signature[64]], `type ${type}`)
  }
  const message = deepHash([Buffer.from('x')])
  const keys = [1, 2, 3].map((byte) => ed25519Signer(Buffer.alloc(32, byte)))
  const owner = Buffer.alloc(32 * 32 + 1)
  owner[32 * 32] = 2
  const signature = Buffer.alloc(32 * 64 + 4)
  for (const [slot, key] of keys.entries()) {
    owner.set(key.owner, 32 * slot)
    if (slot < 2) signature.set(key.sign(message), 64 * slot)
  }
  signature[32 * 64] = 0b1100_0000
  const signed = { owner, message, signature }
  t.equal(isOnlyForm(6, signed), true)
  const filled = bent(signed, 'signature', 64 * 5)
  t.equal(verifySignature(6, filled), true)
  t.equal(isOnlyForm(6, filled), false, 'a byte where nobody has signed')
  const third = { owner, message, signature: Buffer.from(signature) }
  third.signature.set(keys[2]?.sign(message) ?? [], 64 * 2)
  third.signature[32 * 64] = 0b1110_0000
  t.equal(verifySignature(6, third), true)
  t.equal(isOnlyForm(6, third), false, 'a signature more than are wanted, which anybody could leave out')
  owner.copyWithin(64, 0, 32)
  t.equal(isOnlyForm(6, signed), false, 'the same key twice, whose signature can stand in either slot')
  t.end()
})

t.test('RSA takes any salt length, and refuses moduli that are no keys', async (t) => {
  const jwk = fixtureJson<JsonWebKey>('rsa-4096.jwk.json')
  const privateKey = createPrivateKey({ key: jwk, format: 'jwk' })
  const owner = Buffer.from(jwk.n ?? '', 'base64url')
  const message = deepHash([Buffer.from('x')])
  for (const saltLength of [0, 32, 478]) {
    const signature = sign('sha256', message, { key: privateKey, padding: 6, saltLength })
    t.equal(verifySignature(1, { owner, message, signature }), true, `salt of ${saltLength}`)
    t.equal(verifySignature(1, { owner, message: createHash('sha384').digest(), signature }), false)
  }
  const pkcs1 = sign('sha256', message, privateKey)
  t.equal(verifySignature(1, { owner, message, signature: pkcs1 }), false, 'another padding')
  for (const fill of [0, 2, 255]) {
    const answer = verifySignature(1, {
      owner: Buffer.alloc(512, fill),
      message,
      signature: Buffer.alloc(512, 1),
    })
    t.ok(answer === false || isRefusal(answer), `a modulus of ${fill}s`)
  }
})

t.test('keys that anybody can sign for are refused, in every spelling', async (t) => {
  const { Point } = ed25519
  const points = Point.fromHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05')
  let point = Point.ZERO
  for (let i = 0; i < 8; i++) {
    for (const sign of [0, 0x80]) {
      const owner = Buffer.from(point.toBytes())
      owner[31] = (owner[31] ?? 0) ^ sign
      const signed = { owner, message: deepHash([]), signature: new Uint8Array(64) }
      for (const type of [2, 4, 5]) {
        t.match(verifySignature(type, signed), { refused: 'malformed', message: /anybody/ })
      }
    }
    point = point.add(points)
  }
  t.ok(point.is0(), 'all eight were tried')
})

t.test('unknown types and wrong lengths are refused', async (t) => {
  const empty = new Uint8Array(0)
  const next = Math.max(...signatureTypes.keys()) + 1
  t.match(verifySignature(next, { owner: empty, message: empty, signature: empty }), {
    message: `type ${next} is unknown`,
  })
  t.match(verifySignature(101, { owner: empty, message: empty, signature: empty }), { message: /101/ })
  for (const type of signatureTypes.values()) {
    t.match(verifySignature(type.type, { owner: empty, message: empty, signature: empty }), {
      refused: 'malformed',
    })
    const signed = {
      owner: Buffer.alloc(type.ownerSize),
      message: empty,
      signature: Buffer.alloc(type.signatureSize),
    }
    t.not(verifySignature(type.type, signed), true, `${type.name} of zeros`)
  }
})

t.test('signatures of our signers verify, and deterministic keys give the known ones', async (t) => {
  const seed = Buffer.alloc(32, 1)
  const message = deepHash([Buffer.from('x')])
  for (const signer of [ed25519Signer(seed), solanaSigner(seed), ethereumSigner(seed)]) {
    const { owner, signatureType } = signer
    t.equal(verifySignature(signatureType, { owner, message, signature: signer.sign(message) }), true)
  }
  const known = [
    ['ed25519_type2', ed25519Signer(seed)],
    ['solana_type4_hex', solanaSigner(seed)],
    ['eth3_tags', ethereumSigner(seed)],
  ] as const
  for (const [name, signer] of known) {
    const { owner, message, signature } = vectorOf(name)
    t.equal(toHex(signer.owner), toHex(owner), name)
    t.equal(toHex(signer.sign(message)), toHex(signature), name)
  }
  t.throws(() => ed25519Signer(Buffer.alloc(31)), RangeError)
})
