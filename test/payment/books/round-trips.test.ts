/**
 * How often one question or order asks the ledger: as often for many names as for one, whatever these have shared, and for a
 * page of a hundred as for a page of one. In a database each time is a round trip, and others wait.
 */
import { join } from 'node:path'
import { Client } from 'pg'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import type { MoneyLedger } from '../../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../../src/ledger/postgres.js'
import { Accounts } from '../../../src/payment/books/accounts.js'
import { Approvals } from '../../../src/payment/books/approvals.js'
import { LedgerCredits } from '../../../src/payment/books/credits.js'
import { Wallets } from '../../../src/payment/books/wallets.js'
import { isDenied } from '../../../src/payment/credits-port.js'
import { fixedOracle } from '../../../src/payment/prices/oracle.js'
import { Promotions } from '../../../src/payment/prices/promotions.js'
import { postgresFolder, startPostgres } from '../../engines/postgres-server.js'

const many = 64
const name = (at: number): string => {
  const bytes = Buffer.alloc(32, 7)
  bytes.writeUInt32BE(at)
  return bytes.toString('base64url')
}
const givers = Array.from({ length: many }, (_, at) => name(at))
/** Nobody has shared anything with the first, all of the givers with the second, the first of them with the third. */
const [stranger, friend, modest] = [name(1000), name(1001), name(1002)] as const
const clock: Clock = { ...systemClock, now: () => 1_000_000 }

interface Counted {
  readonly ledger: MoneyLedger
  /** How often the store was asked since the last call. */
  readonly trips: () => number
}

/** Each call of a method counts once. */
function countingCalls(inner: MoneyLedger): Counted {
  let count = 0
  const ledger = new Proxy(inner, {
    get(of, key: keyof MoneyLedger) {
      const method = (of[key] as (...given: unknown[]) => Promise<unknown>).bind(of)
      return (...given: unknown[]) => {
        count += 1
        return method(...given)
      }
    },
  })
  const trips = (): number => {
    const was = count
    count = 0
    return was
  }
  return { ledger, trips }
}

/** Each statement counts once, whoever sends it. */
async function countingStatements(t: Test, url: string): Promise<Counted> {
  const ledger = await PostgresLedger.open({ url, clock })
  let count = 0
  const { query } = Client.prototype
  t.teardown(() => {
    Client.prototype.query = query
  })
  Client.prototype.query = function (this: Client, ...given: unknown[]) {
    count += 1
    return (query as (...given: unknown[]) => unknown).apply(this, given)
  } as typeof query
  const trips = (): number => {
    const was = count
    count = 0
    return was
  }
  return { ledger, trips }
}

