import { randomBytes } from 'node:crypto'
import t from 'tap'
import { ChunkCache, chunkEntryBytes, type ProvenChunk } from '../../src/chain/chunk-cache.js'
import { memoryBytes } from '../memory-bytes.js'
import { fc } from '../property.js'

function chunkOf(dataRoot: Uint8Array, start: number, end: number): ProvenChunk {
  const dataPath = new Uint8Array(64)
  return {
    chunk: new Uint8Array(end - start),
    dataPath,
    dataRoot,
    dataSize: 10 ** 7,
    start,
    end,
    ruleset: 'rebase',
  }
}

t.test('a chunk is found by each of its bytes and by no other', async (t) => {
  const root = randomBytes(32)
  const cache = new ChunkCache(2 ** 24)
  const chunk = cache.put(chunkOf(root, 200_000, 400_000))
  for (const at of [200_000, 262_143, 262_144, 399_999]) {
    t.equal(cache.find(root, 10 ** 7, at, 'rebase'), chunk, String(at))
  }
  for (const at of [199_999, 400_000]) t.equal(cache.find(root, 10 ** 7, at, 'rebase'), undefined, String(at))
  t.equal(cache.find(root, 10 ** 7, 300_000, 'strict'), undefined, 'other rules')
  t.equal(cache.find(root, 10 ** 7 + 1, 300_000, 'rebase'), undefined, 'other data')
  t.equal(cache.find(randomBytes(32), 10 ** 7, 300_000, 'rebase'), undefined, 'another root')
})

t.test('it holds no more than it may, and keeps what was used last', async (t) => {
  const root = randomBytes(32)
  const size = 262_144
  const cache = new ChunkCache(3 * (size + 64 + chunkEntryBytes))
  for (const at of [0, 1, 2]) cache.put(chunkOf(root, at * size, (at + 1) * size))
  t.ok(cache.find(root, 10 ** 7, 0, 'rebase'))
  cache.put(chunkOf(root, 3 * size, 4 * size))
  t.ok(cache.find(root, 10 ** 7, 0, 'rebase'), 'used last')
  t.notOk(cache.find(root, 10 ** 7, size, 'rebase'), 'used longest ago')
  const piece = fc.record({ start: fc.nat(10 ** 7), length: fc.integer({ min: 1, max: size }) })
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const small = new ChunkCache(2 ** 20)
      for (const { start, length } of pieces) {
        small.put(chunkOf(root, start, start + length))
        if (small.bytes > 2 ** 20 || small.bytes < 0) return false
      }
      return true
    }),
  )
})

t.test('small chunks take no more memory than it counts', (t) => {
  const cache = new ChunkCache(2 ** 22)
  const before = memoryBytes()
  for (let put = 0; put < 20_000; put += 1) {
    const root = randomBytes(32)
    // As a chunk is read from a body: small pieces in the pool that `Buffer` shares among all.
    const [chunk, dataPath] = [
      Buffer.from('AAAAAAAAAAA', 'base64url'),
      Buffer.from('A'.repeat(86), 'base64url'),
    ]
    Buffer.allocUnsafe(4000).fill(0)
    cache.put({ ...chunkOf(root, 0, 8), chunk, dataPath })
  }
  const grown = memoryBytes() - before
  t.ok(cache.bytes <= 2 ** 22)
  t.ok(grown < 2 * 2 ** 22, `${grown} bytes for ${cache.bytes} that are counted`)
  t.end()
})
