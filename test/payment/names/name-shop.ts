import { join } from 'node:path'
import type { Test } from 'tap'
import type { Refusal } from '../../../src/format/refusal.js'
import type { NoSale } from '../../../src/names/lease.js'
import { LocalRegistry } from '../../../src/names/local-registry.js'
import { LocalNameRegistry, type NameRegistry } from '../../../src/payment/names/name-registry.js'
import { scratch } from '../../scratch.js'
import { type PaymentRig, paymentRig } from '../rig.js'

const start = Date.UTC(2026, 0, 1)
const dayMs = 24 * 3600_000

/** A payment service that sells names of a list of its own. */
export interface Shop {
  readonly rig: PaymentRig
  readonly list: LocalRegistry
  /** What the registry says instead, of the next sales. */
  readonly says: (Refusal | NoSale)[]
  /** Nonces of the orders that it got. */
  readonly sold: string[]
  setDay(day: number): void
}

/** A registry that is silent, or refuses what was paid, where the test sets that. */
function fickle(names: NameRegistry, says: (Refusal | NoSale)[], sold: string[]): NameRegistry {
  return {
    label: 'fickle',
    price: (wish) => names.price(wish),
    sell: async (nonce, owner, wish) => {
      sold.push(nonce)
      return says.shift() ?? names.sell(nonce, owner, wish)
    },
    change: async (nonce, ...args) => {
      sold.push(nonce)
      return says.shift() ?? names.change(nonce, ...args)
    },
    holding: (...args) => names.holding(...args),
    held: (...args) => names.held(...args),
    owned: (...args) => names.owned(...args),
    tend: (atMs) => names.tend(atMs),
    close: () => names.close(),
  }
}

export async function shop(t: Test): Promise<Shop> {
  // The rig has the folder of the test.
  const folder = scratch('names')
  let nowMs = start
  const paths = { list: join(folder, 'names'), leases: join(folder, 'leases') }
  const says: (Refusal | NoSale)[] = []
  const sold: string[] = []
  const rig = await paymentRig(t, { names: fickle(new LocalNameRegistry(paths, () => nowMs), says, sold) })
  const list = new LocalRegistry(paths.list)
  t.teardown(() => list.close())
  const setDay = (day: number): void => {
    nowMs = start + day * dayMs
    rig.setTime(nowMs)
  }
  return { rig, list, says, sold, setDay }
}

/** 1,000 USD by card: 122,560,000,000,000 winc. */
export async function pay({ rig }: Shop, address: string): Promise<void> {
  const { json } = await rig.get(`/v1/top-up/checkout-session/${address}/usd/100000`)
  const { paymentSession } = json as { paymentSession: { id: string } }
  await rig.post(`/checkout/${paymentSession.id}`, 'card=4242424242424242')
}

export async function wincOf({ rig }: Shop, address: string): Promise<bigint> {
  return BigInt((await rig.service.balanceOf(address))?.winc ?? 0)
}

export async function sound(t: Test, { rig }: Shop): Promise<void> {
  t.strictSame((await rig.ledger.check()).faults, [])
  for (const { name, debitsPending } of await rig.ledger.accounts('wallet:', '', 100))
    t.equal(debitsPending, 0n, `nothing is held back on ${name}`)
}
