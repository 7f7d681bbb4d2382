/**
 * What one request costs when strangers have stored very much: each public route of the payment service, for a wallet
 * that all of them have given something to, costs what it costs without them. Rows of the ledger and of
 * the list of names are counted. CROWD=50000 asks for more, and measures processor time, too.
 */
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { isRefusal } from '../../src/format/refusal.js'
import type { Operation } from '../../src/http/operation.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import type { CommitOrder, MoneyLedger, RecordChange } from '../../src/ledger/ledger-port.js'
import { isNoSale } from '../../src/names/lease.js'
import { LeaseRegistry } from '../../src/names/lease-registry.js'
import { historyRecord } from '../../src/payment/books/accounts.js'
import { type Approval, approvalKind, leftChanged } from '../../src/payment/books/approval-index.js'
import { accountOf } from '../../src/payment/books/wallets.js'
import { LocalNameRegistry } from '../../src/payment/names/name-registry.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { scratch } from '../scratch.js'
import { someId } from '../source/rig.js'
import { type CountedReads, countedReads } from '../upload/counted-reads.js'
import { paymentRig } from './rig.js'
import { type TestWallet, testWallets } from './wallet-keys.js'

const crowd = Number(process.env.CROWD ?? 300)
/** A page of everything is the wallet's own. */
const ownPage = 100
const now = Date.UTC(2026, 0, 1)
const [wallet] = testWallets() as [TestWallet]
const victim = wallet.address
const stranger = (at: number): string => {
  const bytes = Buffer.alloc(32, 1)
  bytes.writeUInt32BE(at)
  return bytes.toString('base64url')
}

/** Counts questions to a ledger and rows that come back. */
function counting(ledger: MoneyLedger): { readonly ledger: MoneyLedger; readonly cost: () => number } {
  let cost = 0
  const counted = new Proxy(ledger, {
    get(of, name: keyof MoneyLedger) {
      const method = (of[name] as (...given: unknown[]) => Promise<unknown>).bind(of)
      return async (...given: unknown[]) => {
        const answer = await method(...given)
        cost += 1 + (Array.isArray(answer) ? answer.flat().length : 0)
        return answer
      }
    },
  })
  return {
    ledger: counted,
    cost: () => {
      const was = cost
      cost = 0
      return was
    },
  }
}

const moved = (
  id: string,
  debit: string,
  credit: string,
  amount: bigint,
): CommitOrder['transfers'][number] => ({
  id,
  kind: 'posted',
  debit,
  credit,
  amount,
  reason: 'payment',
  reference: id,
  about: { type: 'crypto', tokenType: 'arweave' },
})

/** One more of everything that strangers can store, for or about the victim. */
function storedBy(at: number): CommitOrder {
  const id = `s${at}`
  const payer = stranger(at)
  const common = { winc: '1', createdMs: now + at, expiresMs: 0 }
  const received: Approval = { ...common, id: `r${at}`, payer, approved: victim }
  const pair: Approval = { ...common, id: `p${at}`, payer: stranger(0), approved: victim }
  const given: Approval = { ...common, id: `g${at}`, payer: victim, approved: payer }
  const approvals = [received, pair, given]
  const purchase = {
    nonce: id,
    state: 'success',
    owner: victim,
    payer: { address: payer, signatureType: 1, paidBy: [] },
    deed: { action: 'buy', wish: { intent: 'buy-name', name: `n${at}` } },
    winc: '1',
    mario: '1',
    usdAr: 1,
    usdArio: 1,
    createdMs: now,
    done: { messageId: 'm', antId: `ant-${at}` },
  }
  const records: RecordChange[] = [
    ...approvals.flatMap((one) => [
      { kind: approvalKind, key: one.id, value: JSON.stringify(one) },
      ...leftChanged(one, 1n),
    ]),
    historyRecord(victim, now + at, `pay:${id}`),
    { kind: 'promo-use', key: `EVERYBODY|${id}`, value: '1' },
    { kind: 'promo-used', key: 'EVERYBODY', value: undefined, added: 1n },
    { kind: 'name-purchase', key: id, value: JSON.stringify(purchase) },
    { kind: 'gift', key: id, value: JSON.stringify({ id, email: 'a@b.co', winc: '1', state: 'open' }) },
    { kind: 'card-quote', key: id, value: '{}' },
    { kind: 'card-session', key: id, value: '{}' },
    { kind: 'topup', key: `arweave:${id}`, value: JSON.stringify({ state: 'pending', id }) },
    { kind: 'topup-watched', key: `arweave:${id}`, value: '1' },
  ]
  const transfers = [
    moved(`pay:${id}`, 'source:test', accountOf(victim), 10n),
    moved(`wallet:${id}`, 'source:test', accountOf(payer), 10n),
    ...approvals.map((one) => moved(`approval:${one.id}`, accountOf(one.payer), `approval:${one.id}`, 1n)),
  ]
  return { transfers, records }
}

