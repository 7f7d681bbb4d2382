import { join } from 'node:path'
import t from 'tap'
import { idOfBytes } from '../../../src/format/id.js'
import { type AcceptedItem, openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'

const idOf = (byte: number) => idOfBytes(Buffer.alloc(32, byte))
const bundleOf = (byte: number): AcceptedItem => ({
  id: idOf(byte),
  owner: idOf(99),
  headerSize: 100,
  receivedMs: 1,
  deadlineHeight: 200,
  winc: '0',
  isBundle: true,
  place: { file: 1, offset: 0, sizeBytes: 1000 },
})

t.test('an item lies in the first of the uploaded bundles that hold it, while that is kept', async (t) => {
  const environment = openUploadTables(join(t.testdir(), 'uploads'))
  t.teardown(() => environment.close())
  const uploads = new Uploads(environment)
  const put = (bundle: number, item: number, isMortal = false): void => {
    const inner = { parent: idOf(bundle), start: 20, sizeBytes: 11, headerSize: 10 }
    environment.write(() => uploads.putInner(idOf(item), inner, isMortal))
  }
  environment.write(() => {
    for (const bundle of [1, 2, 3]) uploads.enter(bundleOf(bundle))
  })
  put(1, 50)
  put(2, 50)
  t.equal(uploads.around(idOf(50))?.id, idOf(1), 'a block of the first holds')
  environment.write(() => uploads.put({ ...bundleOf(1), reason: 'given up' }))
  put(3, 50)
  t.equal(uploads.around(idOf(50))?.id, idOf(3), 'the first is not kept any more')
  put(2, 51, true)
  put(3, 51, true)
  t.equal(uploads.around(idOf(51))?.id, idOf(3), 'where bundles are gone after some days it is the last')
})
