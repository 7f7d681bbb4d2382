import { randomBytes } from 'node:crypto'
import t from 'tap'
import { ChunkCache, type ProvenChunk } from '../../src/chain/chunk-cache.js'
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
  const chunk = chunkOf(root, 200_000, 400_000)
  cache.put(chunk)
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
  const cache = new ChunkCache(3 * (size + 64))
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