async function store(ledger: MoneyLedger, from: number, to: number): Promise<void> {
  if (from === 0)
    await ledger.commit({ transfers: [moved('start', 'source:test', accountOf(stranger(0)), 10n ** 9n)] })
  for (let at = from; at < to; at += 500) {
    const orders = Array.from({ length: Math.min(500, to - at) }, (_, next) => storedBy(at + next))
    for (const outcome of await Promise.all(orders.map((order) => ledger.commit(order))))
      if ('rejected' in outcome) throw new Error(JSON.stringify(outcome))
  }
}

/** Names of the victim, and as many undernames of the first of them. */
async function sold(names: LeaseRegistry, from: number, to: number): Promise<void> {
  const wishes = Array.from({ length: to - from }, (_, next) => `n${from + next}`)
  const buy = { intent: 'buy-name', type: 'lease', years: 1 } as const
  const outcomes = await Promise.all(
    wishes.map((name) => names.sell(`buy-${name}`, victim, { ...buy, name })),
  )
  const [first] = outcomes
  if (from === 0) {
    const more = { intent: 'increase-undername-limit', name: 'n0', increaseQty: 9000 } as const
    await names.sell('more', victim, more)
  }
  const lease = names.find('n0')
  if (first === undefined || isNoSale(first) || lease === undefined) throw new Error('nothing is sold')
  for (const name of wishes) {
    const record = { antId: lease.antId, undername: name, target: someId(), ttlSeconds: 60 }
    const done = await names.change(`set-${name}`, victim, 'set-record', record)
    if (isNoSale(done)) throw new Error(done.noSale)
  }
}

type PublicRequest = readonly [
  method: 'GET' | 'POST',
  path: string,
  body?: string | undefined,
  headers?: Record<string, string>,
]

const uuid = '0123456789abcdef0123456789abcdef'
const signed = (): Record<string, string> => wallet.headers(uuid)
const balance = `?address=${victim}`

/** A request for each public path. One that is missing here fails the test. */
const publicRequests = (antId: string): Readonly<Record<string, PublicRequest>> => ({
  'GET /': ['GET', '/'],
  'GET /v1': ['GET', '/v1'],
  'GET /health': ['GET', '/health'],
  'GET /credits': ['GET', '/credits'],
  'GET /v1/balance': ['GET', `/v1/balance${balance}`],
  'GET /v1/account/balance': ['GET', `/v1/account/balance${balance}`],
  'GET /v1/account/balance/{token}': ['GET', `/v1/account/balance/arweave${balance}`],
  'GET /account/balance': ['GET', `/account/balance${balance}`],
  'GET /account/balance/{token}': ['GET', `/account/balance/arweave${balance}`],
  'GET /v1/account/free': ['GET', `/v1/account/free${balance}`],
  'GET /v1/account/payments': ['GET', '/v1/account/payments?limit=100', undefined, signed()],
  'GET /v1/account/approvals': [
    'GET',
    `/v1/account/approvals?payingAddress=${stranger(0)}&approvedAddress=${victim}`,
  ],
  'GET /v1/account/approvals/get': ['GET', `/v1/account/approvals/get?userAddress=${victim}`],
  'POST /v1/account/balance/{token}': ['POST', '/v1/account/balance/arweave', '{"tx_id":"unknown"}'],
  'POST /account/balance/{token}': ['POST', '/account/balance/arweave', '{"tx_id":"unknown"}'],
  'GET /v1/top-up/{method}/{address}/{currency}/{amount}': [
    'GET',
    `/v1/top-up/checkout-session/${victim}/usd/1000?promoCode=EVERYBODY`,
  ],
  'GET /v1/price/{currency}/{amount}': [
    'GET',
    `/v1/price/usd/1000?promoCode=EVERYBODY&destinationAddress=${victim}`,
  ],
  'GET /v1/redeem': ['GET', `/v1/redeem?email=a@b.co&id=none&destinationAddress=${victim}`],
  'GET /gift': ['GET', '/gift?id=s1&email=a@b.co'],
  'GET /checkout/{session}': ['GET', '/checkout/none'],
  'POST /checkout/{session}': ['POST', '/checkout/none', 'card=4242424242424242'],
  'POST /v1/stripe-webhook': ['POST', '/v1/stripe-webhook', '{}'],
  'GET /v1/arns/price/{intent}/{name}': ['GET', '/v1/arns/price/buy-name/another?type=permabuy'],
  'GET /v1/arns/quote/{method}/{address}/{currency}/{intent}/{name}': [
    'GET',
    `/v1/arns/quote/checkout-session/${victim}/usd/buy-name/another?type=lease&years=1`,
  ],
  'POST /v1/arns/purchase/{intent}/{name}': ['POST', '/v1/arns/purchase/buy-name/another?type=permabuy', ''],
  'GET /v1/arns/purchase/{nonce}': ['GET', '/v1/arns/purchase/s1'],
  'GET /v1/arns/my-names/{address}': ['GET', `/v1/arns/my-names/${victim}`],
  'GET /v1/arns/actions/{action}/price': ['GET', '/v1/arns/actions/set-record/price'],
  'POST /v1/arns/actions/{action}': ['POST', '/v1/arns/actions/set-record', '{}'],
  'GET /v1/arns/actions/{nonce}': ['GET', '/v1/arns/actions/s1'],
  'POST /v1/arns/actions/{nonce}/sign': ['POST', '/v1/arns/actions/s1/sign', '{"transaction":"x"}'],
  'GET /v1/arns/held/{antId}': ['GET', `/v1/arns/held/${antId}`],
})

