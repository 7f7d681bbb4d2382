import { secp256k1 } from '@noble/curves/secp256k1.js'
import t from 'tap'
import {
  addonSigner,
  compressedKey,
  isSecp256k1Key,
  recoverSecp256k1,
  secp256k1By,
  secp256k1SignerOf,
  verifySecp256k1,
} from '../../native/secp256k1/secp256k1.js'
import {
  isSecp256k1KeyByFallback,
  recoverSecp256k1ByFallback,
  signSecp256k1ByFallback,
  verifySecp256k1ByFallback,
} from '../../native/secp256k1/secp256k1-fallback.js'
import { random } from '../property.js'

const { Point } = secp256k1
const order = Point.Fn.ORDER
const prime = Point.Fp.ORDER
const rounds = 100 * Number(process.env.SECP256K1_ROUNDS ?? 1)

const hex = (bytes: Uint8Array | readonly number[]): string => Buffer.from(bytes).toString('hex')
const someBytes = (count: number): Buffer => Buffer.from(Array.from({ length: count }, () => random() * 256))
const bytesOf = (number: bigint): Buffer => Buffer.from(number.toString(16).padStart(64, '0'), 'hex')
const numberOf = (bytes: Uint8Array): bigint => BigInt(`0x${hex(bytes)}`)
const someScalar = (): bigint => (numberOf(someBytes(32)) % (order - 1n)) + 1n
const signatureOf = (r: bigint, s: bigint): Buffer => Buffer.concat([bytesOf(r), bytesOf(s)])

/** What both ways say, which must be the same. */
function isAccepted(key: Uint8Array, digest: Uint8Array, signature: Uint8Array): boolean {
  const isValid = verifySecp256k1(key, digest, signature)
  if (isValid === verifySecp256k1ByFallback(key, digest, signature)) return isValid
  throw new Error(`${secp256k1By} says ${isValid} of ${[key, digest, signature].map(hex).join(' ')}`)
}

function keyOf(digest: Uint8Array, signature: Uint8Array, recovery: number): Uint8Array | undefined {
  const found = recoverSecp256k1(digest, signature, recovery)
  const theirs = recoverSecp256k1ByFallback(digest, signature, recovery)
  if (hex(found ?? []) === hex(theirs ?? [])) return found
  throw new Error(`${secp256k1By} finds ${hex(found ?? [])} for ${hex(digest)} ${hex(signature)} ${recovery}`)
}

function flip(bytes: Uint8Array): Uint8Array {
  const other = Uint8Array.from(bytes)
  const at = Math.floor(random() * other.length * 8)
  other[at >> 3] = (other[at >> 3] ?? 0) ^ (1 << (at & 7))
  return other
}

t.test('signatures of others are accepted, what was changed is not, and keys are recovered', async (t) => {
  for (let round = 0; round < rounds; round += 1) {
    const secret = secp256k1.utils.randomSecretKey(someBytes(48))
    const key = secp256k1.getPublicKey(secret, false)
    const digest = someBytes(32)
    const made = secp256k1.sign(digest, secret, { prehash: false, format: 'recovered' })
    const [recovery = 0, signature] = [made[0], made.subarray(1)]
    if (!isAccepted(key, digest, signature)) t.fail(`refused: ${hex(key)} ${hex(digest)} ${hex(signature)}`)
    if (isAccepted(key, flip(digest), signature)) t.fail('another digest')
    if (isAccepted(key, digest, flip(signature))) t.fail('another signature')
    if (isAccepted(flip(key), digest, signature)) t.fail('another key')
    const { r, s } = secp256k1.Signature.fromBytes(signature, 'compact')
    if (isAccepted(key, digest, signatureOf(r, order - s))) t.fail('a high s')
    for (const each of [0, 1, 2, 3]) {
      const same = hex(keyOf(digest, signature, each) ?? []) === hex(key)
      if (same !== (each === recovery)) t.fail(`recovery ${each} of ${hex(signature)}`)
    }
  }
})

t.test('an x above the order', async (t) => {
  let shown = 0
  for (let more = 0n; shown < 4; more += 1n) {
    // Points whose x is the order and a little: no known number makes one, but a key can be found for any signature.
    const signature = signatureOf(more, someScalar() / 2n)
    const digest = someBytes(32)
    for (const recovery of [2, 3]) {
      const key = keyOf(digest, signature, recovery)
      if (key === undefined) continue
      t.ok(isAccepted(key, digest, signature), 'accepted, too')
      shown += 1
    }
  }
})

t.test('numbers at the edges', async (t) => {
  const edges = [0n, 1n, 2n, order / 2n, order / 2n + 1n, order - 1n, order, order + 1n, prime - order]
  const all = [...edges, prime - order - 1n, prime - 1n, prime, prime + 1n, 2n ** 256n - 1n, 7n]
  const secret = bytesOf(1n)
  const keys = [1n, 2n, 3n, order - 1n].map((number) => Point.BASE.multiply(number).toBytes(false))
  let accepted = 0
  for (const r of all) {
    for (const s of all) {
      for (const number of [0n, r, order - 1n, 2n ** 256n - 1n]) {
        const [digest, signature] = [bytesOf(number), signatureOf(r, s)]
        for (const recovery of [0, 1, 2, 3]) {
          const key = keyOf(digest, signature, recovery)
          if (key !== undefined && isAccepted(key, digest, signature)) accepted += 1
        }
        for (const key of keys) if (r < 10n || s < 10n) isAccepted(key, digest, signature)
      }
    }
  }
  t.ok(accepted > 10, `${accepted} accepted`)
  t.ok(isSecp256k1Key(secp256k1.getPublicKey(secret, false)))
})

