import t, { type Test } from 'tap'
import { refuse } from '../../src/format/refusal.js'
import { approvalFaults } from '../../src/payment/books/approval-faults.js'
import type { CardEvent, CardProvider } from '../../src/payment/cards/card-provider.js'
import type { SeenPayment } from '../../src/payment/chains/seen-payment.js'
import { makeServiceToken } from '../../src/payment/requests/service-token.js'
import { normalizedAddress } from '../../src/proof/owner-address.js'
import { type PaymentRig, paymentRig, secret } from './rig.js'
import { testWallets } from './wallet-keys.js'

const start = Date.UTC(2026, 0, 1)
const wallets = testWallets()
const ethereum = wallets.find(({ name }) => name === 'Ethereum')
const arweave = wallets.find(({ signatureType }) => signatureType === 1)
if (ethereum === undefined || arweave === undefined) throw new Error('wallets are missing')
const seen = ethereum.headers('any')
/** The address that the key has as well: what clients use that know no Ethereum. */
const alias = normalizedAddress(Buffer.from(seen['x-public-key'] ?? '', 'base64url'))
const tenUsd = '1225600000000'

/** Cards whose events are what is posted. */
function postedCards(refunds: string[]): CardProvider {
  let sessions = 0
  return {
    name: 'stripe',
    open: async ({ quoteId }) => {
      sessions += 1
      return { id: `s${sessions}`, url: quoteId, client_secret: null }
    },
    read: async (body) => JSON.parse(Buffer.from(body).toString()) as CardEvent,
    since: async () => ({ entries: [] }),
    taken: async () => ({ entries: [] }),
    find: async () => undefined,
    refund: async (payment) => {
      refunds.push(payment)
      return true
    },
  }
}

async function quoteFor(rig: PaymentRig, address: string, query = ''): Promise<string> {
  const { json } = await rig.get(`/v1/top-up/checkout-session/${address}/usd/1000?${query}`)
  return (json as { topUpQuote: { topUpQuoteId: string } }).topUpQuote.topUpQuoteId
}

function tell(rig: PaymentRig, event: CardEvent): ReturnType<PaymentRig['post']> {
  return rig.post('/v1/stripe-webhook', JSON.stringify(event))
}

function paid(quoteId: string, payment: string, amount = 1000): CardEvent {
  return { kind: 'paid', quoteId, payment, amount, currency: 'usd' }
}

async function wincOf(rig: PaymentRig, address: string): Promise<unknown> {
  const { json } = await rig.get(`/v1/account/balance/arweave?address=${address}`)
  return (json as { winc?: string } | undefined)?.winc
}

async function sound(t: Test, { ledger }: PaymentRig): Promise<void> {
  t.strictSame((await ledger.check(approvalFaults)).faults, [])
}

t.test('credits that a key has taken over from its alias are taken back from the key', async (t) => {
  const rig = await paymentRig(t, { cards: () => postedCards([]) })
  await tell(rig, paid(await quoteFor(rig, alias), 'p1'))
  t.equal((await rig.get('/v1/balance', seen)).status, 200)
  t.equal(await wincOf(rig, ethereum.address), tenUsd)
  await tell(rig, { kind: 'disputed', quoteId: '', payment: 'p1', reason: 'fraudulent' })
  t.equal(await wincOf(rig, ethereum.address), '0')
  const { json } = await rig.get('/v1/account/payments', seen)
  t.match(
    json,
    { payments: [{ type: 'fiat', wincCredited: tenUsd }], hasMore: false },
    'and the history is one',
  )
  await sound(t, rig)
})

t.test('what was promised to an alias goes to the key that was seen meanwhile', async (t) => {
  const rig = await paymentRig(t, { cards: () => postedCards([]) })
  await tell(rig, paid(await quoteFor(rig, alias), 'p1'))
  const second = await quoteFor(rig, alias)
  await rig.get('/v1/balance', seen)
  await tell(rig, paid(second, 'p2'))
  t.equal(await wincOf(rig, ethereum.address), String(2n * BigInt(tenUsd)))
  const first = (await rig.get('/v1/account/payments?limit=1', seen)).json as { cursor: string }
  const rest = await rig.get(`/v1/account/payments?limit=1&cursor=${first.cursor}`, seen)
  t.match(
    [first, rest.json],
    [
      { payments: [{}], hasMore: true },
      { payments: [{}], hasMore: false },
    ],
  )
  await sound(t, rig)
})

t.test('a payment on a chain that is lost again is taken back from the key, too', async (t) => {
  let isThere = true
  const find = async (): Promise<SeenPayment | 'absent'> =>
    isThere
      ? {
          id: 'T',
          quantity: 1000n,
          sender: 'nobody',
          recipient: 'us',
          beneficiary: alias,
          isFinal: true,
          isBeyondWatching: false,
        }
      : 'absent'
  const reader = { chain: 'arweave', tokens: ['arweave'] as const, find, close: async () => undefined }
  const rig = await paymentRig(t, { readers: [reader], addresses: { arweave: 'us' } })
  const submit = () => rig.post('/v1/account/balance/arweave', '{"tx_id":"T"}')
  t.match(await submit(), { status: 200, json: { creditedTransaction: { winstonCreditAmount: '766' } } })
  await rig.get('/v1/balance', seen)
  t.equal(await wincOf(rig, ethereum.address), '766')
  isThere = false
  t.match(await submit(), { status: 202 })
  t.equal(await wincOf(rig, ethereum.address), '0')
  isThere = true
  t.match(await submit(), { status: 200 })
  t.equal(await wincOf(rig, ethereum.address), '766')
  await sound(t, rig)
})

