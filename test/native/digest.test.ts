import { createHash } from 'node:crypto'
import t from 'tap'
import { digestedBy, hashBlocks, nativeDeepHashing, openAddonPass } from '../../native/digest/digest.js'
import { FallbackPass, fallbackBlocks } from '../../native/digest/digest-fallback.js'
import type { Cut, DigestPass, Digests } from '../../native/digest/digest-pass.js'
import { fc } from '../property.js'

const ways: [name: string, open: (cut: Cut) => DigestPass, blocks: typeof hashBlocks][] = [
  ['the fallback', (cut) => new FallbackPass(cut), fallbackBlocks],
]
if (digestedBy === 'addon') ways.push(['the addon', (cut) => openAddonPass(cut)!, hashBlocks])
else
  t.comment(
    'the addon was not built, or this processor has no instructions for it: only its fallback is tested',
  )

function digest(algorithm: string, ...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash(algorithm)
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** The same by slices, each hashed by itself. */
function expected(bytes: Uint8Array, { blockBytes, pieceBytes }: Cut) {
  const blocks: Buffer[] = []
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += blockBytes) {
    blocks.push(digest('sha256', bytes.subarray(at, at + blockBytes)))
  }
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const piece = bytes.subarray(at, at + pieceBytes)
    pieces.push(digest('sha1', piece, new Uint8Array(pieceBytes - piece.length)))
  }
  return { whole: digest('sha256', bytes), blocks: Buffer.concat(blocks), pieces: Buffer.concat(pieces) }
}

function passed(pass: DigestPass, bytes: Uint8Array, ends: readonly number[]) {
  let at = 0
  for (const end of [...ends, bytes.length]) {
    pass.update(bytes.subarray(at, end))
    at = end
  }
  return pass.finish()
}

function same(one: Digests, other: Digests): boolean {
  return (['whole', 'blocks', 'pieces'] as const).every((key) => one[key].equals(other[key]))
}

/** Bytes that differ from place to place. */
function steady(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, at) => Math.imul(at + 1, 2_654_435_761) >>> 24)
}

const cuts = fc
  .tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 5 }))
  .map(([chunks, blocks]) => ({ blockBytes: 64 * chunks, pieceBytes: 64 * chunks * blocks }))

