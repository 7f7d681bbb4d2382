/** Room on the disk for what comes from sources: promised to one, it is not promised to another. */
import t from 'tap'
import { isRefusal } from '../../../src/format/refusal.js'
import { draftFor } from '../../../src/source/transfer/draft-room.js'
import { BlobStore } from '../../../src/store/blobs.js'

const mib = 2 ** 20

/** Drafts on a disk of which the test states how much is free; there is no room in memory. */
async function room(t: { testdir(): string }) {
  const store = new BlobStore(t.testdir())
  await store.prepare()
  const disk = { freeBytes: 0 }
  const parts = {
    draft: () => store.draft(),
    draftInMemory: () => store.draftInMemory(),
    freeBytes: () => ({ disk: disk.freeBytes, memory: 0 }),
    inMemoryMaxBytes: 0,
  }
  const take = async (sizeBytes: number, isProven = true) => {
    const draft = await draftFor(sizeBytes, isProven, parts)
    return isRefusal(draft) ? undefined : draft
  }
  return { disk, take, close: () => store.close() }
}

t.test('what one transfer has not written yet is not there for another', async (t) => {
  const { disk, take, close } = await room(t)
  disk.freeBytes = 116 * mib
  const first = await take(60 * mib)
  if (first === undefined) throw new Error('there is room')
  t.equal(await take(60 * mib), undefined)
  const small = await take(40 * mib)
  t.ok(small)
  await small?.handle.close()
  // What is written is gone from the free bytes, and counts once.
  await first.handle.truncate(50 * mib)
  disk.freeBytes -= 50 * mib
  t.ok(await take(40 * mib))
  t.equal(await take(40 * mib), undefined)
  await first.handle.close()
  t.equal(await take(40 * mib), undefined, 'it is on the disk')
  disk.freeBytes += 50 * mib
  t.ok(await take(40 * mib))
  await close()
})

t.test('a size that only a stranger states takes little from others', async (t) => {
  const { disk, take, close } = await room(t)
  disk.freeBytes = 2 ** 40
  t.ok(await take(2 ** 39, false))
  disk.freeBytes = 216 * mib
  t.ok(await take(50 * mib))
  await close()
})
