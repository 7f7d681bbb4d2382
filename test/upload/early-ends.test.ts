/** Uploads that end before their item is taken: nothing of them is held, or counted, any more. */
import t, { type Test } from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { openUploadTables } from '../../src/upload/records/uploads.js'
import { textAnswer, type UploadAnswer } from '../../src/upload/requests/upload-answers.js'
import { answered, type RigOptions, requestOf, type UploadRig, uploadRig } from './upload-rig.js'

const signer = ed25519Signer(Buffer.alloc(32, 7))
const from = '198.51.100.7'

async function rigOf(t: Test, options: RigOptions): Promise<UploadRig> {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  return uploadRig(t, environment, options)
}

t.test('a body that is too large with its first piece holds no room', async (t) => {
  const rig = await rigOf(t, { itemMaxBytes: 270_000 })
  const item = signItem(signer, {}, Buffer.alloc(300_000, 'x'))
  t.match(await answered(rig, '/tx', requestOf('POST', '/tx', { pieces: [item] })), { status: 413 })
  t.equal(rig.arriving.bytes, 0)
})

t.test('bytes that were free are free again where the disk has no room for their item', async (t) => {
  let isFull = false
  const rig = await rigOf(t, { noRoomFor: () => (isFull ? textAnswer(503, 'full') : undefined) })
  const path = '/x402/upload/unsigned'
  const growing = (): ReturnType<typeof requestOf> => {
    function* pieces(): Generator<Uint8Array> {
      yield Buffer.alloc(1000, 'x')
      isFull = true
    }
    return requestOf('POST', path, { from, headers: { 'content-length': '1000' }, pieces: pieces() })
  }
  const before = rig.pools.leftOfRange(from)
  t.match(await answered(rig, path, growing()), { status: 503 })
  t.equal(rig.pools.leftOfRange(from), before)
})

t.test('a part that still comes does not count for the size of an item', async (t) => {
  const item = signItem(signer, {}, Buffer.alloc(200_000, 'x'))
  const free = { itemMaxBytes: item.length, walletBytes: 1e9, rangeBytes: 1e9, exemptWallets: [] }
  const rig = await rigOf(t, { free })
  const [begin, path, end] = ['-1/-1', '{uploadId}/{offset}', '{uploadId}/-1'].map(
    (word) => `/chunks/{token}/${word}`,
  ) as [string, string, string]
  const opened = await answered(rig, begin, requestOf('GET', begin, { query: 'chunkSize=5242880' }))
  const { id: uploadId } = opened.json as { id: string }
  const part = (pieces: Iterable<Uint8Array>): Promise<UploadAnswer> => {
    const headers = { 'content-length': String(item.length) }
    return answered(rig, path, requestOf('POST', path, { headers, pieces }), { uploadId, offset: '0' })
  }
  t.match(await part([item]), { status: 200 })
  let whole: Promise<UploadAnswer> | undefined
  function* again(): Generator<Uint8Array> {
    yield item.subarray(0, 100_000)
    whole = answered(rig, end, requestOf('POST', end), { uploadId })
    yield item.subarray(100_000)
  }
  t.match(await part(again()), { status: 409 })
  t.match(await whole, { status: 200 })
})