for (const [name, open, blocks] of ways) {
  t.test(`${name} knows the digests of the standard`, async (t) => {
    // FIPS 180-4's examples (NIST, "SHA256.pdf" and "SHA1.pdf"): one chunk, and two.
    const one = open({ blockBytes: 64, pieceBytes: 64 })
    one.update(Buffer.from('abc'))
    t.equal(
      one.finish().whole.toString('hex'),
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    )
    const two = open({ blockBytes: 64, pieceBytes: 64 })
    two.update(Buffer.from('abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq'))
    t.equal(
      two.finish().blocks.toString('hex'),
      '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1',
    )
    // A million times "a", its third example, is 15,625 chunks of 64.
    const many = open({ blockBytes: 64 * 625, pieceBytes: 1_000_000 })
    for (let at = 0; at < 1000; at += 1) many.update(Buffer.alloc(1000, 'a'))
    const { whole, blocks, pieces } = many.finish()
    t.equal(whole.toString('hex'), 'cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0')
    t.equal(pieces.toString('hex'), '34aa973cd4c4daa4f61eeb2bdbad27316534016f')
    t.equal(blocks.length, 25 * 32)
  })

  t.test(`${name} gives every length its digests`, async (t) => {
    const bytes = steady(700)
    const cut = { blockBytes: 128, pieceBytes: 256 }
    const wrong = []
    for (let length = 0; length <= bytes.length; length += 1) {
      const part = bytes.subarray(0, length)
      const [got, right] = [passed(open(cut), part, []), expected(part, cut)]
      if (!same(got, right)) wrong.push(length)
    }
    t.same(wrong, [])
  })

  t.test(`${name} gives the same however bytes are cut`, async (t) => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 3000 }),
        cuts,
        fc.array(fc.nat(3000), { maxLength: 12 }),
        async (bytes, cut, places) => {
          const ends = places.map((place) => Math.min(place, bytes.length)).sort((a, b) => a - b)
          const got = passed(open(cut), bytes, ends)
          const right = expected(bytes, cut)
          return same(got, right)
        },
      ),
      { numRuns: 300 },
    )
    t.pass('all digests were equal')
  })

  t.test(`${name} gives the digests of torrents' pieces`, async (t) => {
    const cut = { blockBytes: 16_384, pieceBytes: 262_144 }
    const bytes = steady(1_000_001)
    t.same(passed(open(cut), bytes, [1, 16_384, 262_143, 262_144, 262_145, 999_999]), expected(bytes, cut))
  })

  t.test(`${name} keeps passes that go on side by side apart`, async (t) => {
    const cut = { blockBytes: 64, pieceBytes: 128 }
    const texts = [steady(1000), steady(1000).reverse(), new Uint8Array(1000)]
    const passes = texts.map(() => open(cut))
    for (let at = 0; at < 1000; at += 10) {
      passes.forEach((pass, index) => {
        pass.update(texts[index]!.subarray(at, at + 10))
      })
    }
    t.same(
      passes.map((pass) => pass.finish()),
      texts.map((text) => expected(text, cut)),
    )
  })

  t.test(`${name} hashes blocks by themselves`, async (t) => {
    const bytes = steady(1500)
    const wrong = []
    for (const blockBytes of [64, 128, 192, 640]) {
      for (let length = 0; length <= bytes.length; length += 1) {
        const part = bytes.subarray(0, length)
        const right = expected(part, { blockBytes, pieceBytes: blockBytes }).blocks
        if (!blocks(part, blockBytes).equals(right)) wrong.push([blockBytes, length])
      }
    }
    t.same(wrong, [])
    for (const blockBytes of [0, 1, 63, 96, -64, Number.NaN])
      t.throws(() => blocks(bytes, blockBytes), RangeError)
  })

  t.test(`${name} refuses malformed cuts`, async (t) => {
    for (const [blockBytes, pieceBytes] of [
      [0, 0],
      [64, 0],
      [0, 64],
      [63, 63],
      [64, 96],
      [128, 64],
    ] as const) {
      t.throws(() => open({ blockBytes, pieceBytes }), RangeError, `${blockBytes}, ${pieceBytes}`)
    }
  })
}

if (nativeDeepHashing !== undefined) {
  const { deepen, deepenBy } = nativeDeepHashing
  t.test('deep hashes by the addon are those of the definition', async (t) => {
    const sha384 = (...parts: readonly Uint8Array[]): Buffer => digest('sha384', ...parts)
    const blobs = fc.array(
      fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.integer({ min: 0, max: 2000 }).map(steady)),
      {
        maxLength: 6,
      },
    )
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 48, maxLength: 48 }), blobs, (begun, list) => {
        const before = Buffer.from(begun)
        const wanted = list.reduce<Uint8Array>(
          (acc, blob) => sha384(acc, sha384(sha384(Buffer.from(`blob${blob.length}`)), sha384(blob))),
          begun,
        )
        const one = list.reduce<Uint8Array>((acc, blob) => deepenBy(acc, sha384(blob), blob.length), begun)
        return (
          before.equals(begun) &&
          Buffer.compare(deepen(begun, list), wanted) === 0 &&
          Buffer.compare(one, wanted) === 0
        )
      }),
      { numRuns: 200 },
    )
    const far = 2 ** 40 + 1
    const [acc, hashed] = [steady(48), steady(48).reverse()]
    const wanted = sha384(acc, sha384(sha384(Buffer.from(`blob${far}`)), hashed))
    t.equal(Buffer.compare(deepenBy(acc, hashed, far), wanted), 0)
  })

  t.test('what are no accumulators and no blobs is refused', async (t) => {
    t.throws(() => deepen(steady(47), []), RangeError)
    t.throws(() => deepen(steady(48), [1] as unknown as Uint8Array[]), TypeError)
    t.throws(() => deepen(steady(48), 'ab' as unknown as Uint8Array[]), TypeError)
    t.throws(() => deepenBy(steady(48), steady(47), 1), RangeError)
    t.throws(() => deepenBy(steady(48), steady(48), -1), RangeError)
  })
}
