import { createHash, randomBytes } from 'node:crypto'
import t from 'tap'
import { asideSha384, streamingHash } from '../../src/client/aside-hash.js'
import { type Assembly, initialState, layout, sha384Module } from '../../src/client/sha384-module.js'
import { random } from '../property.js'

const sha384 = (bytes: Uint8Array): string => createHash('sha384').update(bytes).digest('hex')

/** The same bytes in pieces of random sizes. */
function pieces(bytes: Uint8Array, most: number): Uint8Array[] {
  const found: Uint8Array[] = []
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + Math.floor(random() * most)
    found.push(bytes.subarray(at, at + size))
    at += size
  }
  return found
}

t.test('the module for browsers gives the SHA-384 of bytes in any pieces', async (t) => {
  const { WebAssembly } = globalThis as unknown as { WebAssembly: Assembly }
  const module = await WebAssembly.compile(sha384Module())
  const { input, inputBytes } = layout
  const sizes = [0, 1, 111, 112, 127, 128, 239, 240, 65_519, 65_520, 65_535, 65_536, 65_537, 300_000]
  for (const size of sizes) {
    const bytes = randomBytes(size)
    const hash = streamingHash(WebAssembly.Instance, module, initialState(), input, inputBytes)
    for (const piece of pieces(bytes, 1 + size / 3)) hash.update(piece)
    t.equal(Buffer.from(hash.digest()).toString('hex'), sha384(bytes), `${size} bytes`)
  }
})

t.test('another thread hashes several contents at once, also dropped ones', async (t) => {
  const contents = [0, 5, 262_144, 3_000_001, 20_000_000].map((size) => randomBytes(size))
  const digests = contents.map(async (bytes) => {
    const hash = await asideSha384()
    if (hash === undefined) throw new Error('there are no threads here')
    for (const piece of pieces(bytes, 700_000)) await hash.update(piece)
    return Buffer.from(await hash.digest()).toString('hex')
  })
  const dropped = await asideSha384()
  await dropped?.update(randomBytes(1_000_000))
  dropped?.drop()
  t.strictSame(await Promise.all(digests), contents.map(sha384))
})
