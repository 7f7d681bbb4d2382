import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { idOfBytes } from '../../../src/format/id.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { DurableLog } from '../../../src/store/segments/durable-log.js'
import { type BundleRecord, Bundles } from '../../../src/upload/bundling/bundle-records.js'
import { IntakeSource } from '../../../src/upload/intake/intake-source.js'
import { openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import { trail } from '../../source/rig.js'

t.test('a permanent item is served from here until it is released, and released once', async (t) => {
  const folder = t.testdir()
  const uploads = new Uploads(openUploadTables(join(folder, 'tables')))
  const log = await DurableLog.open(join(folder, 'log'))
  const source = new IntakeSource(join(folder, 'tables'), join(folder, 'log'))
  t.teardown(async () => {
    await log.close()
    await source.close()
    await uploads.environment.close()
  })
  const bytes = Buffer.from('header and payload')
  const place = log.append([bytes], createHash('sha256').update(bytes).digest())
  if (isRefusal(place)) throw new Error(place.message)
  const [id, bundle] = [idOfBytes(Buffer.alloc(32, 1)), idOfBytes(Buffer.alloc(32, 2))]
  const item = {
    id,
    headerSize: 6,
    owner: 'o',
    receivedMs: 1,
    deadlineHeight: 200,
    winc: '0',
    place,
  }
  const bundles = new Bundles(uploads.environment, uploads)
  const record: BundleRecord = {
    id: bundle,
    state: 'seeded',
    transaction: {},
    sizeBytes: 100,
    items: [id],
    anchorHeight: 1,
    createdMs: 1,
    attempts: 0,
    dueMs: 1,
  }
  uploads.accept([item], () => undefined)
  bundles.pack(record, [item], [64])
  const look = async (): Promise<string> => {
    const found = await source.open({ id, hints: {}, provenance: trail, avoid: new Set() })
    if (isRefusal(found)) return found.refused
    const pieces: Uint8Array[] = []
    for await (const piece of found.body) {
      if (isRefusal(piece)) throw new Error(piece.message)
      pieces.push(Buffer.from(piece))
    }
    return Buffer.concat(pieces).toString()
  }
  t.equal(bundles.markPermanent({ ...record, dueMs: 5 }, 7), 1)
  t.match(uploads.find(id), { permanent: 7 })
  t.equal(await look(), ' and payload', 'the gateway may not have found its block yet')
  const [kept] = bundles.open()
  t.match(kept, { state: 'permanent', dueMs: 5 })
  const permanent = bundles.find(bundle) as BundleRecord
  t.equal(bundles.release(permanent).length, 1)
  t.equal(bundles.release(permanent).length, 0)
  t.strictSame(bundles.open(), [])
  t.equal(await look(), 'unknown')
})
