import { randomBytes } from 'node:crypto'
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import { newAccount, payee } from '../../admission/scene.js'
import { scriptedFacilitator } from '../../admission/scripted-facilitator.js'
import { payment } from '../../admission/shop.js'
import { eventually } from '../../eventually.js'
import { scratch } from '../../scratch.js'
import { type PaymentRig, paymentRig } from '../rig.js'
import { usdcScene } from './usdc-scene.js'

interface Offer {
  readonly x402Version: number
  readonly accepts: readonly Readonly<Record<string, string>>[]
}

/** What the wallet has. */
async function wincOf(rig: PaymentRig): Promise<bigint> {
  const { json } = await rig.get(`/v1/balance?address=${wallet}`)
  return json === undefined ? 0n : BigInt((json as { winc: string }).winc)
}

const wallet = `${'W'.repeat(42)}A`
const path = `/v1/x402/top-up/arweave/${wallet}`

t.test('bytes are offered for USDC, and what is paid is in the wallet once', async (t) => {
  const { facilitator, rig, payer } = await usdcScene(t)
  const price = await rig.get(`/v1/x402/price/arweave/${wallet}?bytes=1000000000`)
  t.equal(price.status, 200)
  const { accepts } = price.json as Offer
  t.match(accepts, [{ scheme: 'exact', network: 'base-sepolia', payTo: payee }])
  const value = accepts[0]?.maxAmountRequired ?? ''
  const offered = await rig.post(path, '{"bytes":1000000000}')
  t.equal(offered.status, 402)
  t.match(offered.json, { x402Version: 1, accepts: [{ maxAmountRequired: value }] })

  for (const version of [1, 2] as const) {
    const before = await wincOf(rig)
    const nonce = `0x${randomBytes(32).toString('hex')}` as const
    const headers = await payment(payer, version, { to: payee, value, nonce })
    const answers = await Promise.all([1, 2, 3].map(() => rig.post(path, '', headers)))
    for (const { status } of answers) t.equal(status, 200)
    const [first] = answers
    const { creditsGranted, txHash, balance } = (first?.json ?? {}) as Record<string, string>
    t.match(txHash, /^0x[0-9a-f]{64}$/)
    t.equal(balance, String(before + BigInt(creditsGranted ?? 0)))
    const cost = (await rig.get('/v1/price/bytes/1000000000')).json as { winc: string }
    t.ok(BigInt(creditsGranted ?? 0) >= BigInt(cost.winc), 'enough for what was asked')
    const other = `/v1/x402/top-up/arweave/${'V'.repeat(42)}A`
    t.equal((await rig.post(other, '', headers)).status, 400, 'and for nobody else')
    const unchecked = { to: payee, value, nonce, signature: `0x${'ab'.repeat(66)}` }
    const brought = await rig.post(path, '', await payment(payer, version, unchecked))
    t.equal(brought.status, 400, 'a signature that only a contract could check tells nothing')
  }
  t.equal(facilitator.count('settle'), 2)
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test('an amount of the own choice is worth what a top-up in USDC is', async (t) => {
  const { rig, payer } = await usdcScene(t)
  const quoted = (await rig.get('/v1/price/base-usdc/5000000')).json as { winc: string }
  const headers = await payment(payer, 1, { to: payee, value: '5000000' })
  const paid = await rig.post(path, '', headers)
  t.match(paid.json, { success: true, creditsGranted: quoted.winc, network: 'base-sepolia' })
})

t.test('nothing is credited for what was not paid', async (t) => {
  const { facilitator, rig, payer } = await usdcScene(t)
  t.equal((await rig.post(path, '{')).status, 400)
  t.equal((await rig.post(path, '{"bytes":-1}')).status, 400)
  t.equal((await rig.post('/v1/x402/top-up/arweave/nobody', '{"bytes":1}')).status, 400)
  t.equal((await rig.post(path, '', { 'x-payment': 'rubbish' })).status, 400)
  const wishes = [
    { to: newAccount().address, value: '5000' },
    { to: payee, value: '999' },
    { to: payee, value: '10000000001' },
    { to: payee, value: '5000', signature: `0x${'00'.repeat(65)}` },
    { to: payee, value: '5000', domain: { chainId: 8453 } },
  ]
  for (const wish of wishes) {
    const refused = await rig.post(path, '', await payment(payer, 1, wish))
    t.equal(refused.status, 402)
    t.match(refused.json, { error: 'payment_verification_failed', accepts: [{ payTo: payee }] })
  }
  const poor = await rig.post(path, '', await payment(newAccount(), 1, { to: payee, value: '5000' }))
  t.equal(poor.status, 402)
  t.equal(facilitator.count('settle'), 0)
  t.equal((await rig.get(`/v1/balance?address=${wallet}`)).status, 404)
})

t.test('an answer that was lost after the money moved is made good for', async (t) => {
  const { facilitator, rig, payer } = await usdcScene(t)
  facilitator.remembers = true
  let isLost = false
  facilitator.afterSettle = ({ response }) => {
    if (isLost) return false
    isLost = true
    response.destroy()
    return true
  }
  const headers = await payment(payer, 1, { to: payee, value: '5000000' })
  await eventually('the top-up is accepted', async () => (await rig.post(path, '', headers)).status === 200)
  t.ok(isLost)
  const quoted = (await rig.get('/v1/price/base-usdc/5000000')).json as { winc: string }
  t.match((await rig.get(`/v1/balance?address=${wallet}`)).json, { winc: quoted.winc })
})

t.test('what a ledger with older data has lost is credited again by the records', async (t) => {
  const facilitator = await scriptedFacilitator(t)
  const payer = newAccount()
  facilitator.balances.set(payer.address.toLowerCase(), 100_000_000n)
  const x402 = {
    network: 'base-sepolia',
    wallet: payee.toLowerCase(),
    facilitatorUrl: facilitator.url,
    protocol: 'http',
    verifyMs: 30_000,
    settleMs: 30_000,
    recordsPath: scratch('x402-records'),
  } as const
  const open = async (): Promise<PaymentRig> => {
    const ledger = new EmbeddedLedger({ path: scratch('ledger'), clock: systemClock })
    const rig = await paymentRig(t, { ledger, x402 })
    rig.setTime(Date.now())
    return rig
  }
  const first = await open()
  const headers = await payment(payer, 1, { to: payee, value: '5000000' })
  t.equal((await first.post(path, '', headers)).status, 200)
  const winc = await wincOf(first)
  t.ok(winc > 0n)
  await first.service.close()
  const older = await open()
  t.equal(await wincOf(older), 0n)
  t.equal(await older.service.creditLost(), 1, 'also where nobody brings the payment again')
  t.equal(await wincOf(older), winc)
  t.equal(await older.service.creditLost(), 0)
  await older.service.close()
  const oldest = await open()
  for (const turn of [1, 2]) t.equal((await oldest.post(path, '', headers)).status, 200, `turn ${turn}`)
  t.equal(await wincOf(oldest), winc)
  t.equal(facilitator.count('settle'), 1)
  t.strictSame((await oldest.ledger.check()).faults, [])
})
