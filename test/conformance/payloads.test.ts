import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { isRefusal } from '../../src/format/refusal.js'
import { BlobStore } from '../../src/store/blobs.js'
import { SegmentParts } from '../../src/store/segments/small-blobs.js'
import { scratch } from '../scratch.js'
import { SegmentRig, sha256 } from '../store/segments/rig.js'
import { conformPayloads, type Payloads } from './payloads.js'

/** The plain one: what the others are compared with. */
function inMemory(): Payloads {
  const kept = new Map<string, Buffer>()
  const keyOf = (digest: Uint8Array): string => Buffer.from(digest).toString('hex')
  return {
    async put(digest, bytes) {
      kept.set(keyOf(digest), Buffer.from(bytes))
      return true
    },
    get: async (digest) => kept.get(keyOf(digest)),
    async remove(digest) {
      kept.delete(keyOf(digest))
    },
    usage: async () => ({ bytes: [...kept.values()].reduce((sum, { length }) => sum + length, 0) }),
    reopen: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }
}

function flipByte(path: string, at: number): void {
  const file = openSync(path, 'r+')
  const byte = Buffer.alloc(1)
  readSync(file, byte, 0, 1, at)
  byte[0] = (byte[0] ?? 0) ^ 0x10
  writeSync(file, byte, 0, 1, at)
  closeSync(file)
}

/** Files of their own, read as the fetcher reads one that nobody has hashed yet. */
async function inFiles(): Promise<Payloads> {
  const folder = join(scratch('payloads'), 'blobs')
  let store = new BlobStore(folder)
  await store.prepare()
  return {
    async put(digest, bytes) {
      const draft = await store.draft()
      await draft.handle.write(bytes, 0, bytes.length, 0)
      await store.keep(draft, digest)
      await draft.handle.close()
      return true
    },
    async get(digest) {
      const blob = await store.open(digest)
      if (blob === undefined) return undefined
      const bytes = Buffer.alloc(blob.sizeBytes)
      await blob.handle.read(bytes, 0, bytes.length, blob.offset)
      await blob.handle.close()
      return sha256(bytes).equals(digest) ? bytes : undefined
    },
    remove: (digest) => store.remove(digest),
    async usage() {
      let bytes = 0
      for (let first = 0; first < 256; first += 1)
        for await (const { sizeBytes } of store.list(first)) bytes += sizeBytes
      return { bytes }
    },
    async reopen() {
      await store.close()
      store = new BlobStore(folder)
      await store.prepare()
    },
    async kill() {
      store = new BlobStore(folder)
      await store.prepare()
    },
    async damage(digest) {
      flipByte(store.part(digest).path, 100)
    },
    close: () => store.close(),
  }
}

/** Segments, with a reader beside the writer as an edge thread has it. */
async function inSegments(t: Test): Promise<Payloads> {
  const folder = scratch('payloads')
  const room = { segmentBytes: 2 ** 20, maxBytes: 2 ** 26 }
  const open = (): SegmentRig => new SegmentRig(folder, room)
  let rig = open()
  t.teardown(() => rig.close())
  return {
    put: async (digest, bytes) => !isRefusal(rig.store.put(digest, [bytes])),
    get: (digest) => rig.get(digest),
    async remove(digest) {
      rig.store.remove(digest)
    },
    usage: async () => ({ bytes: rig.store.usage().fileBytes }),
    async reopen() {
      await rig.close()
      rig = open()
    },
    async kill() {
      // A removal is said at once, what was put within moments: those of them that the index has not heard of are found again.
      await rig.die()
      rig = open()
    },
    async damage(digest) {
      const part = new SegmentParts(join(folder, 'segments'), rig.store, rig.reader).part(digest)
      if (part === undefined) throw new Error('it is not there')
      flipByte(part.path, part.offset + 100)
    },
    close: () => Promise.resolve(),
  }
}

t.test('in memory', (t) => conformPayloads(t, async () => inMemory()))
t.test('in files', (t) => conformPayloads(t, inFiles))
t.test('in segments', (t) => conformPayloads(t, inSegments))
