import t from 'tap'
import { type Refusal, refuse } from '../../../src/format/refusal.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { KnownItems } from '../../../src/upload/intake/known-items.js'
import { openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import { scratch } from '../../scratch.js'
import { headerOf } from '../../signed-item.js'
import { uploadRig } from '../upload-rig.js'
import { salesByHand } from '../usdc-sales.js'

const header = headerOf(signItem(ed25519Signer(Buffer.alloc(32, 5)), {}, Buffer.from('item')))
const environment = openUploadTables(scratch('known-items'))
t.teardown(() => environment.close())
const receipt = { receivedMs: 5, deadlineHeight: 100, winc: '7' }

t.test('an item in a block is refused, but not where its receipt may be found elsewhere', async (t) => {
  let closed: Refusal | undefined = refuse('busy', 'self', 'the store is being opened')
  let stated: typeof receipt | 'none' | undefined
  const items = new KnownItems({
    uploads: new Uploads(environment),
    openSales: { sales: { openOf: () => undefined } },
    isInBlock: () => true,
    listing: { receiptOf: async () => stated },
    objectStore: {
      get refusal() {
        return closed
      },
    },
  })
  const judged = (height = 50) => items.elsewhere(header, height)
  t.match(await judged(), { status: 503 }, 'the store may have it')
  t.equal(items.refused(header.id), undefined)
  closed = undefined
  t.match(await judged(), { status: 503 }, 'another machine may have it')
  stated = receipt
  t.match(await judged(), { id: header.id, ...receipt })
  t.match(await judged(101), { status: 409 }, 'a receipt that is too late counts no more')
  stated = 'none'
  t.match(await judged(), { status: 409 })
  t.match(items.refused(header.id), { status: 409 })
})

t.test('nothing is paid for an item that another machine has accepted', async (t) => {
  const { options, ordered, orders } = salesByHand(t)
  const machines = {
    add: async () => true,
    has: async () => true,
    receiptOf: async () => receipt,
    beginSale: async () => '1',
    addToSale: async () => true,
    renewSales: async () => new Set<never>(),
    endSales: async () => true,
    sweepSales: async () => false,
  }
  const tables = openUploadTables(scratch('one-of-several'))
  t.teardown(() => tables.close())
  const rig = await uploadRig(t, tables, { ...options, machines })
  const item = Buffer.from(signItem(ed25519Signer(Buffer.alloc(32, 6)), {}, Buffer.from('sold elsewhere')))
  t.match(await ordered(rig, item), { status: 202, json: { winc: receipt.winc } })
  t.equal(orders(), 0)
})
