import t, { type Test } from 'tap'
import { ordersPath } from '../../../src/payment/credits-port.js'
import { makeServiceToken } from '../../../src/payment/requests/service-token.js'
import { payee } from '../../admission/scene.js'
import { payment } from '../../admission/shop.js'
import { eventually } from '../../eventually.js'
import { type PaymentRig, secret } from '../rig.js'
import { usdcScene } from './usdc-scene.js'

const wallet = `${'W'.repeat(42)}A`
const path = `/v1/x402/payment/arweave/${wallet}`

async function scene(t: Test, given: Parameters<typeof usdcScene>[1] = {}) {
  const { facilitator, rig, payer } = await usdcScene(t, given)
  /** The value of a header with a payment. */
  const paying = async (version: 1 | 2, value: string): Promise<string> =>
    Object.values(await payment(payer, version, { to: payee, value }))[0] ?? ''
  return { facilitator, rig, paying }
}

const ask = async (rig: PaymentRig, given: object, to = path, headers = {}) => {
  const { status, json } = await rig.post(to, JSON.stringify(given), headers)
  return { status, json: json as Record<string, string> }
}

async function balance(rig: PaymentRig): Promise<bigint> {
  const { json } = await rig.get(`/v1/balance?address=${wallet}`)
  return json === undefined ? 0n : BigInt((json as { winc: string }).winc)
}

async function priceOf(rig: PaymentRig, byteCount: number): Promise<string> {
  const { status, json } = await ask(rig, { byteCount, dataItemId: 'asked' })
  t.equal(status, 402)
  return (json as unknown as { accepts: { maxAmountRequired: string }[] }).accepts[0]?.maxAmountRequired ?? ''
}

