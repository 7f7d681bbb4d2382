import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import type { ProvenChunk } from '../../src/chain/chunk-cache.js'
import type { ChunkByte } from '../../src/chain/segment-chunks.js'
import { chunkSizeMax } from '../../src/format/chunk.js'
import { chunksOf } from '../chain/made-chunks.js'

/** Somewhere that proven chunks are kept, as those see it who keep and find them. */
export interface AnyChunkCache {
  put(chunk: ProvenChunk): void
  find(byte: ChunkByte): Promise<ProvenChunk | undefined>
  /** Bytes that all chunks take. */
  bytes(): number
  close(): Promise<void>
}

/** What every place for chunks does. `open`: a new one that holds about so many bytes. */
export async function conformChunkCache(t: Test, open: (maxBytes: number) => AnyChunkCache): Promise<void> {
  const sizeBytes = 3 * chunkSizeMax + 1000
  const data = randomBytes(sizeBytes)
  const chunks = chunksOf(data)

  await t.test('a chunk is found by each of its bytes, as it was put, and by nothing else', async (t) => {
    const cache = open(2 ** 24)
    for (const [index, chunk] of chunks.entries()) {
      const { dataRoot, dataSize, ruleset, start, end } = chunk
      const byte = { dataRoot, dataSize, ruleset }
      t.equal(await cache.find({ ...byte, offset: start }), undefined, 'not before it was put')
      cache.put(chunk)
      for (const offset of [start, start + 1, Math.floor((start + end) / 2), end - 1]) {
        const found = await cache.find({ ...byte, offset })
        t.same(found?.start, start, `byte ${offset} of chunk ${index}`)
        t.equal(found?.end, end)
        t.equal(found?.ruleset, ruleset)
        t.equal(found?.dataSize, dataSize)
        for (const field of ['chunk', 'dataPath', 'dataRoot'] as const)
          t.ok(Buffer.from(found?.[field] ?? []).equals(chunk[field]), field)
      }
      t.equal(await cache.find({ ...byte, offset: start, ruleset: 'strict' }), undefined, 'other rules')
      t.equal(await cache.find({ ...byte, offset: start, dataSize: dataSize + 1 }), undefined, 'other data')
      const dataRoot2 = randomBytes(32)
      t.equal(await cache.find({ ...byte, offset: start, dataRoot: dataRoot2 }), undefined, 'another root')
    }
    await cache.close()
  })

  await t.test('what is put twice is held once', async (t) => {
    const cache = open(2 ** 24)
    for (const chunk of chunks) cache.put(chunk)
    const before = cache.bytes()
    for (const chunk of chunks) cache.put(chunk)
    t.equal(cache.bytes(), before)
    await cache.close()
  })

  await t.test('it stays within its bound, and what it gives is true', async (t) => {
    const maxBytes = 2 ** 22
    const cache = open(maxBytes)
    let found = 0
    for (let turn = 0; turn < 40; turn += 1) {
      const [chunk] = chunksOf(randomBytes(chunkSizeMax))
      if (chunk === undefined) throw new Error('no chunk')
      cache.put(chunk)
      t.ok(cache.bytes() <= maxBytes, `${cache.bytes()} bytes`)
      const { dataRoot, dataSize, ruleset } = chunk
      const again = await cache.find({ dataRoot, dataSize, ruleset, offset: 7 })
      if (again === undefined) continue
      found += 1
      t.ok(Buffer.from(again.chunk).equals(chunk.chunk))
    }
    t.equal(found, 40, 'what came last is here')
    await cache.close()
  })
}