t.test('an approval for an alias is of the key, and can be taken back', async (t) => {
  const rig = await paymentRig(t, { cards: () => postedCards([]) })
  await tell(rig, paid(await quoteFor(rig, arweave.address), 'p1'))
  const bearer = { authorization: `Bearer ${await makeServiceToken(secret, start)}` }
  const pair = `payingAddress=${arweave.address}&approvedAddress=${alias}`
  const ask = (path: string) => rig.get(path, bearer)
  t.equal((await ask(`/v1/account/approvals/create?dataItemId=a1&winc=100000000000&${pair}`)).status, 200)
  await rig.get('/v1/balance', seen)
  t.match((await rig.get(`/v1/account/balance?address=${ethereum.address}`)).json, {
    effectiveBalance: '100000000000',
    receivedApprovals: [{ approvalDataItemId: 'a1' }],
  })
  const spend = `byteCount=1000&dataItemId=i1&paidBy=${arweave.address}`
  t.equal((await ask(`/v1/reserve-balance/ethereum/${ethereum.address}?${spend}`)).status, 200)
  const own = `payingAddress=${arweave.address}&approvedAddress=${ethereum.address}`
  t.match(await ask(`/v1/account/approvals/revoke?dataItemId=r1&${own}`), {
    status: 200,
    json: [{ approvalDataItemId: 'a1', inactiveReason: 'revoked' }],
  })
  await sound(t, rig)
})

t.test('a payment that was taken back before it was told of is never credited', async (t) => {
  const rig = await paymentRig(t, { cards: () => postedCards([]) })
  const quote = await quoteFor(rig, arweave.address)
  const dispute: CardEvent = { kind: 'disputed', quoteId: '', payment: 'p1', reason: 'fraudulent' }
  for (const event of [dispute, dispute, paid(quote, 'p1'), paid(quote, 'p1'), dispute])
    t.equal((await tell(rig, event)).status, 200)
  t.equal(await wincOf(rig, arweave.address), undefined)
  await sound(t, rig)
})

t.test(
  'a promotion is used no more often than it may be, however many payments were promised it',
  async (t) => {
    const refunds: string[] = []
    const rig = await paymentRig(t, { cards: () => postedCards(refunds) })
    const common = { permille: 500, expiresMs: start + 3600_000, leastMicroUsd: 0, mostMicroUsd: 10_000_000 }
    await rig.service.promotions.declare({ code: 'ONCE', ...common, usesMax: 1, isForNew: false })
    await rig.service.promotions.declare({ code: 'NEW', ...common, usesMax: 0, isForNew: true })
    for (const [code, address] of [
      ['ONCE', arweave.address],
      ['NEW', ethereum.address],
    ] as const) {
      const quotes: string[] = []
      for (let at = 0; at < 4; at += 1) quotes.push(await quoteFor(rig, address, `promoCode=${code}`))
      await Promise.all(quotes.map((quote, at) => tell(rig, paid(quote, `${code}${at}`, 500))))
      t.equal(await wincOf(rig, address), tenUsd, `${code} counts once`)
      t.equal(refunds.splice(0).length, 3, 'and the others have their money back')
    }
    await sound(t, rig)
  },
)

t.test('addresses, numbers and words of every wrong shape are answered, not stumbled over', async (t) => {
  const rig = await paymentRig(t)
  const bearer = { authorization: `Bearer ${await makeServiceToken(secret, start)}` }
  const spend = `/v1/reserve-balance/arweave/${arweave.address}?byteCount=9&dataItemId=i`
  for (const odd of [
    'a'.repeat(6000),
    '%00',
    `${arweave.address}%00`,
    '%E2%80%99'.repeat(700),
    'a|b',
    '%ff',
  ]) {
    const statuses = [
      await rig.get(`/v1/account/balance?address=${odd}`),
      await rig.get(`/v1/account/approvals/get?userAddress=${odd}`),
      await rig.get(`/v1/redeem?email=a@b.co&destinationAddress=${arweave.address}&id=${odd}`),
      await rig.get(`/checkout/${odd}`),
      await rig.get(`${spend}&paidBy=${odd}`, bearer),
    ].map(({ status }) => status)
    t.strictSame(statuses, [404, 200, 400, 404, 402], odd.slice(0, 20))
  }
})

t.test('of what was missed, one event that fails does not keep the others from being heard', async (t) => {
  const missed: CardEvent[] = []
  const cards: CardProvider = {
    ...postedCards([]),
    since: async () => ({ entries: missed }),
    refund: async () => refuse('upstream', 'upstream', 'no answer'),
  }
  const rig = await paymentRig(t, { cards: () => cards })
  missed.push(paid(await quoteFor(rig, arweave.address), 'p1', 999))
  missed.push(paid(await quoteFor(rig, arweave.address), 'p2'))
  await rig.service.catchUp(0)
  await rig.service.catchUp(0)
  t.equal(await wincOf(rig, arweave.address), tenUsd)
})

t.test('an approval that would end behind the end of time is refused', async (t) => {
  const rig = await paymentRig(t, { cards: () => postedCards([]) })
  await tell(rig, paid(await quoteFor(rig, arweave.address), 'p1'))
  const pair = { payingAddress: arweave.address, approvedAddress: ethereum.address, winc: '1' }
  for (const expiresInSeconds of [8.64e12, Number.MAX_SAFE_INTEGER])
    t.match(await rig.service.credits.approve({ itemId: 'a1', ...pair, expiresInSeconds }), {
      denied: true,
      status: 400,
    })
  t.equal(await wincOf(rig, arweave.address), tenUsd)
})