t.test('sums that meet equal and opposite points', async () => {
  // The key is a small multiple of the base point, so that both rows of multiples hold the same points.
  for (const number of [1n, 2n, 3n, 5n, 7n, 9n, 31n, order - 1n, order - 2n, order - 3n, (order + 1n) / 2n]) {
    const key = Point.BASE.multiply(number).toBytes(false)
    for (let round = 0; round < 20; round += 1) {
      const nonce = round < 10 ? BigInt(round + 1) : someScalar()
      const r = Point.BASE.multiply(nonce).toAffine().x % order
      // For chosen u1 and u2 this digest and s: u1 = h / s, u2 = r / s, and the sum is nonce * base point.
      const u2 = BigInt(round % 5) + 1n
      const u1 = (((nonce - u2 * number) % order) + order) % order
      const s = (r * Point.Fn.inv(u2)) % order
      isAccepted(key, bytesOf((u1 * s) % order), signatureOf(r, s))
      isAccepted(key, bytesOf((((order - u2) * number * s) % order) % order), signatureOf(r, s))
    }
  }
})

t.test('keys', async (t) => {
  const key = secp256k1.getPublicKey(bytesOf(5n), false)
  t.equal(hex(compressedKey(key)), hex(secp256k1.getPublicKey(bytesOf(5n), true)))
  const x = key.subarray(1, 33)
  const others = [
    Buffer.concat([Buffer.from([4]), x, bytesOf(prime - numberOf(key.subarray(33)))]),
    Buffer.concat([Buffer.from([6]), key.subarray(1)]),
    Buffer.concat([Buffer.from([4]), bytesOf(prime), key.subarray(33)]),
    Buffer.concat([Buffer.from([4]), bytesOf(0n), bytesOf(0n)]),
    Buffer.concat([Buffer.from([4]), bytesOf(2n ** 256n - 1n), bytesOf(2n ** 256n - 1n)]),
    Buffer.alloc(65),
    flip(key),
    compressedKey(key),
    key.subarray(1),
    new Uint8Array(0),
  ]
  for (const each of [key, ...others])
    t.equal(isSecp256k1Key(each), isSecp256k1KeyByFallback(each), hex(each))
  t.equal(isSecp256k1Key(others[0] ?? key), true, 'the opposite point')
})

t.test('other lengths and recovery numbers', async (t) => {
  const [key, digest, signature] = [secp256k1.getPublicKey(bytesOf(5n), false), someBytes(32), someBytes(64)]
  t.notOk(verifySecp256k1(key, digest.subarray(1), signature))
  t.notOk(verifySecp256k1(key, digest, signature.subarray(1)))
  for (const recovery of [-1, 4, 27, 0.5, Number.NaN])
    t.equal(recoverSecp256k1(digest, signatureOf(7n, 9n), recovery), undefined)
  t.equal(recoverSecp256k1(digest.subarray(1), signature, 0), undefined)
  t.equal(recoverSecp256k1(digest, signature.subarray(1), 0), undefined)
})

t.test('signatures are those of noble, byte by byte', async (t) => {
  const edges = [0n, 1n, 2n, order / 2n, order / 2n + 1n, order - 1n, order, order + 1n, 2n ** 256n - 1n]
  const secrets = [1n, 2n, 3n, order / 2n, order / 2n + 1n, order - 2n, order - 1n].map(bytesOf)
  const recoveries = new Set<number>()
  const compare = (secret: Uint8Array, digests: readonly Uint8Array[]): void => {
    const sign = secp256k1SignerOf(secret)
    const key = secp256k1.getPublicKey(secret, false)
    for (const digest of digests) {
      const signature = sign(digest)
      const expected = hex(signSecp256k1ByFallback(secret, digest))
      if (hex(signature) !== expected) t.fail(`${hex(secret)} signs ${hex(digest)}: ${hex(signature)}`)
      const recovery = signature[64] ?? 4
      const found = recoverSecp256k1(digest, signature.subarray(0, 64), recovery)
      if (hex(found ?? []) !== hex(key)) t.fail(`the key of ${hex(signature)}`)
      recoveries.add(recovery)
    }
  }
  for (const secret of secrets) compare(secret, edges.map(bytesOf))
  for (let round = 0; round < rounds; round += 1)
    compare(bytesOf(someScalar()), [someBytes(32), someBytes(32), someBytes(32)])
  t.strictSame([...recoveries].sort(), [0, 1], 'of both kinds')
})

t.test('the secret is kept as it was given', async (t) => {
  const secret = bytesOf(77n)
  const sign = addonSigner(secret)
  t.equal(sign === undefined, secp256k1By === 'fallback')
  const first = sign?.(bytesOf(1n))
  secret.fill(9)
  t.strictSame(sign?.(bytesOf(1n)), first)
})

t.test('what is no secret signs nothing', async (t) => {
  for (const number of [0n, order, order + 1n, 2n ** 256n - 1n]) {
    t.equal(addonSigner(bytesOf(number)), undefined)
    t.throws(() => secp256k1SignerOf(bytesOf(number)))
  }
  for (const length of [0, 31, 33]) {
    t.equal(addonSigner(new Uint8Array(length).fill(1)), undefined)
    t.throws(() => secp256k1SignerOf(new Uint8Array(length).fill(1)))
  }
})