/** Prices and rates ask nothing that strangers store: their paths need no request of their own. */
const isPlain = (path: string): boolean =>
  /^\/(?:v1\/)?(?:price|rates|currencies|countries|info)\b/.test(path)

t.test(`each public route, with ${crowd} of everything that strangers store`, async (t) => {
  const folder = scratch('crowd')
  const paths = { list: join(folder, 'names'), leases: join(folder, 'leases') }
  const names = new LeaseRegistry(paths, () => now)
  t.teardown(() => names.close())
  const inner = new EmbeddedLedger({
    path: join(folder, 'ledger'),
    clock: { ...systemClock, now: () => now },
  })
  const { ledger, cost } = counting(inner)
  const counted: CountedReads[] = []
  const open: typeof openEnvironment = (...given) => {
    const one = countedReads(openEnvironment(...given))
    counted.push(one)
    return one.environment
  }
  const readOfNames = (): number => counted.reduce((sum, { reads }) => sum + reads, 0)
  const rig = await paymentRig(t, {
    ledger,
    names: new LocalNameRegistry(paths, () => now, open),
    addresses: { arweave: stranger(9) },
    readers: [
      { chain: 'arweave', tokens: ['arweave'], find: async () => 'absent', close: async () => undefined },
    ],
  })
  rig.setTime(now)
  const promotion = { permille: 500, expiresMs: now + 10 ** 9, leastMicroUsd: 0, mostMicroUsd: 10 ** 6 }
  await rig.service.promotions.declare({
    code: 'EVERYBODY',
    ...promotion,
    usesMax: 10 ** 6,
    isForNew: false,
  })

  const about: readonly Operation[] = rig.service.routes.flatMap((route) => route.about)
  const keys = about
    .filter(({ operator }) => operator !== true)
    .flatMap(({ path, methods = [] }) =>
      methods.filter((method) => method !== 'HEAD').map((method) => `${method} ${path}`),
    )
  await store(inner, 0, ownPage)
  await sold(names, 0, ownPage)
  const requests = publicRequests(names.find('n0')?.antId ?? '')
  const missing = keys.filter((key) => requests[key] === undefined && !isPlain(key.split(' ')[1] ?? ''))
  t.strictSame(missing, [], 'each path has a request here')

  const ask = ([method, path, body, headers]: PublicRequest) =>
    method === 'GET' ? rig.get(path, headers) : rig.post(path, body ?? '', headers)
  const cpuOf = async (one: PublicRequest): Promise<number> => {
    let least = Number.POSITIVE_INFINITY
    for (let round = 0; round < 3; round += 1) {
      const before = process.cpuUsage()
      for (let at = 0; at < 5; at += 1) await ask(one)
      const { user, system } = process.cpuUsage(before)
      least = Math.min(least, (user + system) / 5)
    }
    return least
  }
  const measured = async (): Promise<Map<string, { rows: number; cpuUs: number; status: number }>> => {
    const found = new Map<string, { rows: number; cpuUs: number; status: number }>()
    for (const [key, one] of Object.entries(requests)) {
      const { status } = await ask(one)
      let rows = Number.POSITIVE_INFINITY
      // What the service does by a timer may fall into one of them.
      for (let round = 0; round < 2; round += 1) {
        cost()
        const before = readOfNames()
        await ask(one)
        rows = Math.min(rows, cost() + readOfNames() - before)
      }
      const isTimed = process.env.CROWD !== undefined
      found.set(key, { rows, status, cpuUs: isTimed ? await cpuOf(one) : 0 })
    }
    return found
  }
  // Once for the compiler.
  await measured()
  const alone = await measured()
  await store(inner, ownPage, crowd)
  await sold(names, ownPage, Math.min(crowd, 5000))
  const crowded = await measured()
  for (const [key, { rows, cpuUs, status }] of alone) {
    const then = crowded.get(key)
    t.equal(then?.status, status, `${key} answers ${status}`)
    t.ok((then?.rows ?? 0) <= rows * 1.5, `${key}: ${rows} rows alone, ${then?.rows} in the crowd`)
    const most = cpuUs * 1.5 + 150
    t.ok(
      (then?.cpuUs ?? 0) <= most,
      `${key}: ${cpuUs | 0} us alone, ${(then?.cpuUs ?? 0) | 0} us in the crowd`,
    )
  }
  t.notOk(isRefusal(await rig.service.credits.price(1)))
  t.strictSame((await inner.check()).faults, [])
})
