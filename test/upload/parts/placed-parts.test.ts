/** The disk may refuse after a part has taken its place: what is known of a part is what lies there. */
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { isRefusal, type Refusal, refuse } from '../../../src/format/refusal.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { MultipartRecords } from '../../../src/upload/parts/multipart-records.js'
import { PartFiles } from '../../../src/upload/parts/part-files.js'
import { openUploadTables } from '../../../src/upload/records/uploads.js'
import { answered, requestOf, uploadRig } from '../upload-rig.js'

/** After a part has its place the disk cannot state that it is durable. */
class UnsureFiles extends PartFiles {
  isUnsure = false

  override draft(upload: string): ReturnType<PartFiles['draft']> {
    const draft = super.draft(upload)
    if (isRefusal(draft)) return draft
    const keep = draft.keep.bind(draft)
    draft.keep = async (offset): Promise<Refusal | undefined> => {
      const refusal = await keep(offset)
      return this.isUnsure ? refuse('busy', 'self', 'the disk fails') : refusal
    }
    return draft
  }
}

t.test('a part that took its place before the disk refused is read with its own size', async (t) => {
  const folder = t.testdir()
  const environment = openUploadTables(join(folder, 'tables'))
  t.teardown(() => environment.close())
  const files = new UnsureFiles(join(folder, 'parts'))
  const records = new MultipartRecords(environment, systemClock)
  const rig = await uploadRig(t, environment, { shared: { records, files } })
  const begin = '/chunks/{token}/-1/-1'
  const begun = await answered(rig, begin, requestOf('GET', begin, { query: 'chunkSize=5242880' }))
  const { id: uploadId } = begun.json as { readonly id: string }
  const partPath = '/chunks/{token}/{uploadId}/{offset}'
  const send = async (bytes: Uint8Array): Promise<number> => {
    const headers = { 'content-length': String(bytes.length) }
    const request = requestOf('POST', partPath, { headers, pieces: [bytes] })
    return (await answered(rig, partPath, request, { uploadId, offset: '0' })).status
  }
  const item = signItem(ed25519Signer(Buffer.alloc(32, 7)), {}, Buffer.alloc(5000, 'x'))
  t.equal(await send(item.subarray(0, 900)), 200)
  files.isUnsure = true
  t.equal(await send(item), 503)
  const end = '/chunks/{token}/{uploadId}/-1'
  t.match(await answered(rig, end, requestOf('POST', end), { uploadId }), {
    status: 200,
    json: { winc: '0' },
  })
})
