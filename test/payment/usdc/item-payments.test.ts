/**
 * Any order of all that can happen to the money of an item: payments in USDC by its uploader and by strangers, of true and of
 * false sizes, credits that are held back, withdrawn and spent, uploads in parts, kills in between. For every item that a
 * service accepts its price is in the revenue, and no credit is made or lost. A seed repeats it.
 */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import { availableOf, balanceOf } from '../../../src/ledger/ledger-account.js'
import type { MoneyLedger } from '../../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../../src/ledger/postgres.js'
import { Accounts } from '../../../src/payment/books/accounts.js'
import { approvalFaults } from '../../../src/payment/books/approval-faults.js'
import { Approvals } from '../../../src/payment/books/approvals.js'
import { LedgerCredits } from '../../../src/payment/books/credits.js'
import { partId } from '../../../src/payment/books/reservation.js'
import { Reservations } from '../../../src/payment/books/reservations.js'
import { Wallets } from '../../../src/payment/books/wallets.js'
import type { UsdcAnswer, UsdcPaid } from '../../../src/payment/credits-port.js'
import { X402Sales } from '../../../src/payment/usdc/x402-sales.js'
import { postgresFolder, startPostgres } from '../../engines/postgres-server.js'
import { below, pick } from '../../property.js'
import { type Brought, countingDesk, paymentOf } from './counting-desk.js'

const rounds = Number(process.env.MODEL_ROUNDS ?? 60)
const wallets = [1, 2, 3].map((at) => Buffer.alloc(32, at).toString('base64url'))
const given = 1_000_000n

/** A payment service: one unit of USDC is one winc. */
interface Shop {
  readonly ledger: MoneyLedger
  readonly credits: LedgerCredits
  readonly sales: X402Sales
}

const priceOf = (bytes: number): bigint => 100n + BigInt(bytes)

function shopOf(ledger: MoneyLedger, onMissing: (item: string) => void): Shop {
  const books = { ledger, wallets: new Wallets(ledger) }
  const approvals = new Approvals(ledger, books.wallets, systemClock.now, systemClock.now)
  const price = async (bytes: number): Promise<bigint> => priceOf(bytes)
  const reservations = new Reservations({ ...books, approvals, onMissing })
  const credits = new LedgerCredits({ ...books, approvals, price, reservations })
  const sales: X402Sales = countingDesk((desk) => {
    const quotes = {
      ofToken: async (_: string, units: bigint) => ({ winc: String(units), usdEquivalent: '' }),
    }
    const parts = { ledger, reservations, clock: systemClock, prices: { ofItem: price }, quotes }
    return new X402Sales({ ...parts, owned: { own: async () => ({ owner: '' }) } } as never, desk)
  }, priceOf)
  return { ledger, credits, sales }
}

interface World {
  readonly shop: () => Shop
  /** Accepted items, with what each is to cost at least. */
  readonly accepted: Map<string, bigint>
  /** Of strangers and uploaders: anybody may bring one again. */
  readonly payments: { readonly brought: Brought; readonly itemId: string }[]
}

interface Item {
  readonly id: string
  readonly bytes: number
}

type Steps = AsyncGenerator<undefined, void>

let names = 0
const newName = (): string => {
  names += 1
  return `n${names}`
}

/** A request of an upload service: it holds credits back, and accepts the item, or refuses it or is killed. */
async function* byCredits({ shop, accepted }: World, { id, bytes }: Item): Steps {
  const ticket = newName()
  const [address, paidBy] = [pick(wallets), [pick(wallets)]]
  const order = { itemId: id, bytes, address, signatureType: 1, paidBy, ticket }
  const isLost = below(4) === 0
  const reserving = shop().credits.reserve(order)
  if (isLost) {
    await Promise.all([reserving, shop().credits.withdraw(order)])
    return
  }
  const reserved = await reserving
  yield
  if (isRefusal(reserved) || (reserved.paid && below(2) === 0)) {
    await shop().credits.withdraw(order)
    return
  }
  if (!reserved.paid) return
  accepted.set(id, priceOf(bytes))
  yield
  await shop().credits.settle(id)
}

