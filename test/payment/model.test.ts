/** Any order of what four clients do, with restarts in between, against a model of some lines. A seed repeats it. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { isRefusal } from '../../src/format/refusal.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { availableOf, balanceOf } from '../../src/ledger/ledger-account.js'
import type { MoneyLedger } from '../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import { Accounts } from '../../src/payment/books/accounts.js'
import { approvalFaults } from '../../src/payment/books/approval-faults.js'
import { Approvals } from '../../src/payment/books/approvals.js'
import { LedgerCredits } from '../../src/payment/books/credits.js'
import { accountOf, Wallets } from '../../src/payment/books/wallets.js'
import { isDenied } from '../../src/payment/credits-port.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { below, pick } from '../property.js'

const addresses = [1, 2, 3, 4].map((at) => Buffer.alloc(32, at).toString('base64url'))

interface Rig {
  readonly ledger: MoneyLedger
  readonly accounts: Accounts
  readonly approvals: Approvals
  readonly credits: LedgerCredits
}

function rigOf(ledger: MoneyLedger, clock: Clock): Rig {
  const wallets = new Wallets(ledger)
  const approvals = new Approvals(ledger, wallets, clock.now, clock.now)
  const accounts = new Accounts(ledger, wallets, approvals, clock.now)
  return {
    ledger,
    accounts,
    approvals,
    credits: new LedgerCredits({ ledger, wallets, approvals, price: async (bytes) => BigInt(bytes) }),
  }
}

interface Model {
  given: bigint
  /** Item to what it has cost; undefined: given back. */
  readonly items: Map<string, bigint>
  readonly settled: Set<string>
}

const rounds = Number(process.env.MODEL_ROUNDS ?? 6)

t.test('four clients at once on LMDB: nothing is lost, nothing is made', async (t) => {
  const path = join(t.testdir(), 'ledger')
  await interleaved(t, rounds, async (clock) => new EmbeddedLedger({ path, clock }))
})

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false

t.test('the same on PostgreSQL, with two services on one database', { skip }, async (t) => {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  const url = await server.database('model')
  await interleaved(t, Math.ceil(rounds / 3), (clock) => PostgresLedger.open({ url, clock }), 2)
})

/** `services`: so many open the ledger at once, and clients ask one or the other. */
async function interleaved(
  t: Test,
  rounds: number,
  openLedger: (clock: Clock) => Promise<MoneyLedger>,
  services = 1,
): Promise<void> {
  let nowMs = 1_000_000
  // The time of the database's own connections goes on.
  const clock: Clock = { ...systemClock, now: () => nowMs }
  const model: Model = { given: 0n, items: new Map(), settled: new Set() }
  const open = (): Promise<Rig[]> =>
    Promise.all(Array.from({ length: services }, async () => rigOf(await openLedger(clock), clock)))
  let rigs = await open()
  let number = 0
  for (let round = 0; round < rounds; round += 1) {
    await Promise.all(
      addresses.map(async (own) => {
        for (let step = 0; step < 25; step += 1) {
          number += 1
          await act(pick(rigs), model, own, `${round}-${number}`)
        }
      }),
    )
    nowMs += below(40_000)
    for (const { approvals } of rigs) await approvals.expire()
    for (const rig of rigs) await compare(t, rig, model)
    if (below(2) === 0) {
      await Promise.all(rigs.map(({ ledger }) => ledger.close()))
      rigs = await open()
    }
  }
  await Promise.all(rigs.map(({ ledger }) => ledger.close()))
}

async function act({ accounts, credits }: Rig, model: Model, own: string, id: string): Promise<void> {
  // Each client speaks of its own items, one thing after the other, as an upload service does.
  const known = [...model.items.keys()].filter((one) => one.startsWith(own))
  const item = known.length > 0 && below(3) === 0 ? pick(known) : `${own}-${id}`
  switch (below(8)) {
    case 0: {
      const winc = BigInt(1 + below(500))
      const order = {
        id: `give:${id}`,
        address: own,
        winc,
        source: 'source:t',
        reason: 'payment',
        reference: id,
        about: {},
      }
      await accounts.credit(order)
      await accounts.credit(order)
      model.given += winc
      return
    }
    case 1: {
      const expires = below(2) === 0 ? {} : { expiresInSeconds: 1 + below(60) }
      const order = {
        itemId: `share-${id}`,
        payingAddress: own,
        approvedAddress: pick(addresses),
        winc: String(1 + below(200)),
      }
      await credits.approve({ ...order, ...expires })
      return
    }
    case 2: {
      const ended = await credits.revoke({
        itemId: `end-${id}`,
        payingAddress: own,
        approvedAddress: pick(addresses),
      })
      if (isRefusal(ended)) throw new Error(ended.message)
      if (!isDenied(ended) && ended.length === 0) throw new Error('nothing was revoked, and it was not said')
      return
    }
    case 3: {
      const settled = await credits.settle(item)
      if (isRefusal(settled)) throw new Error(settled.message)
      if (settled.winc !== '0') model.settled.add(item)
      return
    }
    case 4: {
      const back = await credits.refund(item)
      if (isRefusal(back)) throw new Error(back.message)
      model.items.delete(item)
      model.settled.delete(item)
      return
    }
    default: {
      // What is requested twice is charged once.
      if (model.items.has(item)) return
      const payer = { address: own, signatureType: 1, paidBy: [pick(addresses), pick(addresses)] }
      const order = { itemId: item, bytes: 1 + below(120), ...payer }
      const both = await Promise.all([credits.reserve(order), credits.reserve(order)])
      for (const reserved of both) {
        if (isRefusal(reserved)) throw new Error(reserved.message)
        if (reserved.paid) model.items.set(item, BigInt(reserved.winc))
      }
    }
  }
}

async function compare(t: Test, { ledger, accounts }: Rig, model: Model): Promise<void> {
  t.strictSame((await ledger.check(approvalFaults)).faults, [], 'balances are what the history makes')
  let sum = 0n
  for (const account of await ledger.accounts('', '', 100_000)) sum += balanceOf(account)
  t.equal(sum, 0n, 'all accounts together')
  let spent = 0n
  for (const winc of model.items.values()) spent += winc
  const revenue = await ledger.account('revenue')
  const taken = revenue === undefined ? 0n : balanceOf(revenue) + revenue.creditsPending
  t.equal(taken, spent, 'what items have cost')
  let left = 0n
  for (const account of await ledger.accounts('wallet:', '', 100)) left += availableOf(account)
  for (const account of await ledger.accounts('approval:', '', 100_000)) {
    const free = availableOf(account)
    if (free < 0n) t.fail(`${account.name} is overdrawn`)
    left += free
  }
  t.equal(left, model.given - spent, 'what is left')
  for (const address of addresses) {
    const balance = await accounts.balance(address)
    if (balance === undefined) continue
    const own = await ledger.account(accountOf(address))
    t.equal(balance.winc, String(own === undefined ? 0n : availableOf(own)))
    t.ok(BigInt(balance.winc) >= 0n)
  }
}
