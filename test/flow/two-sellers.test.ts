/** A program whose gateway and payment service have one wallet: a payment buys at one of them, also where it was killed. */
import t from 'tap'
import { newAccount, payee } from '../admission/scene.js'
import { scriptedFacilitator } from '../admission/scripted-facilitator.js'
import { payment } from '../admission/shop.js'
import { eventually } from '../eventually.js'
import { run } from './running.js'

const wallet = `${'W'.repeat(42)}A`

t.test('one payment, two sellers, one program', async (t) => {
  const facilitator = await scriptedFacilitator(t)
  // It answers that a payment is settled to whoever asks.
  facilitator.remembers = true
  const payer = newAccount()
  facilitator.balances.set(payer.address.toLowerCase(), 100_000_000n)
  const settings = {
    SERVICES: 'gateway,payment',
    DEVNET_SEED: 'false',
    ENABLE_RATE_LIMITER: 'true',
    RATE_LIMITER_IP_REFILL_PER_SEC: '0',
    ENABLE_X_402_USDC_DATA_EGRESS: 'true',
    X_402_USDC_NETWORK: 'base-sepolia',
    X_402_USDC_WALLET_ADDRESS: payee,
    X_402_USDC_FACILITATOR_URL: facilitator.url,
    X_402_USDC_SETTLE_TIMEOUT_MS: '30000',
  }
  const folder = t.testdir()
  let program = await run(t, folder, settings)
  const client = '203.0.113.7'
  // Loopback is a trusted proxy.
  const from = { 'x-forwarded-for': client }
  const pay = async (): Promise<Record<string, string>> => ({
    ...(await payment(payer, 1, { to: payee })),
    ...from,
  })
  const post = async (url: string, headers: Record<string, string>): Promise<Response> => {
    const answer = await fetch(url, { method: 'POST', headers })
    await answer.arrayBuffer()
    return answer
  }
  const atGateway = (headers: Record<string, string>): Promise<Response> =>
    post(`${program.urls.gateway}/gateway/rate-limit/ip/${client}`, headers)
  const atPayment = (headers: Record<string, string>): Promise<Response> =>
    post(`${program.urls.payment}/v1/x402/top-up/arweave/${wallet}`, headers)
  const paidTokens = async (): Promise<number> => {
    const answer = await fetch(`${program.urls.gateway}/gateway/rate-limit/ip/${client}`)
    return answer.status === 404 ? 0 : ((await answer.json()) as { paidTokens: number }).paidTokens
  }
  const first = await pay()
  t.equal((await atGateway(first)).status, 200)
  t.equal((await atPayment(first)).status, 402)
  const bought = await paidTokens()
  t.ok(bought > 0)
  const second = await pay()
  t.equal((await atPayment(second)).status, 200)
  t.equal((await atGateway(second)).status, 402)
  t.equal(await paidTokens(), bought)

  const third = await pay()
  facilitator.afterSettle = () => facilitator.used.size === 3
  const lost = atGateway(third).catch(() => undefined)
  await eventually('three payments are executed', () => facilitator.used.size === 3)
  await program.kill()
  await lost
  facilitator.afterSettle = undefined
  program = await run(t, folder, settings)
  t.equal((await atPayment(third)).status, 402, 'the gateway has asked for it')
  await eventually('the tokens of both payments are there', async () => (await paidTokens()) === 2 * bought)
  t.equal(facilitator.used.size, 3)
})