const isPaid = (answer: UsdcPaid | UsdcAnswer): answer is UsdcPaid => 'paid' in answer

/** The item is stored, then paid for, then accepted; a kill in between is made good by asking what became of the payment. */
async function* byUsdc(world: World, { id, bytes }: Item): Steps {
  const { shop, accepted, payments } = world
  const known = below(4) === 0 ? payments : payments.filter(({ itemId }) => itemId === id)
  const isAgain = known.length > 0 && below(2) === 0
  const brought = isAgain ? pick(known).brought : paymentOf(priceOf(bytes) + BigInt(below(3)))
  const order = { ...brought.order, itemId: id, bytes }
  if (!isAgain) payments.push({ brought, itemId: id })
  const paid = await shop().sales.pay(order)
  if (isRefusal(paid)) throw new Error(paid.message)
  const isKilled = below(3) === 0
  yield
  const outcome = isKilled
    ? await shop().sales.outcome({ payment: brought.payment, itemId: id, bytes })
    : isPaid(paid) && paid
  if (outcome === false || !outcome.paid) return
  // What it was told is what it goes by, however long it takes to write that down.
  yield
  accepted.set(id, priceOf(bytes))
  await shop().credits.settle(id)
}

/** Anybody may pay for any item, of any stated size. */
async function* byStranger({ shop, payments }: World, { id, bytes }: Item): Steps {
  const stated = Math.max(1, Math.floor(bytes * pick([0, 0.5, 0.94, 0.96, 1, 1, 1.04, 3])))
  const brought = paymentOf(priceOf(stated) * BigInt(pick([1, 1, 2])))
  payments.push({ brought, itemId: id })
  const more = below(2) === 0 ? { address: pick(wallets) } : { keepsRest: true as const }
  for (let times = 0; times < 2; times += 1) {
    await shop().sales.settle({ ...brought.order, ...more, itemId: id, bytes: stated })
    yield
  }
}

/** An upload in parts, paid for at its beginning. What is sent is not more than was announced. */
async function* inParts({ shop, accepted }: World, { id, bytes }: Item): Steps {
  const { order } = paymentOf(priceOf(bytes))
  const paid = await shop().sales.pay({ ...order, itemId: id, bytes })
  yield
  if (isRefusal(paid) || !isPaid(paid))
    throw new Error('an upload of its own name is paid for by its payment')
  const isUsed = below(3) > 0
  const actual = Math.ceil(bytes * pick([0.3, 0.97, 1]))
  // A share of a payment for more bytes has less of the price of an item.
  if (isUsed) accepted.set(id, BigInt(actual))
  for (let times = 0; times < 2; times += 1) {
    const ended = isUsed
      ? await shop().sales.finish({ itemId: id, bytes: actual })
      : await shop().credits.refund(id)
    if (isRefusal(ended)) throw new Error(ended.message)
    yield
  }
}

/** Goes on with any of them, some at once, until all are over. */
async function interleaved(all: Steps[]): Promise<void> {
  let left = all
  while (left.length > 0) {
    const chosen = new Set(Array.from({ length: 1 + below(3) }, () => pick(left)))
    const ended = new Set<Steps>()
    await Promise.all(
      [...chosen].map(async (steps) => {
        if ((await steps.next()).done === true) ended.add(steps)
      }),
    )
    left = left.filter((steps) => !ended.has(steps))
  }
}

/** What of an item is in the revenue, by all attempts to pay for it. */
async function revenueOf({ ledger }: Shop, id: string): Promise<bigint> {
  const sum = async (attempt: number, part: number): Promise<bigint> => {
    const [spent, back] = await Promise.all([
      ledger.transfer(partId('settle', id, attempt, part)),
      ledger.transfer(partId('refund', id, attempt, part)),
    ])
    return (spent?.amount ?? 0n) - (back?.debit === 'revenue' ? back.amount : 0n)
  }
  let all = 0n
  for (let attempt = 0; attempt < 20; attempt += 1)
    for (let part = 0; part < 4; part += 1) all += await sum(attempt, part)
  return all
}

