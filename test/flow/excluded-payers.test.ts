/** Senders on the operator's list: nothing of theirs is taken in USDC, at any of the services where it is paid. */
import t from 'tap'
import { newAccount, payee } from '../admission/scene.js'
import { payment } from '../admission/shop.js'
import { run } from './running.js'
import { buyer, itemOf } from './usdc-scene.js'

const wallet = `${'W'.repeat(42)}A`

t.test('an excluded payer pays no service, and others pay each', async (t) => {
  const { facilitator, payer: stranger, settings } = await buyer(t)
  const welcome = newAccount()
  facilitator.balances.set(welcome.address.toLowerCase(), 100_000_000n)
  const { urls } = await run(t, t.testdir(), {
    ...settings,
    ENABLE_RATE_LIMITER: 'true',
    ENABLE_X_402_USDC_DATA_EGRESS: 'true',
    PAYMENT_EXCLUDED_ADDRESSES: `somebody,${stranger.address.toUpperCase().replace('0X', '0x')}`,
  })
  const { gateway = '', upload = '', payment: bank = '' } = urls
  const post = (url: string, headers: Record<string, string> = {}, body: string | Uint8Array = '') =>
    fetch(url, { method: 'POST', headers, body: Buffer.from(body) })
  type Paying = (headers: Record<string, string>) => Promise<Response>
  const inBody =
    (mode: string): Paying =>
    (headers) => {
      const [paymentHeader] = Object.values(headers)
      const order = { paymentHeader, mode, dataItemId: `item-${mode}`, byteCount: 50_000 }
      return post(`${bank}/v1/x402/payment/arweave/${wallet}`, {}, JSON.stringify(order))
    }
  const services: Readonly<Record<string, Paying>> = {
    egress: (headers) => post(`${gateway}/gateway/rate-limit/ip/203.0.113.7`, headers),
    'top-up': (headers) => post(`${bank}/v1/x402/top-up/arweave/${wallet}`, headers),
    payg: inBody('payg'),
    hybrid: inBody('hybrid'),
    topup: inBody('topup'),
    item: (headers) => post(`${upload}/v1/x402/upload/signed`, headers, itemOf('of an excluded payer')),
    parts: (headers) => {
      const terms = `chunkSize=5242880&totalBytes=50000&address=${welcome.address}&signatureType=3`
      return fetch(`${upload}/v1/chunks/base-usdc/-1/-1?${terms}`, { headers })
    },
  }
  for (const [name, pay] of Object.entries(services)) {
    const value = '1000'
    const refused = await pay(await payment(stranger, 1, { to: payee, value }))
    t.equal(refused.status, 402, name)
    t.match(await refused.text(), /excluded/, name)
    const taken = await pay(await payment(welcome, 1, { to: payee, value }))
    t.equal(taken.status, 200, `${name}: ${await taken.text()}`)
  }
  t.equal(facilitator.count('settle'), Object.keys(services).length)
  t.equal(facilitator.balances.get(stranger.address.toLowerCase()), 100_000_000n)
})