t.test('a payment for one item is held for it, and what is not used becomes credits', async (t) => {
  const { facilitator, rig, paying } = await scene(t)
  const service = { authorization: `Bearer ${await makeServiceToken(secret, Date.now())}` }
  const byteCount = 10_000_000
  const value = await priceOf(rig, byteCount)
  for (const [at, version] of ([1, 2] as const).entries()) {
    const paymentHeader = await paying(version, value)
    const order = { paymentHeader, dataItemId: `item-${at}`, byteCount, mode: 'payg' }
    const [first, again] = await Promise.all([ask(rig, order), ask(rig, order)])
    t.equal(first.status, 200)
    t.strictSame(again, first, 'once, however often it is asked')
    const { wincPaid, wincReserved, wincCredited } = first.json
    t.strictSame([wincReserved, wincCredited], [wincPaid, '0'])
    const other = await ask(rig, { ...order, dataItemId: 'another' })
    t.match([other.status, other.json.error], [402, 'payment_already_used'])
    t.equal(await balance(rig), 0n)
  }
  const finalize = (dataItemId: string, actualByteCount: number, headers: object = service) =>
    ask(rig, { dataItemId, actualByteCount }, '/v1/x402/finalize', headers)
  t.equal((await finalize('item-0', byteCount, {})).status, 401)
  t.equal((await finalize('nobody', byteCount)).status, 404)
  t.equal((await finalize('item-0', 0)).status, 400)
  const confirmed = await finalize('item-0', byteCount - 100)
  t.match(confirmed.json, { success: true, status: 'confirmed', refundWinc: '0' })
  const refunded = await finalize('item-1', byteCount / 2)
  t.equal(refunded.json.status, 'refunded')
  t.equal(await balance(rig), BigInt(refunded.json.refundWinc ?? 0))
  t.ok(BigInt(refunded.json.refundWinc ?? 0) > 0n)
  t.strictSame((await finalize('item-1', byteCount)).json.status, 'refunded', 'the first answer stays')
  const kept = await finalize('item-0', byteCount * 2)
  t.equal(kept.json.status, 'confirmed')
  const paymentHeader = await paying(1, value)
  t.equal((await ask(rig, { paymentHeader, dataItemId: 'liar', byteCount })).status, 200)
  t.equal((await finalize('liar', byteCount * 2)).json.status, 'fraud_penalty')
  t.equal(facilitator.count('settle'), 3)
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test('what is paid beyond the price becomes credits where that is wanted', async (t) => {
  const { rig, paying } = await scene(t)
  const byteCount = 1_000_000
  const more = String(BigInt(await priceOf(rig, byteCount)) * 3n)
  const hybrid = { paymentHeader: await paying(1, more), dataItemId: 'item', byteCount, mode: 'hybrid' }
  const { json } = await ask(rig, hybrid)
  t.equal(BigInt(json.wincReserved ?? 0) + BigInt(json.wincCredited ?? 0), BigInt(json.wincPaid ?? 0))
  t.equal(await balance(rig), BigInt(json.wincCredited ?? 0))
  const cost = (await rig.get(`/v1/price/bytes/${byteCount}`)).json as { winc: string }
  t.equal(json.wincReserved, cost.winc)
  const topUp = await ask(rig, { paymentHeader: await paying(2, '5000000'), mode: 'topup' })
  t.match(topUp.json, { success: true, wincReserved: '0', mode: 'topup' })
  t.equal(await balance(rig), BigInt(json.wincCredited ?? 0) + BigInt(topUp.json.wincCredited ?? 0))
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test('a payment for an item pays for the size that it was made for, and for no larger one', async (t) => {
  const { rig, paying } = await scene(t)
  const service = { authorization: `Bearer ${await makeServiceToken(secret, Date.now())}` }
  const large = 20_000_000_000
  const least = await priceOf(rig, 1)
  const order = { paymentHeader: await paying(1, least), dataItemId: 'small', byteCount: 1 }
  const { wincPaid = '' } = (await ask(rig, order)).json
  const reserve = (dataItemId: string, byteCount: number) => {
    const query = `byteCount=${byteCount}&dataItemId=${dataItemId}&settle=later`
    return rig.get(`/v1/reserve-balance/arweave/${wallet}?${query}`, service)
  }
  const check = (dataItemId: string, byteCount: number) =>
    rig.get(`/v1/check-balance/arweave/${wallet}?byteCount=${byteCount}&dataItemId=${dataItemId}`, service)
  t.equal((await check('small', large)).status, 404, 'of this wallet nothing is known')
  t.equal((await reserve('small', large)).status, 402)
  t.equal(await balance(rig), BigInt(wincPaid), 'what is too little becomes credits')
  const topUp = await ask(rig, { paymentHeader: await paying(2, '5000000'), mode: 'topup' })
  const before = BigInt(wincPaid) + BigInt(topUp.json.wincCredited ?? 0)
  const cost = (await rig.get('/v1/price/bytes/20000000000')).json as { winc: string }
  const charged = await reserve('small', large)
  t.match([charged.status, charged.text], [200, cost.winc])
  t.equal(await balance(rig), before - BigInt(cost.winc))

  const whole = { dataItemId: 'whole', byteCount: large / 2 }
  const paid = await ask(rig, {
    ...whole,
    paymentHeader: await paying(1, await priceOf(rig, whole.byteCount)),
  })
  t.equal((await check('whole', large / 2)).status, 200, 'before its bytes come, too')
  const held = await reserve('whole', large / 2)
  t.match([held.status, held.text], [200, paid.json.wincReserved])
  t.equal(await balance(rig), before - BigInt(cost.winc), 'no credits are taken for it')
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test('who asks again and again does not keep a price of long ago', async (t) => {
  let [nowMs, winston] = [1e6, 2n ** 50n]
  const turned = { monotonic: () => nowMs, networkPrice: () => winston }
  const { facilitator, rig, paying } = await scene(t, turned)
  const service = { authorization: `Bearer ${await makeServiceToken(secret, Date.now())}` }
  const byteCount = 1_000_000
  const look = async (value: string) => {
    const given = { header: await paying(1, value), version: 1, bytes: byteCount, resource: rig.url }
    return ask(
      rig,
      { usdc: 'look', given: { ...given, itemId: 'item', mimeType: '', asker: '' } },
      ordersPath,
      service,
    )
  }
  const old = await priceOf(rig, byteCount)
  winston *= 4n
  for (let times = 0; times < 20; times += 1) {
    nowMs += 120_000
    await priceOf(rig, byteCount)
    await look(old)
  }
  t.ok(BigInt(await priceOf(rig, byteCount)) > 2n * BigInt(old))
  const order = async (value: string) => ({
    paymentHeader: await paying(1, value),
    byteCount,
    dataItemId: value,
  })
  t.equal((await ask(rig, await order(old))).status, 402)
  t.equal(facilitator.count('settle'), 0)
  winston *= 2n
  let [price, before] = [await priceOf(rig, byteCount), '']
  for (before = price; price === before; price = await priceOf(rig, byteCount)) nowMs += 200_000
  t.equal((await ask(rig, await order(before))).status, 200, 'a price of a moment ago is good')
})

t.test('a look says what its bytes cost, and nothing of a payment that was made', async (t) => {
  const { rig, paying } = await scene(t)
  const service = { authorization: `Bearer ${await makeServiceToken(secret, Date.now())}` }
  const byteCount = 1_000_000
  const look = async (header: string) => {
    const given = {
      header,
      version: 1,
      bytes: byteCount,
      resource: rig.url,
      itemId: '',
      mimeType: '',
      asker: '',
    }
    return (await ask(rig, { usdc: 'look', given }, ordersPath, service)).json
  }
  const price = await priceOf(rig, byteCount)
  const header = await paying(1, String(2n * BigInt(price)))
  t.match(await look(header), { good: true, units: price }, 'not what its payer gives')
  const order = { paymentHeader: header, dataItemId: 'item', byteCount, mode: 'payg' }
  t.equal((await ask(rig, order)).status, 200)
  t.match(await look(header), { good: true, units: '0' })
  // All but the signature stands on the chain. Only the chain could verify one of this length: it must be the recorded one.
  const read = JSON.parse(Buffer.from(header, 'base64').toString()) as { payload: { signature: string } }
  read.payload.signature = `0x${'7'.repeat(132)}`
  const copied = Buffer.from(JSON.stringify(read)).toString('base64')
  t.notMatch(await look(copied), { good: true })
})

t.test('what is no order is refused, and nothing moves', async (t) => {
  const { facilitator, rig, paying } = await scene(t)
  const sound = { dataItemId: 'item', byteCount: 1000, paymentHeader: await paying(1, '1000') }
  for (const wrong of [{ mode: 'gift' }, { byteCount: -1 }, { dataItemId: '../x' }, { paymentHeader: 7 }])
    t.equal((await ask(rig, { ...sound, ...wrong })).status, 400)
  t.equal((await ask(rig, sound, '/v1/x402/payment/arweave/nobody')).status, 400)
  t.equal((await ask(rig, { ...sound, paymentHeader: 'rubbish' })).status, 400)
  const query = { usdc: 'outcome', given: { payment: 'nobody', itemId: 'item' } }
  t.equal((await ask(rig, query, ordersPath)).status, 401)
  const service = { authorization: `Bearer ${await makeServiceToken(secret, Date.now())}` }
  t.match((await ask(rig, query, ordersPath, service)).json, { paid: false, state: 'unknown' })
  t.equal(facilitator.count('settle'), 0)
  await eventually('the credits are spent', async () => (await balance(rig)) === 0n)
})

/** An upload service elsewhere, as its operator's two services talk. */
async function uploadService(rig: PaymentRig) {
  const service = { authorization: `Bearer ${await makeServiceToken(secret, Date.now())}` }
  const whose = 'dataItemId=item&byteCount=20000000000'
  const winc = async (route: string, more = ''): Promise<string> => {
    return (await rig.get(`/v1/${route}/arweave/${wallet}?${whose}${more}`, service)).text
  }
  const pay = (header: string) => {
    const given = { itemId: 'item', bytes: 20_000_000_000, resource: rig.url, mimeType: '', asker: '' }
    return ask(rig, { usdc: 'pay', given: { ...given, header, version: 1 } }, ordersPath, service)
  }
  return { winc, pay }
}

t.test('a payment that is too small for an item makes way for one that is enough', async (t) => {
  const { rig, paying } = await scene(t)
  const { winc, pay } = await uploadService(rig)
  const least = await priceOf(rig, 1)
  const small = { dataItemId: 'item', byteCount: 1, paymentHeader: await paying(1, least) }
  const { wincReserved = '' } = (await ask(rig, small)).json
  const paid = (await pay(await paying(1, await priceOf(rig, 20_000_000_000)))).json
  t.equal(paid.paid, true)
  t.equal(await balance(rig), BigInt(wincReserved), 'the small one is credits now, and nothing else')
  t.equal(await winc('settle-balance'), paid.winc)
  t.equal((await rig.ledger.account('revenue'))?.creditsPosted, BigInt(paid.winc ?? 0))
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test('a payment for an item stays with it, whatever becomes of orders that count on it', async (t) => {
  const { rig, paying } = await scene(t)
  const { winc, pay } = await uploadService(rig)
  const paymentHeader = await paying(1, await priceOf(rig, 20_000_000_000))
  const first = (await ask(rig, { dataItemId: 'item', byteCount: 20_000_000_000, paymentHeader })).json
  const { wincReserved = '' } = first
  t.equal(await winc('reserve-balance', `&settle=later&ticket=${'d'.repeat(22)}`), wincReserved)
  t.equal(await winc('refund-balance', `&ticket=${'d'.repeat(22)}`), '0')
  t.equal(await balance(rig), 0n)
  t.match((await pay(paymentHeader)).json, { paid: true, winc: wincReserved })
  t.equal(await winc('settle-balance'), wincReserved)
  t.equal((await rig.ledger.account('revenue'))?.creditsPosted, BigInt(wincReserved))
  t.equal(await balance(rig), 0n)
  // Given back by its operator, it has become credits, and pays for nothing any more.
  await winc('refund-balance')
  t.equal(await balance(rig), BigInt(wincReserved))
  t.match((await pay(paymentHeader)).json, { status: 402, json: { error: 'payment_credited' } })
  t.equal(await winc('settle-balance'), '0')
  t.equal(rig.meters.value('payment_unpaid_items_total', {}), 1)
  t.strictSame((await rig.ledger.check()).faults, [])
})
