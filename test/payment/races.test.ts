/**
 * Everything that two could do at once, done at once, on the embedded ledger and by two services on one database: a payment told
 * twice, a gift redeemed twice, one item for two wallets, its end and its return, credits that are shared, spent, taken back and
 * over in the same moment. Not one winc is lost or made.
 */
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { balanceOf } from '../../src/ledger/ledger-account.js'
import type { MoneyLedger } from '../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import { approvalFaults } from '../../src/payment/books/approval-faults.js'
import type { ChainReader } from '../../src/payment/chains/seen-payment.js'
import { makeServiceToken } from '../../src/payment/requests/service-token.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { random } from '../property.js'
import { type PaymentRig, paymentRig, secret } from './rig.js'

const start = Date.UTC(2026, 0, 1)
const [alice, bob, carol, dave] = [1, 2, 3, 4].map((at) => Buffer.alloc(32, at).toString('base64url')) as [
  string,
  string,
  string,
  string,
]
const own = Buffer.alloc(32, 9).toString('base64url')
const bytes = 1000
/** Of an item of so many bytes, with the fixed price of each item (see the rig). */
const price = 3_200_100n

/** Services that share a ledger; clients ask any of them. */
interface House {
  readonly rigs: readonly PaymentRig[]
  readonly ledger: MoneyLedger
  any(): PaymentRig
  setTime(ms: number): void
  ask(path: string): ReturnType<PaymentRig['get']>
}

async function house(t: Test, url?: string): Promise<House> {
  const reader: ChainReader = {
    chain: 'arweave',
    tokens: ['arweave'],
    find: async (_, id) => ({
      id,
      sender: alice,
      recipient: own,
      quantity: 10n ** 13n,
      isFinal: true,
      isBeyondWatching: true,
    }),
    close: async () => undefined,
  }
  const service = async (): Promise<PaymentRig> => {
    const given = { readers: [reader], addresses: { arweave: own } }
    if (url === undefined) return paymentRig(t, given)
    return paymentRig(t, { ...given, ledger: await PostgresLedger.open({ url, clock: systemClock }) })
  }
  const rigs = url === undefined ? [await service()] : [await service(), await service()]
  const any = (): PaymentRig => rigs[Math.floor(random() * rigs.length)] as PaymentRig
  let nowMs = start
  return {
    rigs,
    any,
    ledger: (rigs[0] as PaymentRig).ledger,
    setTime: (ms) => {
      nowMs = ms
      for (const rig of rigs) rig.setTime(ms)
    },
    ask: async (path) =>
      any().get(path, { authorization: `Bearer ${await makeServiceToken(secret, nowMs)}` }),
  }
}

async function pay({ any }: House, to: string, query = ''): Promise<string> {
  const { json } = await any().get(`/v1/top-up/checkout-session/${encodeURIComponent(to)}/usd/1000?${query}`)
  const { topUpQuote, paymentSession } = json as {
    topUpQuote: { topUpQuoteId: string }
    paymentSession: { id: string }
  }
  // The button is pressed twice.
  await Promise.all([1, 2].map(() => any().post(`/checkout/${paymentSession.id}`, 'card=4242424242424242')))
  return topUpQuote.topUpQuoteId
}

const tenUsd = 1_225_600_000_000n

async function winc({ any }: House, address: string): Promise<bigint> {
  return BigInt((await any().service.balanceOf(address))?.winc ?? 0)
}

/** Everything that wallets and what they have shared hold. */
async function held({ ledger }: House): Promise<bigint> {
  const found = await Promise.all(
    ['wallet:', 'approval:', 'gift:'].map((first) => ledger.accounts(first, '', 1000)),
  )
  return found.flat().reduce((sum, account) => sum + balanceOf(account), 0n)
}

async function revenue({ ledger }: House): Promise<bigint> {
  const account = await ledger.account('revenue')
  return account === undefined ? 0n : balanceOf(account)
}

async function sound(t: Test, one: House): Promise<void> {
  t.strictSame((await one.ledger.check(approvalFaults)).faults, [])
  for (const first of ['wallet:', 'approval:', 'gift:'])
    for (const account of await one.ledger.accounts(first, '', 1000)) {
      t.ok(balanceOf(account) >= 0n, account.name)
      t.equal(account.debitsPending, 0n, `nothing is held back on ${account.name}`)
    }
}

