import t from 'tap'
import { ChunkCache } from '../../src/chain/chunk-cache.js'
import { SegmentChunks, WrittenChunks } from '../../src/chain/segment-chunks.js'
import { scratch } from '../scratch.js'
import { SegmentRig } from '../store/segments/rig.js'
import { type AnyChunkCache, conformChunkCache } from './any-chunk-cache.js'

function inMemory(maxBytes: number): AnyChunkCache {
  const cache = new ChunkCache(maxBytes)
  return {
    put: (chunk) => cache.put(chunk),
    find: async ({ dataRoot, dataSize, offset, ruleset }) => cache.find(dataRoot, dataSize, offset, ruleset),
    bytes: () => cache.bytes,
    close: () => Promise.resolve(),
  }
}

/** `isOther`: read by another thread than the writer's, by what the writer has committed. */
function inSegments(maxBytes: number, isOther: boolean): AnyChunkCache {
  const rig = new SegmentRig(scratch('chunks'), {
    segmentBytes: 2 ** 19,
    maxBytes,
    payloadMaxBytes: 2 ** 18,
  })
  const written = new WrittenChunks(rig.store, rig.reader)
  const read = isOther ? new SegmentChunks(rig.reader, rig.reader) : written
  return {
    put(chunk) {
      written.put(chunk)
      if (isOther) rig.store.commit()
    },
    find: (byte) => read.take(byte),
    bytes: () => rig.store.fileBytes,
    close: () => rig.close(),
  }
}

t.test('in memory', (t) => conformChunkCache(t, inMemory))
t.test('in segments', (t) => conformChunkCache(t, (maxBytes) => inSegments(maxBytes, false)))
t.test('in segments, read by another thread', (t) =>
  conformChunkCache(t, (maxBytes) => inSegments(maxBytes, true)),
)
