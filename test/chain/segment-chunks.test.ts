import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { ProvenChunk } from '../../src/chain/chunk-cache.js'
import { type ChunkByte, WrittenChunks } from '../../src/chain/segment-chunks.js'
import { chunkSizeMax } from '../../src/format/chunk.js'
import { sha256 } from '../../src/proof/digest.js'
import { encodeChunkWords, nameOfChunk, provesChunk } from '../../src/store/segments/chunk-words.js'
import { fc } from '../property.js'
import { scratch } from '../scratch.js'
import { SegmentRig } from '../store/segments/rig.js'
import { chunksOf } from './made-chunks.js'

const roomy = { segmentBytes: 2 ** 22, maxBytes: 2 ** 26, payloadMaxBytes: 2 ** 19 }

function at({ dataRoot, dataSize, ruleset, start }: ProvenChunk, byte = 0): ChunkByte {
  return { dataRoot, dataSize, ruleset, offset: start + byte }
}

function oneChunk(sizeBytes = chunkSizeMax): ProvenChunk {
  const [chunk] = chunksOf(randomBytes(sizeBytes))
  if (chunk === undefined) throw new Error('no chunk')
  return chunk
}

/** A rig on the same folder as after a kill: nothing was said or closed. */
async function killed(folder: string, rig: SegmentRig): Promise<[SegmentRig, WrittenChunks]> {
  await rig.die()
  const next = new SegmentRig(folder, roomy)
  return [next, new WrittenChunks(next.store, next.reader)]
}

t.test('parts of a chunk are read without the rest', async (t) => {
  const rig = new SegmentRig(scratch('chunks'), roomy)
  const chunks = new WrittenChunks(rig.store, rig.reader)
  const one = oneChunk()
  t.equal(chunks.near(at(one), 10), undefined, 'not here')
  t.notOk(chunks.has(at(one)))
  chunks.put(one)
  t.ok(chunks.has(at(one, 5000)))
  for (const [from, size] of [
    [0, 1],
    [1000, 5000],
    [chunkSizeMax - 3, 3],
  ] as const) {
    const bytes = chunks.near(at(one, from), size)
    t.ok(bytes && Buffer.from(one.chunk.subarray(from, from + size)).equals(bytes), `${from} ${size}`)
  }
  t.equal(chunks.near(at(one, chunkSizeMax - 3), 4), undefined, 'beyond its end')
  t.equal(chunks.near(at(one), 0), undefined)
  await rig.close()
})

t.test('chunks of an unusual cut are not kept, and no other is taken for one', async (t) => {
  const rig = new SegmentRig(scratch('chunks'), roomy)
  const chunks = new WrittenChunks(rig.store, rig.reader)
  const odd = chunksOf(randomBytes(300_000), 'borders', [1000, 2000, 90_000, 300_000])
  for (const one of odd) chunks.put(one)
  for (const byte of [0, 999, 1000, 1500, 80_000, 299_999]) {
    const [first] = odd
    if (first === undefined) throw new Error('no chunk')
    const found = await chunks.take({ ...at(first), offset: byte })
    t.equal(found === undefined || (found.start <= byte && byte < found.end), true, String(byte))
    if (found !== undefined)
      t.ok(odd.some((one) => one.start === found.start && Buffer.from(one.chunk).equals(found.chunk)))
  }
  await rig.close()
})

t.test('a payload of the words that name a chunk is not the chunk, nor the chunk that payload', async (t) => {
  const rig = new SegmentRig(scratch('chunks'), roomy)
  const chunks = new WrittenChunks(rig.store, rig.reader)
  const one = oneChunk()
  const payload = encodeChunkWords({ ...one, dataPath: new Uint8Array(0) })
  rig.store.put(sha256(payload), [payload])
  t.notOk(chunks.has(at(one)))
  t.equal(chunks.near(at(one), 32), undefined)
  chunks.put(one)
  t.ok(Buffer.from(one.chunk.subarray(0, 32)).equals(chunks.near(at(one), 32) ?? payload))
  t.ok((await rig.get(sha256(payload)))?.equals(payload))
  await rig.close()
})

t.test('after a kill a chunk is proven anew before it is given, once', async (t) => {
  const folder = scratch('chunks')
  const first = new SegmentRig(folder, roomy)
  const one = oneChunk()
  new WrittenChunks(first.store, first.reader).put(one)
  const [rig, chunks] = await killed(folder, first)
  t.equal(chunks.near(at(one), 100), undefined, 'not proven by this run')
  const found = await chunks.take(at(one, 7))
  t.ok(found && Buffer.from(found.chunk).equals(one.chunk))
  t.ok(chunks.near(at(one), 100), 'from now on it is')
  await rig.close()
})

t.test('whatever bit is flipped while nobody looked: no wrong chunk is given', async (t) => {
  const one = oneChunk(70_000)
  let lost = 0
  for (let round = 0; round < 60; round += 1) {
    const folder = scratch('chunks')
    const first = new SegmentRig(folder, roomy)
    new WrittenChunks(first.store, first.reader).put(one)
    await first.close()
    const name = readdirSync(join(folder, 'segments')).find((each) => each.endsWith('.segment'))
    const path = join(folder, 'segments', name ?? '')
    const bytes = readFileSync(path)
    // Header, words and proof in two of three rounds, the chunk in the third.
    const flipped = round % 3 === 2 ? 400 + round * 1000 : Math.floor((round * 300) / 60)
    bytes[flipped] = (bytes[flipped] ?? 0) ^ (1 << (round % 8))
    writeFileSync(path, bytes)
    const rig = new SegmentRig(folder, roomy)
    const chunks = new WrittenChunks(rig.store, rig.reader)
    const found = await chunks.take(at(one))
    if (found === undefined) {
      lost += 1
      t.equal(chunks.near(at(one), 10), undefined)
      chunks.put(one)
      const again = await chunks.take(at(one))
      t.ok(again && Buffer.from(again.chunk).equals(one.chunk), 'put anew, it is here')
    } else {
      t.ok(Buffer.from(found.chunk).equals(one.chunk), `byte ${flipped}`)
      t.ok(Buffer.from(found.dataPath).equals(one.dataPath))
    }
    await rig.close()
  }
  t.ok(lost > 40, `${lost} of 60 were found false`)
})

t.test('no record of another name or with another proof is the chunk', async (t) => {
  const [one, other] = [oneChunk(1000), oneChunk(1000)]
  const words = encodeChunkWords(one)
  t.ok(provesChunk(nameOfChunk(one), words, one.chunk))
  t.notOk(provesChunk(nameOfChunk(other), words, one.chunk))
  t.notOk(provesChunk(nameOfChunk(one), words, other.chunk))
  t.notOk(provesChunk(nameOfChunk(one), encodeChunkWords({ ...one, dataPath: other.dataPath }), one.chunk))
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 200 }),
      (bytes) => !provesChunk(nameOfChunk(one), bytes, one.chunk),
    ),
  )
})
