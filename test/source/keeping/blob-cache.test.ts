import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { localAddress } from '../../../src/actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../../../src/catalog/catalog-messages.js'
import { BlobCache, type Kept } from '../../../src/source/keeping/blob-cache.js'
import { type BlobDraft, BlobStore, blobPath, type FileIdentity } from '../../../src/store/blobs.js'
import { scratch } from '../../scratch.js'
import { someId } from '../rig.js'

/** A store on a disk that takes nothing until it is let. */
class SlowStore extends BlobStore {
  go: () => void = () => undefined
  readonly #gate = new Promise<void>((resolve) => {
    this.go = resolve
  })

  override async keep(draft: BlobDraft, digest: Uint8Array): Promise<FileIdentity> {
    await this.#gate
    return super.keep(draft, digest)
  }
}

t.test('content that arrives while the disk is far behind is not stored', async (t) => {
  const folder = join(scratch('keeping'), 'blobs')
  const store = new SlowStore(folder)
  await store.prepare()
  const words: CatalogRequest[] = []
  const keeper = localAddress<CatalogRequest, CatalogReply>((message) => {
    words.push(message)
    return { kind: 'committed' }
  })
  const kept: Kept[] = []
  const blobCache = new BlobCache({
    store,
    keeper,
    clock: systemClock,
    log: silentLog,
    onKept: (one) => kept.push(one),
    waitingMax: 2,
  })
  const keep = async (text: string): Promise<Uint8Array> => {
    const draft = await store.draft()
    await draft.handle.write(text)
    const digest = createHash('sha256').update(text).digest()
    const attributes = { id: someId(), size: text.length, verified: false, trusted: true, digest }
    await blobCache.keep(draft, {
      attributes,
      digest,
      hints: {},
      clientHints: {},
      named: false,
      source: 'test',
    })
    await draft.handle.close()
    return digest
  }
  const waiting = [keep('one'), keep('two')]
  while (blobCache.waiting < 2) await new Promise(setImmediate)
  await keep('three')
  t.equal(kept.length, 0, 'it did not wait for the others')
  t.equal((await readdir(join(folder, 'tmp'))).length, 2)
  store.go()
  for (const digest of await Promise.all(waiting)) {
    t.ok(await store.identify(digest), blobPath(folder, digest))
  }
  t.equal(kept.length, 2)
  t.equal(words.length, 2)
  t.equal(blobCache.waiting, 0)
  t.same(await readdir(join(folder, 'tmp')), [])
  await keep('four')
  t.equal(kept.length, 3, 'and later ones are kept again')
})

t.test('what is noted of a payload is written down before its record', async (t) => {
  const folder = join(scratch('keeping'), 'blobs')
  const store = new BlobStore(folder)
  await store.prepare()
  const done: string[] = []
  const keeper = localAddress<CatalogRequest, CatalogReply>(() => {
    done.push('record')
    return { kind: 'committed' }
  })
  const notes = { note: () => void done.push('note'), commit: () => void done.push('commit') }
  const blobCache = new BlobCache({
    store,
    keeper,
    clock: systemClock,
    log: silentLog,
    onKept: () => void done.push('kept'),
    notes,
    waitingMax: 2,
  })
  const draft = await store.draft()
  await draft.handle.write('one')
  const digest = createHash('sha256').update('one').digest()
  const attributes = { id: someId(), size: 3, verified: false, trusted: true, digest }
  const kept = { attributes, digest, hints: {}, clientHints: {}, named: false, source: 'test' }
  await blobCache.keep(draft, kept)
  await draft.handle.close()
  t.same(done.splice(0), ['note', 'commit', 'record', 'kept'], 'in a file of its own')
  const announcement = {
    attributes,
    path: '',
    offset: 0,
    base: 0,
    sizeBytes: 3,
    source: 'test',
    trusted: true,
  }
  void blobCache.keepSmall(kept, announcement)
  void blobCache.keepSmall({ ...kept, digest: createHash('sha256').update('two').digest() }, announcement)
  await blobCache.settled()
  t.same(done.slice(0, 3), ['note', 'commit', 'record'], 'the first of a group goes at once')
  t.ok(done.lastIndexOf('note') < done.lastIndexOf('commit'))
  t.ok(done.lastIndexOf('commit') < done.lastIndexOf('record'))
})