async function constant(t: Test, { ledger, trips }: Counted): Promise<void> {
  const wallets = new Wallets(ledger)
  const approvals = new Approvals(ledger, wallets, clock.now, clock.now)
  const accounts = new Accounts(ledger, wallets, approvals, clock.now)
  const price = async (bytes: number): Promise<bigint> => BigInt(bytes)
  const credits = new LedgerCredits({ ledger, wallets, approvals, price })
  const give = (id: string, address: string): Promise<unknown> => {
    const facts = { source: 'source:test', reason: 'payment', reference: id, about: {} }
    return accounts.credit({ id, address, winc: 1000n, ...facts })
  }
  let shared = 0
  const share = async (payingAddress: string, approvedAddress: string): Promise<void> => {
    shared += 1
    const made = await credits.approve({ itemId: `a${shared}`, payingAddress, approvedAddress, winc: '5' })
    if (isRefusal(made) || isDenied(made)) throw new Error(JSON.stringify(made))
  }
  for (const [at, giver] of givers.entries()) {
    await give(`g${at}`, giver)
    await share(giver, friend)
  }
  const [first = ''] = givers
  // More than the share of one wallet, so that its largest ones are looked for.
  for (let at = 0; at < 120; at += 1) await share(first, friend)
  await share(first, modest)
  for (let at = 0; at < 100; at += 1) await give(`p${at}`, friend)

  const cost = async (act: () => Promise<unknown>): Promise<number> => {
    trips()
    await act()
    return trips()
  }
  const payer = (address: string, paidBy: readonly string[]) => ({
    address,
    alias: name(2000),
    signatureType: 1,
    paidBy,
  })
  const check = (address: string, paidBy: readonly string[], bytes: number): Promise<number> =>
    cost(() => credits.check({ ...payer(address, paidBy), bytes, itemId: 'none' }))
  const one = givers.slice(0, 1)
  const nobody = await check(stranger, one, 10)
  t.ok(nobody <= 10, `nobody has shared anything: ${nobody}`)
  t.equal(await check(stranger, givers, 10), nobody, 'and many are named')
  const most = 20
  for (const bytes of [1, 300, 10_000])
    for (const address of [modest, friend]) {
      const alone = await check(address, one, bytes)
      const all = await check(address, givers, bytes)
      t.ok(alone <= most && all <= most, `${bytes} bytes: ${alone} for one name, ${all} for ${many}`)
    }
  t.match(await credits.check({ ...payer(friend, givers), bytes: 1, directive: 'list-only' }), {
    isEnough: true,
    balance: '320',
  })

  let items = 0
  const paid = async (paidBy: readonly string[], bytes: number): Promise<number[]> => {
    items += 1
    const itemId = `i${items}`
    const order = { ...payer(friend, paidBy), bytes, directive: 'list-only' as const }
    const held = await cost(async () => t.match(await credits.reserve({ ...order, itemId }), { paid: true }))
    const again = await cost(() => credits.reserve({ ...order, itemId, ticket: 't' }))
    const withdrawn = await cost(() => credits.withdraw({ itemId, ticket: 't' }))
    const back = await cost(() => credits.refund(itemId))
    return [held, again, withdrawn, back]
  }
  const few = await paid(one, 5)
  const full = await paid(givers, 300)
  for (const [at, count] of full.entries())
    t.ok(count <= (few[at] ?? 0) + 10, `an order of many approvals: ${few} and ${full}`)

  const pages = async (limit: number): Promise<number[]> => [
    await cost(() => accounts.balance(friend)),
    await cost(() => accounts.approvalsOf(friend, undefined, limit)),
    await cost(() => approvals.pair(first, friend, '', limit)),
    await cost(() => accounts.payments(friend, undefined, limit)),
  ]
  // What is over is looked for once a second.
  await pages(1)
  t.strictSame(await pages(100), await pages(1), 'a page of a hundred')

  const promotions = new Promotions(ledger, clock.now, async () => {
    return (await accounts.payments(friend, undefined, 1)).page.length > 0
  })
  const codes = Array.from({ length: 100 }, (_, at) => `CODE${at}`)
  const common = { permille: 1, expiresMs: 10 ** 9, leastMicroUsd: 0, mostMicroUsd: 10 ** 6 }
  for (const code of codes) await promotions.declare({ code, ...common, usesMax: 9, isForNew: false })
  await promotions.declare({ code: 'NEW', ...common, usesMax: 9, isForNew: true })
  const rates = await fixedOracle().rates()
  if (isRefusal(rates)) throw new Error(rates.message)
  const priced = (named: readonly string[]): Promise<number> =>
    cost(() => promotions.apply(named, friend, 'usd', 1000n, rates))
  t.equal(await priced([...codes, 'NEW', 'none']), await priced(['NEW', 'none']), 'a hundred codes')

  // The same item again reads what it has ended.
  const revoked = { payingAddress: first, approvedAddress: friend, itemId: 'r1' }
  await credits.revoke(revoked)
  const listed = await cost(() => credits.revoke(revoked))
  t.ok(listed <= 15, `a list of what an item has ended: ${listed}`)
  t.strictSame((await ledger.check()).faults, [])
}

t.test('embedded', async (t) => {
  const inner = new EmbeddedLedger({ path: join(t.testdir(), 'ledger'), clock })
  t.teardown(() => inner.close())
  await constant(t, countingCalls(inner))
})

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false

t.test('PostgreSQL', { skip }, async (t) => {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  const counted = await countingStatements(t, await server.database('trips'))
  await constant(t, counted)
  await counted.ledger.close()
})
