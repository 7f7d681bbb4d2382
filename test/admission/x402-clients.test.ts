import { existsSync } from 'node:fs'
import { registerExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import t, { type Test } from 'tap'
import { type Hex, parseSignature } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { systemClock } from '../../src/actor/clock.js'
import { ChainWitness } from '../../src/admission/chain-witness.js'
import { anvilPath, type LocalChain, startChain } from './anvil.js'
import { fileBytes, get, openShop, payment, type Shop, unpacked } from './shop.js'
import { type StockFacilitator, stockFacilitator } from './stock-facilitator.js'

const binary = anvilPath()
const firstClient = new URL(
  '../../../test/clients/node_modules/x402-fetch/dist/esm/index.mjs',
  import.meta.url,
)
const ether = 10n ** 19n
const none = async (): Promise<void> => undefined

interface Market {
  readonly chain: LocalChain
  readonly facilitator: StockFacilitator
  readonly payer: PrivateKeyAccount
  readonly payee: string
  readonly shop: Shop
}

async function market(t: Test, network: 'base' | 'base-sepolia', units = 5_000_000n): Promise<Market> {
  const chain = await startChain(t, binary ?? '', network)
  const facilitator = await stockFacilitator(t, chain, await chain.account({ ether }))
  const payer = await chain.account({ units })
  const payee = (await chain.account()).address
  // A stock client gives up at the first 503: on a busy machine a settlement takes its time.
  const patient = { verifyMs: 20_000, settleMs: 20_000, cashier: { waitMs: 20_000 } }
  const shop = await openShop(t, { facilitatorUrl: facilitator.url, wallet: payee, network, ...patient })
  return { chain, facilitator, payer, payee, shop }
}

interface Payload {
  readonly signature: Hex
  readonly authorization: Readonly<Record<string, string>>
}

const payloadOf = (headers: Record<string, string>): Payload =>
  unpacked<{ payload: Payload }>(headers['X-PAYMENT'] ?? '').payload
const authorizationOf = (headers: Record<string, string>): Payload['authorization'] =>
  payloadOf(headers).authorization

/** What anybody tells the token who has seen this payment. */
function callOf(headers: Record<string, string>): unknown[] {
  const { signature, authorization } = payloadOf(headers)
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const { r, s, v } = parseSignature(signature)
  const numbers = [value, validAfter, validBefore].map((text) => BigInt(text ?? 0))
  return [from, to, ...numbers, nonce, Number(v), r, s]
}

/** One stock client: its name, and a fetch that pays. */
type Client = (payer: PrivateKeyAccount) => Promise<typeof fetch>

const second: Client = async (payer) =>
  wrapFetchWithPayment(fetch, registerExactEvmScheme(new x402Client(), { signer: payer }))
const first: Client = async (payer) => {
  const { wrapFetchWithPayment: wrap } = await import(firstClient.href)
  return wrap(fetch, payer)
}

for (const network of ['base-sepolia', 'base'] as const) {
  for (const [name, client, receiptName] of [
    ['@x402/fetch', second, 'payment-response'],
    ['x402-fetch', first, 'x-payment-response'],
  ] as const) {
    const missing =
      binary === undefined
        ? 'anvil is not installed'
        : !existsSync(firstClient) && client === first
          ? 'x402-fetch is not installed'
          : ''
    t.test(`${name} buys data on ${network}`, { skip: missing || false }, async (t) => {
      const { chain, payer, payee, shop, facilitator } = await market(t, network)
      const pay = await client(payer)
      const answer = await pay(`${shop.url}/file?q=1`)
      t.equal(answer.status, 200)
      t.equal(await answer.text(), 'the bytes')
      t.equal(await chain.balance(payee), 1000n, 'exactly the price')
      t.equal(await chain.balance(payer.address), 4_999_000n)
      const tokens = Math.ceil(10_000_000 / 1024) * 10
      t.same([...shop.purse.tokens.values()], [tokens - Math.ceil(fileBytes / 1024)], 'credited once')
      const receipt = unpacked<Record<string, unknown>>(answer.headers.get(receiptName))
      t.match(receipt, { success: true, payer: payer.address.toLowerCase() })
      t.ok(answer.headers.get('x-payment-response'), 'the receipt has the name that the interface promises')
      await pay(`${shop.url}/file`).then((next) => t.equal(next.status, 200))
      t.equal(await chain.balance(payee), 1000n, 'what was bought is used before more is asked for')
      t.same(facilitator.calls, ['supported', 'verify', 'settle'])
      // A terabyte costs the highest price, 1.00: more than stock clients of version 1 pay without an option.
      const dear = await pay(`${shop.url}/987654321098`).catch(() => undefined)
      t.equal(dear?.status, client === first ? undefined : 200, 'and it buys all that was asked for')
      t.equal(await chain.balance(payee), client === first ? 1000n : 1_001_000n)
    })
  }
}

t.test('on a chain', { skip: binary === undefined && 'anvil is not installed' }, async (t) => {
  const { chain, facilitator, payer, payee, shop } = await market(t, 'base-sepolia')

  t.test('8 uses of one payment at once settle once', async (t) => {
    for (const version of [1, 2] as const) {
      const before = await chain.balance(payee)
      const settled = facilitator.calls.filter((call) => call === 'settle').length
      const credited = shop.purse.payments.size
      const headers = await payment(payer, version, { to: payee })
      const url = `${shop.url}/4000000`
      const all = await Promise.all(Array.from({ length: 8 }, () => get(url, headers)))
      t.same(new Set(all.map(({ status }) => status)), new Set([200]), 'and buy enough for all of them')
      t.equal((await chain.balance(payee)) - before, 1000n)
      t.equal(facilitator.calls.filter((call) => call === 'settle').length - settled, 1)
      t.equal(shop.purse.payments.size - credited, 1)
      shop.purse.tokens.clear()
    }
  })

  t.test('a payer who empties the wallet between verification and settlement is not served', async (t) => {
    const poor = await chain.account({ units: 1000n, ether })
    const other = (await chain.account()).address
    let isEmpty = false
    facilitator.before = async (_, path) => {
      if (path === 'settle' && !isEmpty) await chain.write(poor, 'transfer', [other, 1000n])
      isEmpty ||= path === 'settle'
      return false
    }
    const got = await get(`${shop.url}/file`, await payment(poor, 2, { to: payee }))
    facilitator.before = undefined
    t.match(got, { status: 409, error: 'settlement_unknown' }, 'nobody here sees the chain')
    t.equal(shop.purse.of('127.0.0.1'), 0)
  })

  t.test('an authorization that somebody else has used already is refused', async (t) => {
    const thief = await chain.account({ ether })
    const victim = await chain.account({ units: 1000n })
    const headers = await payment(victim, 1, { to: payee })
    await chain.write(thief, 'transferWithAuthorization', callOf(headers))
    t.ok(await chain.isUsed(victim.address, authorizationOf(headers).nonce ?? ''))
    t.equal((await get(`${shop.url}/file`, headers)).status, 402)
    t.equal(shop.purse.of('127.0.0.1'), 0)
  })

  t.test('a chain whose clock is ahead of ours refuses, and no money moves', async (t) => {
    const early = await chain.account({ units: 1000n })
    const now = Math.floor(Date.now() / 1000)
    const headers = await payment(early, 2, { to: payee, validBefore: now + 30 })
    await chain.hurry(120)
    t.equal((await get(`${shop.url}/file`, headers)).status, 402)
    t.equal(await chain.balance(early.address), 1000n)
  })

  t.test(
    'what the facilitator has forgotten is seen on chain, where the cashier may look there',
    async (t) => {
      const wallet = payee.toLowerCase()
      const witness = new ChainWitness(
        { url: chain.url, usdc: chain.usdc, wallet, limitMs: 60_000, confirmations: 1 },
        systemClock,
      )
      t.teardown(() => witness.close())
      const claims = {
        commonName: async () => 'house',
        claim: none,
        clear: none,
        look: async () => ({ state: 'left' as const }),
      }
      const careful = await openShop(t, { facilitatorUrl: facilitator.url, wallet: payee, witness, claims })
      const buyer = await chain.account({ units: 5000n })
      const before = await chain.balance(payee)
      // The money moves, the answer is lost, and the next attempt meets a used nonce.
      facilitator.after = async (call, path) => {
        if (path !== 'settle') return false
        facilitator.after = undefined
        call.response.destroy()
        return true
      }
      const got = await get(`${careful.url}/file`, await payment(buyer, 2, { to: payee }))
      t.equal(got.status, 200, 'served once it was seen')
      t.equal((await chain.balance(payee)) - before, 1000n)
      t.equal(careful.purse.payments.size, 1)
      // Somebody else submits it first: we are paid, and so the payer is served.
      const headers = await payment(buyer, 1, { to: payee })
      t.equal((await get(`${shop.url}/file`, headers)).status, 200)
      careful.purse.tokens.clear()
      const other = await get(`${careful.url}/file`, headers)
      t.equal(other.status, 200)
      t.match(unpacked(other.headers.get('x-payment-response')), {
        success: true,
        transaction: /^0x[0-9a-f]{64}$/,
      })
      t.equal((await chain.balance(payee)) - before, 2000n)
      const { transaction } = unpacked(other.headers.get('x-payment-response')) as { transaction: string }
      const { nonce = '' } = authorizationOf(headers)
      const facts = { payment: `84532:${buyer.address}:${nonce}`, payer: buyer.address, units: '1000' }
      t.equal(await witness.paidBy(facts, transaction), 'yes')
      t.equal(await witness.paidBy({ ...facts, units: '1001' }, transaction), 'no')
      t.equal(await witness.paidBy(facts, `0x${'12'.repeat(32)}`), 'no', 'the chain does not know it')
      // A payment that never happened is not seen.
      careful.purse.tokens.clear()
      shop.purse.tokens.clear()
      const poor = await chain.account({ units: 5n })
      t.match(
        await get(`${careful.url}/20000000`, await payment(poor, 1, { to: payee, value: '2000' })),
        { status: 503, error: 'settlement_pending' },
        'who has requested it may settle it still',
      )
      const ask = {
        payment: `84532:${buyer.address}:0x${'00'.repeat(32)}`,
        payer: buyer.address,
        units: '1000',
        validBefore: Math.floor(Date.now() / 1000) + 3600,
      }
      t.equal(await witness.moved(ask), 'no')
      const gone = new ChainWitness(
        { url: 'http://127.0.0.1:9', usdc: chain.usdc, wallet, limitMs: 500, confirmations: 1 },
        systemClock,
      )
      t.teardown(() => gone.close())
      t.equal(await gone.moved(ask), 'unknown')
      t.equal(await gone.paidBy(ask, transaction), 'unknown')
    },
  )

  t.test('one transfer on chain never counts for two payments', async (t) => {
    const witness = new ChainWitness(
      { url: chain.url, usdc: chain.usdc, wallet: payee.toLowerCase(), limitMs: 60_000, confirmations: 1 },
      systemClock,
    )
    t.teardown(() => witness.close())
    const claims = {
      commonName: async () => 'house',
      claim: none,
      clear: none,
      look: async () => ({ state: 'left' as const }),
    }
    const careful = await openShop(t, { facilitatorUrl: facilitator.url, wallet: payee, witness, claims })
    const alone = await openShop(t, { facilitatorUrl: facilitator.url, wallet: payee, witness })
    const [cheat, friend] = [await chain.account({ units: 5000n, ether }), await chain.account()]
    // Both nonces are used in one transaction, but only the second pays us: the first was signed twice.
    const shown = await payment(cheat, 1, { to: payee })
    const honest = await payment(cheat, 1, { to: payee })
    const { nonce = '' } = authorizationOf(shown)
    const spentElsewhere = await payment(cheat, 1, { to: friend.address, nonce: nonce as Hex })
    const before = await chain.balance(payee)
    await chain.together(cheat, 'transferWithAuthorization', [spentElsewhere, honest].map(callOf))
    t.equal((await chain.balance(payee)) - before, 1000n)
    t.equal((await get(`${careful.url}/file`, shown)).status, 402, 'it paid somebody else')
    t.equal((await get(`${careful.url}/file`, honest)).status, 200)
    t.equal(careful.purse.payments.size, 1)
    const unshared = await get(`${alone.url}/file`, honest)
    t.equal(unshared.status, 402, 'a gateway with buckets of its own cannot know whose it filled')
  })

  t.test('a payer without money is refused', async (t) => {
    const poor = await chain.account({ units: 5n })
    t.equal((await get(`${shop.url}/file`, await payment(poor, 1, { to: payee }))).status, 402)
  })
})
