import { createHash, createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { ed25519 } from '@noble/curves/ed25519.js'
import t from 'tap'
import {
  ed25519SignerOf,
  verifiedBy,
  verifyEd25519,
  verifyEd25519ByFallback,
} from '../../native/ed25519/ed25519.js'
import { newEd25519Key } from '../../src/proof/new-key.js'
import { fc, random } from '../property.js'

const { Point } = ed25519
const order = Point.Fn.ORDER
const prime = Point.Fp.ORDER
type Curve = InstanceType<typeof Point>

const hex = (text: string): Buffer => Buffer.from(text, 'hex')

function keyOfSeed(seed: Buffer): KeyObject {
  const key = Buffer.concat([hex('302e020100300506032b657004220420'), seed])
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' })
}

t.test('examples of RFC 8032, section 7.1', async (t) => {
  const examples = [
    [
      '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
      'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
      '',
      [
        'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155',
        '5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
      ].join(''),
    ],
    [
      '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
      '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
      '72',
      [
        '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da',
        '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
      ].join(''),
    ],
    [
      'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
      'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
      'af82',
      [
        '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac',
        '18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
      ].join(''),
    ],
  ] as const
  for (const [seed, key, message, signature] of examples) {
    t.equal(ed25519SignerOf(keyOfSeed(hex(seed)))(hex(message)).toString('hex'), signature)
    t.ok(verifyEd25519(hex(key), hex(message), hex(signature)))
    t.notOk(verifyEd25519(hex(key), hex(`${message}00`), hex(signature)))
  }
})

/** The neutral point: as a key, it makes any message signed by itself. */
const neutral = Buffer.from([1, ...new Uint8Array(31)])
/** node:crypto of Node 24 refuses keys of small order, as the callers of both ways do before they ask. */
const refusesSmallOrder = !verifyEd25519ByFallback(
  neutral,
  Buffer.from('any'),
  Buffer.concat([neutral, Buffer.alloc(32)]),
)

function isOfSmallOrder(key: Uint8Array): boolean {
  try {
    return Point.fromBytes(key, true).isSmallOrder()
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return false
  }
}

/** What both ways say, which must be the same; but for keys that Node may refuse by itself. */
function isAccepted(key: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const isValid = verifyEd25519(key, message, signature)
  if (isValid === verifyEd25519ByFallback(key, message, signature)) return isValid
  if (isValid && refusesSmallOrder && isOfSmallOrder(key)) return isValid
  const given = [key, message, signature].map((bytes) => Buffer.from(bytes).toString('hex'))
  throw new Error(`${verifiedBy} says ${isValid} of key, message and signature ${given.join(' ')}`)
}

function bytesOf(number: bigint): Buffer {
  return Buffer.from(number.toString(16).padStart(64, '0'), 'hex').reverse()
}

const numberOf = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`)
const someBytes = (count: number): Buffer => Buffer.from(Array.from({ length: count }, () => random() * 256))
const sizes = { numRuns: 2000 * Number(process.env.ED25519_ROUNDS ?? 1) }

t.test('any signature is judged as node:crypto judges it', async (t) => {
  const pairs = Array.from({ length: 20 }, () => newEd25519Key())
  let accepted = 0
  const flips = fc.option(fc.tuple(fc.constantFrom('key', 'r', 's', 'message'), fc.nat()))
  fc.assert(
    fc.property(fc.constantFrom(...pairs), fc.uint8Array({ maxLength: 300 }), flips, (pair, bytes, flip) => {
      const message = Buffer.from(bytes)
      const key = Buffer.from(pair.publicKey)
      const signature = sign(null, message, pair.privateKey)
      const parts = { key, message, r: signature.subarray(0, 32), s: signature.subarray(32) }
      if (flip !== null) {
        const part = parts[flip[0] as keyof typeof parts]
        const at = flip[1] % (part.length || 1)
        if (part.length > 0) part[at] = (part[at] ?? 0) ^ (1 << (flip[1] % 8))
      }
      if (isAccepted(key, message, signature)) accepted += 1
    }),
    sizes,
  )
  t.ok(accepted > 200, `${accepted} were accepted`)
  t.ok(accepted < sizes.numRuns - 200)
})

t.test('what is signed here is what node:crypto signs', async (t) => {
  // Numbers of few bits and of many: each digit of the tables is met.
  const seeds = [0, 1, 0x0f, 0x80, 0xff].map((byte) => Buffer.alloc(32, byte))
  for (let round = 0; round < sizes.numRuns / 20; round += 1) {
    const key = keyOfSeed(seeds[round] ?? someBytes(32))
    const signed = ed25519SignerOf(key)
    // Around the blocks of SHA-512, and the room for the length in the last of them.
    for (const length of [0, 47, 48, 63, 64, 79, 80, 111, 112, 127, 128, Math.floor(random() * 2000)]) {
      const message = someBytes(length)
      if (!signed(message).equals(sign(null, message, key)))
        t.fail(`${message.toString('hex')} by ${key.export({ format: 'jwk' }).d}`)
    }
  }
})

t.test('bytes that nobody signed', async (t) => {
  for (let round = 0; round < sizes.numRuns; round += 1) {
    if (isAccepted(someBytes(32), someBytes(48), someBytes(64))) t.fail('chance has signed')
  }
})

t.test('a number s of the order or more is refused, though it fits', async (t) => {
  const { publicKey: key, privateKey } = newEd25519Key()
  const message = Buffer.from('a message')
  const signature = sign(null, message, privateKey)
  const s = numberOf(signature.subarray(32))
  for (let more = 0n; s + more * order < 2n ** 256n; more += 1n) {
    const other = Buffer.concat([signature.subarray(0, 32), bytesOf(s + more * order)])
    t.equal(isAccepted(key, message, other), more === 0n, `${more} times the order more`)
  }
  for (const edge of [0n, 1n, order - 1n, order, order + 1n, 2n ** 252n, 2n ** 253n - 1n, 2n ** 256n - 1n])
    isAccepted(key, message, Buffer.concat([signature.subarray(0, 32), bytesOf(edge)]))
})

/** The eight points whose multiple by 8 is zero. */
function torsion(): Curve[] {
  for (;;) {
    try {
      // The order times any point is one of them; of every fourth point one that makes them all.
      const point = Point.fromBytes(someBytes(32), true)
      const one = point.multiplyUnsafe(order - 1n).add(point)
      const all = Array.from({ length: 8 }, (_, at) =>
        at === 0 ? Point.ZERO : one.multiplyUnsafe(BigInt(at)),
      )
      if (new Set(all.map((each) => each.toHex())).size === 8) return all
    } catch (error) {
      // Every second number is no point.
      if (!(error instanceof Error)) throw error
    }
  }
}

t.test('keys and signatures with a part of small order', async (t) => {
  const message = Buffer.from('a message of some length')
  const [keyNumber, nonce] = [numberOf(someBytes(32)) % order, numberOf(someBytes(32)) % order]
  const [key, commitment] = [Point.BASE.multiply(keyNumber), Point.BASE.multiply(nonce)]
  let accepted = 0
  let tried = 0
  const parts = torsion()
  for (const ofKey of parts) {
    for (const ofCommitment of parts) {
      for (const [owner, number] of [
        [key.add(ofKey), keyNumber],
        [ofKey, 0n],
      ] as const) {
        const start = Buffer.concat([commitment.add(ofCommitment).toBytes(), owner.toBytes()])
        for (let round = 0; round < 4; round += 1) {
          const text = Buffer.concat([message, Buffer.from([round])])
          const digest = createHash('sha512').update(start).update(text).digest()
          const challenge = numberOf(digest) % order
          const s = bytesOf((nonce + challenge * number) % order)
          tried += 1
          if (isAccepted(owner.toBytes(), text, Buffer.concat([start.subarray(0, 32), s]))) accepted += 1
        }
      }
    }
  }
  t.comment(`${accepted} of ${tried} accepted`)
  t.ok(accepted > 8 && accepted < tried / 2, 'some hold without the cofactor, most do not')
})

t.test('every odd encoding of a point', async (t) => {
  const edges = [...Array.from({ length: 40 }, (_, at) => BigInt(at)), (prime - 1n) / 2n]
  const numbers = [...edges, ...edges.map((edge) => prime - 20n + edge)].filter(
    (number) => number < 2n ** 255n,
  )
  const message = Buffer.from('whatever')
  let accepted = 0
  for (const number of numbers) {
    for (const high of [0n, 2n ** 255n]) {
      const encoded = bytesOf(number + high)
      // With a key of small order and s = 0, the commitment is a point of small order: each is tried.
      for (const r of [...parts255(), encoded]) {
        for (let round = 0; round < 4; round += 1) {
          const text = Buffer.concat([message, Buffer.from([round])])
          if (isAccepted(encoded, text, Buffer.concat([r, Buffer.alloc(32)]))) accepted += 1
        }
      }
    }
  }
  t.ok(accepted > 0 || refusesSmallOrder, `${accepted} accepted`)
})

function parts255(): Buffer[] {
  const y = numberOf(hex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05'))
  const all = [0n, 1n, prime - 1n, y, prime - y].flatMap((one) => [one, one + 2n ** 255n])
  return all.map(bytesOf)
}

t.test('other lengths are no signatures', async (t) => {
  const [key, signature] = [new Uint8Array(32), new Uint8Array(64)]
  for (const length of [0, 31, 33, 64]) t.notOk(verifyEd25519(new Uint8Array(length), key, signature))
  for (const length of [0, 32, 63, 65]) t.notOk(verifyEd25519(key, key, new Uint8Array(length)))
})