async function compare(t: Test, world: World, items: readonly Item[]): Promise<void> {
  const shop = world.shop()
  const { ledger } = shop
  let whole = 0n
  for (const { id } of items) {
    const [least, took] = [world.accepted.get(id), await revenueOf(shop, id)]
    whole += took
    // Sizes are compared to five percent (`isBeyond`).
    if (least !== undefined) t.ok(took * 105n >= least * 100n, `${id} has paid ${took} of ${least}`)
    else t.equal(took, 0n, `${id} was not accepted, and has paid nothing`)
  }
  t.strictSame((await ledger.check(approvalFaults)).faults, [])
  let [all, waiting] = [0n, 0n]
  for (const account of await ledger.accounts('', '', 1_000_000)) {
    all += balanceOf(account)
    if (/^(wallet|approval):/.test(account.name))
      t.equal(account.debitsPending, 0n, `nothing is held back of ${account.name}`)
    if (account.name.startsWith('x402:')) {
      waiting += balanceOf(account)
      t.equal(availableOf(account), 0n, 'all of a payment is held back, spent, or in a wallet')
    }
  }
  t.equal(all, 0n)
  const revenue = await ledger.account('revenue')
  t.equal(revenue?.creditsPending ?? 0n, waiting, 'what waits for its item is a payment')
  t.equal(revenue === undefined ? 0n : balanceOf(revenue), whole)
}

async function property(t: Test, open: () => Promise<MoneyLedger>, services: number, rounds: number) {
  const missing: string[] = []
  const shops = await Promise.all(
    Array.from({ length: services }, async () => shopOf(await open(), (item) => missing.push(item))),
  )
  const [first] = shops as [Shop]
  const books = { ledger: first.ledger, wallets: new Wallets(first.ledger) }
  const approvals = new Approvals(first.ledger, books.wallets, systemClock.now, systemClock.now)
  const accounts = new Accounts(first.ledger, books.wallets, approvals, systemClock.now)
  const facts = { winc: given, source: 'source:t', reason: 'payment', reference: 'r', about: {} }
  for (const address of wallets) await accounts.credit({ id: `give:${address}`, address, ...facts })
  for (const [at, payingAddress] of wallets.entries()) {
    const approvedAddress = pick(wallets.filter((one) => one !== payingAddress))
    await approvals.create({ itemId: `a${at}`, payingAddress, approvedAddress, winc: '700' })
  }
  const world: World = { shop: () => pick(shops), accepted: new Map(), payments: [] }
  const items: Item[] = []
  for (let round = 0; round < rounds; round += 1) {
    const [item, parts] = [1, 2].map(() => ({ id: `i-${newName()}`, bytes: 300 + below(1000) })) as [
      Item,
      Item,
    ]
    items.push(item, parts)
    const kinds = [byCredits, byCredits, byUsdc, byUsdc, byStranger, byStranger]
    const actors = Array.from({ length: 1 + below(5) }, () => pick(kinds)(world, item))
    const strangers = Array.from({ length: below(2) }, () => byStranger(world, parts))
    await interleaved([...actors, inParts(world, parts), ...strangers])
  }
  await compare(t, world, items)
  t.strictSame(missing, [], 'what is settled is held back')
  await Promise.all(shops.map(({ ledger }) => ledger.close()))
}

t.test('on LMDB', async (t) => {
  const path = join(t.testdir(), 'ledger')
  await property(t, async () => new EmbeddedLedger({ path, clock: systemClock }), 1, rounds)
})

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false

t.test('on PostgreSQL, by two services on one database', { skip }, async (t) => {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  const url = await server.database('items')
  await property(t, () => PostgresLedger.open({ url, clock: systemClock }), 2, Math.ceil(rounds / 3))
})
