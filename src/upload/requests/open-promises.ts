/** Payments of one payer that may be open at a time, and what they may be together in the smallest units of USDC (100 USDC). */
const [countMax, unitsMax] = [64, 100_000_000n]

/** An upload with the payment is over; calling it again does nothing. */
export type PromiseOver = () => void

interface Promised {
  readonly units: bigint
  /** Requests that bring it. */
  requests: number
}

/**
 * Payments that are looked at and not made: the uploads that they are for are under way. Each was covered by its payer's balance
 * when it was looked at, but one balance covers any number of them. So each payer has some open at a time, of a bounded sum. A
 * payment is named by chain, payer and nonce, and counts once however many requests bring it.
 */
export class OpenPromises {
  readonly #ofPayer = new Map<string, Map<string, Promised>>()

  /** One request brings a payment. Undefined: its payer has promised too much. Any single payment may be brought. */
  open(payer: string, payment: string, units: bigint): PromiseOver | undefined {
    const own = this.#ofPayer.get(payer) ?? new Map<string, Promised>()
    const promised = own.get(payment) ?? { units, requests: 0 }
    if (promised.requests === 0 && own.size > 0) {
      const sum = [...own.values()].reduce((all, one) => all + one.units, units)
      if (own.size >= countMax || sum > unitsMax) return undefined
    }
    promised.requests += 1
    own.set(payment, promised)
    this.#ofPayer.set(payer, own)
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      promised.requests -= 1
      if (promised.requests === 0) own.delete(payment)
      if (own.size === 0) this.#ofPayer.delete(payer)
    }
  }
}
