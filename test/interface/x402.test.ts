import { createHash } from 'node:crypto'
import { registerExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import t from 'tap'
import { anvilPath, startChain } from '../admission/anvil.js'
import { get, payment } from '../admission/shop.js'
import { stockFacilitator } from '../admission/stock-facilitator.js'
import { eventually } from '../eventually.js'
import { run, seeded, twoEdges } from '../flow/running.js'

const binary = anvilPath()
const skip = binary === undefined && 'anvil is not installed'
const ether = 10n ** 19n

interface Bucket {
  readonly tokens: number
  readonly paidTokens: number
}

t.test('the program sells bytes for USDC', { skip }, async (t) => {
  const chain = await startChain(t, binary ?? '', 'base-sepolia')
  const facilitator = await stockFacilitator(t, chain, await chain.account({ ether }))
  const payee = (await chain.account()).address
  const settings = {
    ...seeded,
    ...twoEdges,
    SERVICES: 'gateway',
    ENABLE_RATE_LIMITER: 'true',
    RATE_LIMITER_IP_TOKENS_PER_BUCKET: '2',
    RATE_LIMITER_IP_REFILL_PER_SEC: '0',
    ENABLE_X_402_USDC_DATA_EGRESS: 'true',
    X_402_USDC_NETWORK: 'base-sepolia',
    X_402_USDC_WALLET_ADDRESS: payee,
    X_402_USDC_FACILITATOR_URL: facilitator.url,
    X_402_USDC_RPC_URL: chain.url,
    PAYMENT_BASE_CONFIRMATIONS: '1',
    X_402_USDC_SETTLE_TIMEOUT_MS: '30000',
    X_402_RATE_LIMIT_CAPACITY_MULTIPLIER: '2',
    X_402_APP_NAME: 'My gateway',
    ADMIN_API_KEY: 'the-admin-key-of-this-test',
  }
  const dataPath = t.testdir()
  // Whatever is started lives as long as the whole test does.
  const start = () => run(t, dataPath, settings)
  let program = await start()
  const bucket = async (ip: string): Promise<Bucket> =>
    JSON.parse((await get(`${program.urls.gateway}/gateway/rate-limit/ip/${ip}`)).text)
  // Loopback is a trusted proxy: each part has a client, and so a bucket, of its own.
  const from = (ip: string) => ({ 'x-forwarded-for': ip })
  const { image: file = '' } = program.examples
  const url = (): string => `${program.urls.gateway}/raw/${file}`
  const sized = await fetch(url(), { method: 'HEAD', headers: from('203.0.113.9') })
  const sizeBytes = Number(sized.headers.get('content-length'))
  t.ok(sizeBytes > 2048, `${sizeBytes} bytes are more than the allowance`)
  const price = BigInt(Math.max(1000, Math.ceil(sizeBytes / 10_000)))

  t.test('a stock client buys a file: paid on chain, credited once, and served whole', async (t) => {
    const payer = await chain.account({ units: 1_000_000n })
    const pay = wrapFetchWithPayment(fetch, registerExactEvmScheme(new x402Client(), { signer: payer }))
    const headers = from('203.0.113.1')
    t.equal((await fetch(url(), { headers })).status, 402, 'unpaid')
    const answer = await pay(url(), { headers })
    t.equal(answer.status, 200)
    const bytes = new Uint8Array(await answer.arrayBuffer())
    t.equal(bytes.length, sizeBytes)
    t.match(answer.headers.get('content-digest') ?? '', createHash('sha256').update(bytes).digest('base64'))
    t.ok(answer.headers.get('payment-response') !== null && answer.headers.get('x-payment-response') !== null)
    t.equal(await chain.balance(payee), price)
    t.equal(await chain.balance(payer.address), 1_000_000n - price)
    const again = await pay(url(), { headers })
    t.equal((await again.arrayBuffer()).byteLength, sizeBytes, 'it bought twice what it paid for')
    t.equal(await chain.balance(payee), price)
  })

  t.test('8 uses of one payment on several threads settle once', async (t) => {
    const payer = await chain.account({ units: 1_000_000n })
    const before = await chain.balance(payee)
    const settled = facilitator.calls.filter((call) => call === 'settle').length
    const paying = await payment(payer, 1, { to: payee, value: price.toString() })
    const headers = { ...paying, ...from('203.0.113.2') }
    const all = await Promise.all(Array.from({ length: 8 }, () => fetch(url(), { headers })))
    const sizes = await Promise.all(all.map(async (one) => (await one.arrayBuffer()).byteLength))
    t.same(new Set(sizes), new Set([sizeBytes]), 'all were served of what was bought')
    t.equal((await chain.balance(payee)) - before, price)
    t.equal(facilitator.calls.filter((call) => call === 'settle').length - settled, 1)
  })

  t.test('killed while a payment is being settled: the same payment is good after the start', async (t) => {
    const payer = await chain.account({ units: 1_000_000n })
    const before = await chain.balance(payee)
    let reached: () => void = () => undefined
    const done = new Promise<void>((resolve) => {
      reached = resolve
    })
    // The money moves; nobody hears of it.
    facilitator.after = async (_, path) => {
      if (path !== 'settle') return false
      facilitator.after = undefined
      reached()
      return new Promise(() => undefined)
    }
    const paying = await payment(payer, 2, { to: payee, value: price.toString() })
    const headers = { ...paying, ...from('203.0.113.3') }
    const pending = fetch(url(), { headers }).catch(() => undefined)
    await done
    await program.kill()
    await pending
    t.equal((await chain.balance(payee)) - before, price)
    program = await start()
    const answer = await eventually('an answer other than 503', async () => {
      const answer = await fetch(url(), { headers })
      if (answer.status !== 503) return answer
      await answer.arrayBuffer()
      return undefined
    })
    t.equal(answer.status, 200)
    t.equal((await answer.arrayBuffer()).byteLength, sizeBytes)
    t.equal((await chain.balance(payee)) - before, price, 'moved once')
    const bought = Math.ceil(10_000_000 / 1024) * 2
    t.equal(
      (await bucket('203.0.113.3')).paidTokens,
      bought + 2 - Math.ceil(sizeBytes / 1024),
      'credited once',
    )
  })

  t.test('its info, and its page for browsers', async (t) => {
    const info = JSON.parse((await get(`${program.urls.gateway}/gateway/info`)).text)
    t.match(info.x402, { enabled: true, network: 'base-sepolia', walletAddress: payee })
    t.match(info.x402.dataEgress, {
      pricing: { perBytePrice: '0.0000000001' },
      rateLimiterCapacityMultiplier: 2,
    })
    const authorization = `Bearer ${settings.ADMIN_API_KEY}`
    const overview = JSON.parse(
      (await get(`${program.urls.gateway}/gateway/admin/overview`, { authorization })).text,
    )
    t.equal(overview.payments.length, 3, 'the operator sees the last payments, those before a kill too')
    t.match(overview.payments[0], { state: 'settled', units: price.toString(), transaction: /^0x/ })
    t.notMatch(JSON.stringify(overview.payments), /signature/)
    const echo = `${program.urls.gateway}/gateway/x402/test`
    const page = await get(echo, { accept: 'text/html', 'user-agent': 'Mozilla/5.0' })
    t.equal(page.status, 402)
    t.match(page.text, 'My gateway')
    t.equal(page.headers.get('access-control-allow-origin'), '*')
    t.equal(page.headers.get('access-control-expose-headers'), '*')
    const wish = 'x-payment,payment-signature,access-control-expose-headers'
    const asking = { 'access-control-request-headers': wish, 'access-control-request-method': 'GET' }
    const preflight = await get(echo, asking, 'OPTIONS')
    t.equal(preflight.headers.get('access-control-allow-headers'), wish)
    const payer = await chain.account({ units: 5000n })
    const paid = await get(echo, await payment(payer, 2, { to: payee, value: '1000' }))
    t.match(JSON.parse(paid.text), { success: true })
    const numbers = (await get(`${program.urls.gateway}/gateway/__gateway_metrics`)).text
    t.match(numbers, /x402_payments_total{outcome="settled",\S* [1-9]/)
  })

  t.test('a top-up pays for the bucket in the path, whoever pays', async (t) => {
    const payer = await chain.account({ units: 5000n })
    const bought = `${program.urls.gateway}/gateway/rate-limit/ip/192.0.2.7`
    const offer = await get(bought, {}, 'POST')
    t.equal(offer.status, 402, 'who brings nothing is offered the least')
    t.match(JSON.parse(offer.text), { accepts: [{ maxAmountRequired: '1000' }] })
    t.ok(offer.headers.get('payment-required'))
    t.equal((await get(bought, { authorization: 'Bearer wrong' }, 'POST')).status, 401)
    const headers = await payment(payer, 1, { to: payee, value: '3000' })
    const got = await get(bought, headers, 'POST')
    t.equal(got.status, 200)
    const tokens = Math.ceil(30_000_000 / 1024) * 2
    t.match(JSON.parse(got.text), {
      paidTokens: tokens,
      topUp: { tokensAdded: tokens, paymentAmount: '3000' },
    })
    t.equal(await chain.balance(payer.address), 2000n)
  })
})
