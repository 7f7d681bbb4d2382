import { randomBytes } from 'node:crypto'
import { access, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { isRefusal, type Refusal } from '../../../src/format/refusal.js'
import { openablePath } from '../../../src/source/transfer/transfer-progress.js'
import { writeAside } from '../../../src/source/transfer/write-aside.js'
import { type BlobDraft, BlobStore } from '../../../src/store/blobs.js'
import { scratch } from '../../scratch.js'

function sure(draft: BlobDraft | Refusal): BlobDraft {
  if (isRefusal(draft)) throw new Error(`refused: ${draft.message}`)
  return draft
}

t.test('a payload that a full disk does not take is read from memory', async (t) => {
  const store = new BlobStore(scratch('write-aside'))
  await store.prepare()
  const parts = [randomBytes(1000), randomBytes(300_000)]
  const name = await store.draft()
  await name.handle.close()
  // Every write to this device fails as on a full disk.
  const full = { handle: await open('/dev/full', 'w'), path: name.path }
  const draft = sure(await writeAside(full, parts, store))
  t.ok((await readFile(openablePath(draft.handle))).equals(Buffer.concat(parts)), 'all bytes')
  await t.rejects(access(name.path), 'the file on the disk is gone')
  await t.rejects(access(draft.path), 'and the one in memory has no name')
  await draft.handle.close()
})

t.test('where the disk has room, the file there is taken', async (t) => {
  const folder = scratch('write-aside')
  const store = new BlobStore(folder)
  await store.prepare()
  const draft = await store.draft()
  t.equal(await writeAside(draft, [randomBytes(10)], store), draft)
  t.ok(draft.path.startsWith(join(folder, 'tmp')))
  await draft.handle.close()
})

t.test('where memory does not take it either, nothing stays open', async (t) => {
  const store = new BlobStore(scratch('write-aside'))
  await store.prepare()
  const name = await store.draft()
  await name.handle.close()
  const full = { handle: await open('/dev/full', 'w'), path: name.path }
  const inMemory = { handle: await open('/dev/full', 'w'), path: `${name.path}-in-memory` }
  const crowded = {
    discard: () => Promise.resolve(),
    draftInMemory: () => Promise.resolve(inMemory),
    freeBytes: () => ({ disk: 0, memory: 10 }),
    inMemoryMaxBytes: 10,
  }
  await t.rejects(writeAside(full, [randomBytes(10)], crowded), { code: 'ENOSPC' })
  t.same([full.handle.fd, inMemory.handle.fd], [-1, -1], 'both are closed')
})

t.test('what is held in memory is bounded, and given back when it is closed', async (t) => {
  class SmallMemory extends BlobStore {
    override readonly inMemoryMaxBytes = 1000
  }
  const store = new SmallMemory(scratch('write-aside'))
  await store.prepare()
  const aside = async () => {
    const name = await store.draft()
    await name.handle.close()
    const full = { handle: await open('/dev/full', 'w'), path: name.path }
    return { full, draft: await writeAside(full, [randomBytes(600)], store) }
  }
  const one = sure((await aside()).draft)
  const { full, draft } = await aside()
  t.match(draft, { refused: 'busy', fault: 'self' }, 'there is no room for another one')
  t.equal(full.handle.fd, -1, 'it is closed')
  await one.handle.close()
  await sure((await aside()).draft).handle.close()
})
