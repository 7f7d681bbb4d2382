/** Payments are public: others bring them for items of their own. The payment service decides which item one has paid for. */
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { type Id, idBytes } from '../../../src/format/id.js'
import { parseItemHeader } from '../../../src/format/item.js'
import { isRefusal } from '../../../src/format/refusal.js'
import type { UsdcOutcome } from '../../../src/payment/credits-port.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { type Sale, Sales } from '../../../src/upload/charging/sales.js'
import { takeUpBrought } from '../../../src/upload/intake/open-intake.js'
import { openUploadTables } from '../../../src/upload/records/uploads.js'
import { uploadRig } from '../upload-rig.js'
import { salesByHand } from '../usdc-sales.js'

const [payers, strangers] = ['of the payer', 'of a stranger'].map((text) =>
  Buffer.from(signItem(ed25519Signer(Buffer.alloc(32, 7)), {}, Buffer.from(text))),
) as [Buffer, Buffer]
const [payersId, strangersId] = [idOf(payers), idOf(strangers)]

function idOf(item: Buffer): Id {
  const header = parseItemHeader(item)
  if (header === 'more' || isRefusal(header)) throw new Error('the item of this test is none')
  return header.id
}

const made = { payment: 'p', transaction: '0x1', payer: '0xa', network: 'base', lines: '' }
const paid: UsdcOutcome = { ...made, paid: true, winc: '7' }
const pending: UsdcOutcome = { paid: false, state: 'open' }

/** What brought items are taken up with. */
const entering = { pools: { record: () => undefined }, log: silentLog, clock: systemClock }

/** A machine; what the payment service knows of the payment for each item. */
async function scene(t: Test) {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const became = new Map<Id, UsdcOutcome>()
  const sales = salesByHand(t)
  const rig = await uploadRig(t, environment, {
    ...sales.options,
    outcome: async ({ itemId }) => became.get(itemId as Id) ?? { paid: false, state: 'other' },
  })
  return { rig, became, sales, table: new Sales(environment) }
}

t.test('a payment that a stranger brought for his item pays for the one of its payer', async (t) => {
  const { rig, became, sales, table } = await scene(t)
  became.set(strangersId, pending)
  const first = await sales.buy(rig, strangers)
  sales.settle(0, false)
  t.match(await first.answer, { status: 503 })
  became.set(payersId, paid)
  const second = await sales.buy(rig, payers, 1)
  sales.settle(1, true)
  t.match(await second.answer, { status: 200, json: { id: payersId } })
  became.delete(strangersId)
  for (const open of table.open()) t.match(await rig.intake.resumeIdle(open), { status: 402 })
  t.strictSame(table.open(), [])
  t.equal(rig.uploads.find(strangersId), undefined)
  t.match(await sales.ordered(rig, strangers, 1), { status: 402 }, 'it is sold')
})

t.test('and his keeps none of its payer waiting', async (t) => {
  const { rig, became, sales } = await scene(t)
  const stranger = await sales.buy(rig, strangers)
  became.set(payersId, paid)
  const payer = await sales.buy(rig, payers, 1)
  sales.settle(1, true)
  t.match(await payer.answer, { status: 200, json: { id: payersId } })
  sales.settle(0, false)
  t.match(await stranger.answer, { status: 402 })
})

t.test('an item that is taken over waits for its payment beside all that others have brought', async (t) => {
  const { rig, became, sales, table } = await scene(t)
  became.set(payersId, pending).set(strangersId, pending)
  const answers = [await sales.buy(rig, payers), await sales.buy(rig, strangers, 1)]
  for (const [at, { answer }] of answers.entries()) {
    sales.settle(at, false)
    t.match(await answer, { status: 503 })
  }
  const [own] = table.allOf(payersId)
  const { item, openedMs: _, itemId: __, ...facts } = own as Required<Sale>
  const released: number[] = []
  const log = { release: ({ offset }: { readonly offset: number }) => void released.push(offset) }
  const place = { ...item.place, offset: item.place.offset + 1_000_000 }
  const brought = { ...item, place, stored: 'group', sale: { ...facts, service: 'one' } }
  const parts = { ...entering, uploads: rig.uploads, sales: table }
  takeUpBrought([brought], log, parts)
  takeUpBrought([{ ...brought, place: { ...place, offset: 9 } }], log, parts)
  t.strictSame(released, [9], 'the same group again brings nothing new')
  t.equal(table.allOf(payersId).length, 2)
  t.strictSame([...rig.uploads.stored.ids('group')], [payersId])
  // Each is decided in the name of its service.
  became.clear()
  const [first, second] = table.allOf(payersId) as [Sale, Sale]
  const [here, takenOver] = first.service === 'one' ? [second, first] : [first, second]
  t.match(await rig.intake.resumeIdle(here), { status: 402 })
  became.set(payersId, paid)
  t.match(await rig.intake.resumeIdle(takenOver), { status: 200, json: { id: payersId } })
  t.match(rig.uploads.find(payersId), { place })
  t.equal(table.sold(takenOver.payment)?.itemId, payersId)
  t.ok(takenOver.openedMs >= here.openedMs)
})

