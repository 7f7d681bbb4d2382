/** An accepted item that the disk does not give any more: whoever posts it again brings its bytes, and pays nothing. */
import { closeSync, openSync, readSync, truncateSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { idOfBytes } from '../../../src/format/id.js'
import { sha256 } from '../../../src/proof/digest.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { type LogPlace, logFileName } from '../../../src/store/segments/log-file.js'
import { readAnnouncement } from '../../../src/upload/news/read-announcement.js'
import { type AcceptedItem, openUploadTables } from '../../../src/upload/records/uploads.js'
import { scratch } from '../../scratch.js'
import { answered, requestOf, uploadRig } from '../upload-rig.js'

t.test('it is stored once more, and charged once', async (t) => {
  const folder = scratch('damaged')
  const environment = openUploadTables(join(folder, 'tables'))
  t.teardown(() => environment.close())
  const free = { itemMaxBytes: 0, walletBytes: 0, rangeBytes: 0, exemptWallets: [] }
  const rig = await uploadRig(t, environment, { isRich: true, free, folder })
  const item = Buffer.from(signItem(ed25519Signer(Buffer.alloc(32, 7)), {}, Buffer.from('its payload')))
  const id = idOfBytes(sha256(item.subarray(2, 66)))
  const post = async (): Promise<number> => {
    const headers = { 'content-length': String(item.length) }
    return (await answered(rig, '/tx', requestOf('POST', '/tx', { headers, pieces: [item] }))).status
  }
  const placeOf = (): LogPlace => (rig.uploads.find(id) as AcceptedItem).place
  const read = ({ file, offset, sizeBytes }: LogPlace): Buffer => {
    const handle = openSync(join(folder, 'log', logFileName(file)), 'r+')
    const bytes = Buffer.alloc(sizeBytes)
    readSync(handle, bytes, 0, sizeBytes, offset)
    closeSync(handle)
    return bytes
  }
  t.equal(await post(), 200)
  const before = placeOf()
  t.equal(await post(), 202)
  t.strictSame(placeOf(), before, 'what is well is not stored twice')
  const handle = openSync(join(folder, 'log', logFileName(before.file)), 'r+')
  writeSync(handle, Buffer.from('X'), 0, 1, before.offset + 90)
  closeSync(handle)
  rig.uploads.unreadable.note(id, 'its bytes are not those that were accepted', 1, true)
  const charged = rig.questions.length
  t.equal(await post(), 202)
  t.not(placeOf().offset, before.offset)
  t.strictSame(read(placeOf()), item)
  t.equal(rig.questions.length, charged, 'nobody pays again')
  t.notOk(rig.uploads.unreadable.has(id))
  t.match(rig.uploads.find(id), { bundle: undefined, receivedMs: Number })
})

t.test('what cannot be read is not announced, and others are', async (t) => {
  const folder = t.testdir({ [logFileName(1)]: 'short' })
  truncateSync(join(folder, logFileName(1)), 3)
  const digest = 'd'.repeat(43)
  const of = (file: number) => ({ place: { file, offset: 0, sizeBytes: 9 }, headerSize: 5, digest })
  t.equal(readAnnouncement(folder, of(1) as AcceptedItem), undefined)
  t.equal(readAnnouncement(folder, of(2) as AcceptedItem), undefined)
})
