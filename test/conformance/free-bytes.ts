/** What every way to count free bytes must pass: on one machine, and on two over the database of a cluster. */
import type { Test } from 'tap'
import type { FreePools, FreeReservation, FreeUser } from '../../src/upload/records/free-pools.js'
import { eventually } from '../eventually.js'

export const freeRulesOfTests = {
  itemMaxBytes: 1000,
  walletBytes: 1000,
  rangeBytes: 100_000,
  exemptWallets: ['exempt'],
}

/** Those who give free bytes of the same counts: two of one machine, or of two. */
export interface FreeGivers {
  readonly one: FreePools
  readonly other: FreePools
  /** What was taken is written down, as the transaction that accepts an item does. */
  keep(pools: FreePools, taken: FreeReservation): void
}

let wallets = 0
const someone = (range?: string): FreeUser => {
  wallets += 1
  return { wallet: `wallet ${wallets}`, range }
}

export async function conformFreeBytes(t: Test, open: () => Promise<FreeGivers>): Promise<void> {
  const { one, other, keep } = await open()
  const take = async (
    pools: FreePools,
    taker: FreeUser,
    bytes: number,
  ): Promise<FreeReservation | undefined> => {
    const taken = await pools.reserve(taker, bytes)
    if (taken !== undefined) keep(pools, taken)
    return taken
  }

  await t.test('what one gives the other does not give again', async (t) => {
    const taker = someone()
    t.ok(await take(one, taker, 600))
    t.notOk(await take(other, taker, 401))
    t.ok(await take(other, taker, 400))
    t.notOk(await take(one, taker, 1))
    for (const pools of [one, other]) {
      await pools.refresh(taker.wallet ?? '')
      t.equal(pools.left(taker.wallet ?? ''), 0)
    }
  })

  await t.test('ranges of addresses, those of a site of IPv6, and exempt wallets', async (t) => {
    for (let at = 0; at < 100; at += 1)
      t.ok(await take(at % 2 === 0 ? one : other, someone('192.0.2.7'), 1000))
    t.notOk(await take(one, someone('192.0.2.7'), 1))
    t.notOk(await take(other, someone('192.0.2.7'), 1))
    t.ok(await take(one, someone('192.0.2.8'), 1000))
    t.ok(await take(one, someone('2001:db8:1:1::'), 1000))
    await other.refresh('nobody', '2001:db8:1:1::')
    t.equal(other.leftOfRange('2001:db8:1:1::'), 99_000)
    t.strictSame((await take(one, { wallet: 'exempt', range: '192.0.2.7' }, 1_000_000))?.keys, [])
  })

  await t.test('many at once: never more than there is, and all of it in the end', async (t) => {
    const taker = someone()
    const outcomes = await Promise.all(
      Array.from({ length: 300 }, (_, at) => take(at % 2 === 0 ? one : other, taker, 10)),
    )
    const given = outcomes.filter((taken) => taken !== undefined).length
    t.ok(given <= 100, `${given} of 100`)
    let more = 0
    while ((await take(one, taker, 10)) !== undefined) more += 1
    t.equal(given + more, 100)
  })

  await t.test('what is given back is there again for both', async (t) => {
    const taker = someone()
    const taken = await one.reserve(taker, 900)
    t.ok(taken)
    t.notOk(await other.reserve(taker, 900))
    if (taken !== undefined) one.refund(taken)
    t.ok(await eventually('it is there for the other one', () => other.reserve(taker, 900)))
  })
}