t.test('an item that was taken over unpaid is accepted when its payer pays here', async (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const sales = salesByHand(t)
  let state: UsdcOutcome = { paid: false, state: 'unknown' }
  const rig = await uploadRig(t, environment, {
    ...sales.options,
    // What this service has paid is held for it, and not for the one that began the sale.
    outcome: async ({ service }) => (state.paid && service === 'one' ? pending : state),
  })
  const table = new Sales(environment)
  const first = await sales.buy(rig, payers)
  const [own] = table.allOf(payersId)
  const { item, openedMs: _, itemId: __, ...facts } = own as Required<Sale>
  sales.settle(0, false)
  await first.answer
  const brought = { ...item, stored: 'group', sale: { ...facts, service: 'one' } }
  const parts = { ...entering, uploads: rig.uploads, sales: table }
  takeUpBrought([brought], { release: () => undefined }, parts)
  t.match(table.allOf(payersId), [{ service: 'one' }])
  const again = await sales.buy(rig, payers, 1)
  state = paid
  sales.settle(1, true)
  t.match(await again.answer, { status: 200, json: { id: payersId } })
})

for (const [when, agoMs, isSold] of [
  ['just now', 0, false],
  ['for so long that no order is on its way', 100_000, true],
] as const)
  t.test(`another payment for an item that is taken over ${when}`, async (t) => {
    const environment = openUploadTables(t.testdir())
    t.teardown(() => environment.close())
    const sales = salesByHand(t)
    let state: UsdcOutcome = paid
    const rig = await uploadRig(t, environment, { ...sales.options, outcome: async () => state })
    const table = new Sales(environment)
    // The log has an item for each that is released.
    const other = await sales.buy(rig, strangers)
    sales.settle(0, true)
    t.match(await other.answer, { status: 200 })
    state = { paid: false, state: 'unknown' }
    const first = await sales.buy(rig, payers)
    const [own] = table.allOf(payersId)
    const { item, openedMs: _, itemId: __, ...facts } = own as Required<Sale>
    sales.settle(1, false)
    t.match(await first.answer, { status: 402 })
    const clock = { now: () => systemClock.now() - agoMs }
    const brought = { ...item, stored: 'group', sale: { ...facts, service: 'one' } }
    const parts = { ...entering, clock, uploads: rig.uploads, sales: table }
    takeUpBrought([brought], { release: () => undefined }, parts)
    const second = isSold ? await sales.buy(rig, payers) : { answer: sales.ordered(rig, payers) }
    if (isSold) state = paid
    sales.settle(2, true)
    t.match(await second.answer, isSold ? { status: 200, json: { id: payersId } } : { status: 503 })
    t.equal(sales.orders(), isSold ? 3 : 2, 'nobody pays twice')
  })

t.test('a second copy of an item goes when the first one was accepted', async (t) => {
  const { rig, became, sales, table } = await scene(t)
  became.set(payersId, pending)
  const { answer } = await sales.buy(rig, payers)
  sales.settle(0, false)
  await answer
  const [own] = table.open() as [Required<Sale>]
  const place = { ...own.item.place, offset: own.item.place.offset + 1_000_000 }
  const copy = { ...own, item: { ...own.item, place } }
  table.begin(copy)
  became.set(payersId, paid)
  t.match(await rig.intake.resumeIdle(own), { status: 200 })
  t.match(await rig.intake.resumeIdle(copy), { status: 200 })
  t.strictSame(table.open(), [])
  t.match(rig.uploads.find(payersId), { place: own.item.place })
})

t.test('sales of older releases are taken up', (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const rows = environment.table('sales')
  const facts = { units: '1', bytes: 1, openedMs: 1 }
  const item = { id: payersId, place: { file: 1, offset: 2, sizeBytes: 3 } }
  const open = { ...facts, payment: 'p', request: payersId, identifier: 'n', itemId: payersId, item }
  const sold = {
    ...facts,
    payment: 'q',
    request: strangersId,
    identifier: 'm',
    itemId: strangersId,
    paid: made,
  }
  environment.write(() => {
    for (const sale of [open, sold]) {
      rows.put(Buffer.from(`s:${sale.payment}`), Buffer.from(JSON.stringify(sale)))
      rows.put(Buffer.from(`n:${sale.identifier}`), Buffer.from(sale.payment))
    }
    rows.put(Buffer.concat([Buffer.from('o:'), idBytes(payersId)]), Buffer.from('p'))
  })
  for (const sales of [new Sales(environment), new Sales(environment)]) {
    t.strictSame(sales.open(), [open])
    t.match([sales.openFor('p', payersId), sales.named('n'), sales.openOf(payersId)], [open, open, open])
    t.match([sales.sold('q'), sales.named('m')], [sold, sold])
    t.equal(sales.sold('p'), undefined)
  }
  const sales = new Sales(environment)
  sales.drop(open as unknown as Sale)
  t.strictSame([sales.open(), sales.named('n')], [[], undefined])
  t.end()
})