const reserve = (house: House, address: string, item: string, more = '') =>
  house.ask(`/v1/reserve-balance/arweave/${address}?byteCount=${bytes}&dataItemId=${item}${more}`)
const refund = (house: House, address: string, item: string) =>
  house.ask(`/v1/refund-balance/arweave/${address}?winstonCredits=1&dataItemId=${item}`)
const share = (house: House, item: string, from: string, to: string, much: bigint, more = '') =>
  house.ask(
    `/v1/account/approvals/create?dataItemId=${item}&winc=${much}&payingAddress=${from}&approvedAddress=${to}${more}`,
  )
const takeBack = (house: House, item: string, from: string, to: string) =>
  house.ask(`/v1/account/approvals/revoke?dataItemId=${item}&payingAddress=${from}&approvedAddress=${to}`)

function races(t: Test, open: (t: Test) => Promise<House>): void {
  t.test('a payment that is told many times at once is credited once', async (t) => {
    const one = await open(t)
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => one.any().post('/v1/account/balance/arweave', '{"tx_id":"T"}')),
    )
    t.strictSame([...new Set(answers.map(({ status }) => status))], [200])
    t.equal(await winc(one, alice), 7_660_000_000_000n)
    await pay(one, alice)
    t.equal(await winc(one, alice), 7_660_000_000_000n + tenUsd)
    await sound(t, one)
  })

  t.test('a gift goes to one of those who redeem it at once', async (t) => {
    const one = await open(t)
    const gift = await pay(one, 'a@b.co', 'destinationAddressType=email')
    const all = [alice, bob, carol, dave]
    const tries = [...all, ...all].map(async (to) => {
      const path = `/v1/redeem?email=a@b.co&id=${gift}&destinationAddress=${to}`
      return { to, status: (await one.any().get(path)).status }
    })
    const answers = await Promise.all(tries)
    // The same wallet may hear it twice: it is the same redemption.
    const won = new Set(answers.filter(({ status }) => status === 200).map(({ to }) => to))
    t.equal(won.size, 1)
    const sums = await Promise.all(all.map((address) => winc(one, address)))
    t.strictSame(
      sums.filter((sum) => sum > 0n),
      [tenUsd],
    )
    await sound(t, one)
  })

  t.test('one item is paid for by one wallet, and is given back once', async (t) => {
    const one = await open(t)
    for (const address of [alice, bob]) await pay(one, address)
    for (let turn = 0; turn < 5; turn += 1) {
      const item = `item-${turn}`
      const reserved = await Promise.all(
        [alice, bob, alice, bob, alice].map((address) => reserve(one, address, item)),
      )
      for (const { status, text } of reserved) t.match([status, text], [200, String(price)])
      t.equal(await held(one), 2n * tenUsd - price, 'charged once')
      await Promise.all([1, 2, 3, 4].map(() => refund(one, alice, item)))
      t.equal(await held(one), 2n * tenUsd, 'and given back once')
    }
    await sound(t, one)
  })

  t.test('an item that is settled and given back at once is one or the other', async (t) => {
    const one = await open(t)
    await pay(one, alice)
    for (let turn = 0; turn < 8; turn += 1) {
      const item = `item-${turn}`
      t.equal((await reserve(one, alice, item, '&settle=later')).status, 200)
      await Promise.all([
        one.any().service.credits.settle(item),
        refund(one, alice, item),
        one.any().service.credits.settle(item),
        refund(one, alice, item),
      ])
      t.equal(await revenue(one), 0n, 'what was refunded is not ours, in whichever order it came')
      t.equal(await held(one), tenUsd)
    }
    await sound(t, one)
  })

  t.test('credits are taken back while they are spent: each is in one place', async (t) => {
    const one = await open(t)
    await pay(one, alice)
    await pay(one, bob)
    const whole = await held(one)
    for (let turn = 0; turn < 5; turn += 1) {
      t.equal((await share(one, `a${turn}`, alice, bob, 4n * price)).status, 200)
      const items = Array.from({ length: 8 }, (_, at) => `item-${turn}-${at}`)
      const before = await revenue(one)
      const answers = await Promise.all([
        ...items.map((item) => reserve(one, bob, item, `&paidBy=${alice}&paymentDirective=list-only`)),
        takeBack(one, `r${turn}`, alice, bob),
        takeBack(one, `s${turn}`, alice, bob),
      ])
      const paid = answers.slice(0, items.length).filter(({ status }) => status === 200).length
      t.ok(paid <= 4, `${paid} of 8 were paid for`)
      t.equal((await revenue(one)) - before, BigInt(paid) * price)
      // What is given back after the approval is over goes to the wallet that gave it.
      await Promise.all(items.map((item) => refund(one, bob, item)))
      await takeBack(one, `z${turn}`, alice, bob)
      t.equal(await revenue(one), before)
    }
    t.equal(await winc(one, alice), tenUsd)
    t.equal(await winc(one, bob), tenUsd, 'nothing was taken from who was only allowed to spend')
    t.equal(await held(one), whole)
    await sound(t, one)
  })

  t.test('who pays first is paid from first, also when many spend at once', async (t) => {
    const one = await open(t)
    for (const address of [alice, bob, carol]) await pay(one, address)
    t.equal((await share(one, 'a', alice, carol, 2n * price + 5n)).status, 200)
    t.equal((await share(one, 'b', bob, carol, 3n * price)).status, 200)
    const items = Array.from({ length: 7 }, (_, at) => `item-${at}`)
    const more = `&paidBy=${alice}&paidBy=${bob}&paidBy=${alice}&paidBy=${carol}`
    for (const { status } of await Promise.all(items.map((item) => reserve(one, carol, item, more))))
      t.equal(status, 200)
    t.equal(await winc(one, alice), tenUsd - 2n * price - 5n)
    t.equal(await winc(one, bob), tenUsd - 3n * price)
    t.equal(await winc(one, carol), tenUsd - 2n * price + 5n, 'the rest')
    t.equal(await revenue(one), 7n * price)
    await Promise.all(items.map((item) => refund(one, carol, item)))
    for (const [id, payer] of [
      ['ra', alice],
      ['rb', bob],
    ] as const)
      t.equal((await takeBack(one, id, payer, carol)).status, 200)
    for (const address of [alice, bob, carol]) t.equal(await winc(one, address), tenUsd)
    await sound(t, one)
  })

  t.test('an approval ends at its millisecond, whoever spends it then', async (t) => {
    const one = await open(t)
    await pay(one, alice)
    t.equal((await share(one, 'a', alice, bob, 5n * price, '&expiresInSeconds=60')).status, 200)
    const more = `&paidBy=${alice}&paymentDirective=list-only`
    one.setTime(start + 59_999)
    t.equal((await reserve(one, bob, 'in-time', more)).status, 200)
    const early = ['e1', 'e2', 'e3'].map((item) => reserve(one, bob, item, more))
    one.setTime(start + 60_000)
    const late = ['l1', 'l2', 'l3'].map((item) => reserve(one, bob, item, more))
    const ends = one.rigs.map(({ ledger, service }) =>
      Promise.all([ledger.expire(start + 60_000), service.balanceOf(bob), service.balanceOf(alice)]),
    )
    const answers = await Promise.all([...early, ...late])
    await Promise.all(ends)
    const paid = answers.filter(({ status }) => status === 200).length
    t.equal((await reserve(one, bob, 'too-late', more)).status, 402)
    t.equal(await revenue(one), BigInt(1 + paid) * price)
    t.equal(await winc(one, alice), tenUsd - BigInt(1 + paid) * price, 'the rest is back')
    await Promise.all(['in-time', 'e1', 'e2', 'e3', 'l1', 'l2', 'l3'].map((item) => refund(one, bob, item)))
    t.equal(await winc(one, alice), tenUsd, 'and what is given back later, too')
    await sound(t, one)
  })

  t.test('more cannot be shared than is there, by many at once', async (t) => {
    const one = await open(t)
    await pay(one, alice)
    const third = tenUsd / 3n
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, at) => share(one, `a${at}`, alice, [bob, carol][at % 2] ?? bob, third)),
    )
    t.equal(answers.filter(({ status }) => status === 200).length, 3)
    t.equal(await winc(one, alice), tenUsd - 3n * third)
    t.equal(await held(one), tenUsd)
    await sound(t, one)
  })
}

t.test('on the embedded ledger', (t) => {
  races(t, (t) => house(t))
  t.end()
})

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false

t.test('by two services on one database', { skip }, async (t) => {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  let databases = 0
  races(t, async (t) => {
    databases += 1
    return house(t, await server.database(`races${databases}`))
  })
})
