/** Payments of one payer that may be open at a time, and what they may cost together in the smallest units of USDC (100 USDC). */
const [countMax, unitsMax] = [64, 100_000_000n]

/** An upload with the payment is over; calling it again does nothing. */
export type PaymentEnd = () => void

interface Tracked {
  units: bigint
  /** Requests that bring it. */
  requests: number
}

/**
 * Payments that were looked at and are not made: the uploads that they are for are under way. Each was covered by its payer's
 * balance when it was looked at, but one balance covers any number of them. So each payer has some open at a time, and what they
 * cost has a bounded sum. A payment is named by chain, payer and nonce, and counts once however many requests bring it. Only what
 * its payer has signed may be opened: others would keep him out.
 */
export class UnsettledPayments {
  readonly #ofPayer = new Map<string, Map<string, Tracked>>()

  /** One request brings a payment. Undefined: its payer has promised too much. Any single payment may be brought. */
  open(payer: string, payment: string, units: bigint): PaymentEnd | undefined {
    const own = this.#ofPayer.get(payer) ?? new Map<string, Tracked>()
    const promised = own.get(payment) ?? { units, requests: 0 }
    if (promised.requests === 0 && own.size > 0)
      if (own.size >= countMax || sumOf(own) + units > unitsMax) return undefined
    promised.requests += 1
    own.set(payment, promised)
    this.#ofPayer.set(payer, own)
    promised.units = larger(promised.units, units)
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      promised.requests -= 1
      if (promised.requests === 0) own.delete(payment)
      if (own.size === 0) this.#ofPayer.delete(payer)
    }
  }

  /** A payment that is open pays for more bytes than before. False: its payer has promised too much with it. */
  grow(payer: string, payment: string, units: bigint): boolean {
    const own = this.#ofPayer.get(payer)
    const promised = own?.get(payment)
    if (own === undefined || promised === undefined || units <= promised.units) return true
    if (own.size > 1 && sumOf(own) - promised.units + units > unitsMax) return false
    promised.units = units
    return true
  }
}

function sumOf(own: ReadonlyMap<string, Tracked>): bigint {
  return [...own.values()].reduce((all, { units }) => all + units, 0n)
}

function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}
