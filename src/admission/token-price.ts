/** What egress costs, in whole millionths of a USDC (its smallest unit): never a float. */
export interface Tariff {
  /** USDC a byte, as a plain decimal number with any digits, above zero. */
  readonly perByte: string
  /** USDC, at most six decimal places. */
  readonly minimum: string
  readonly maximum: string
  /** A payment buys so many times what it paid for. */
  readonly multiplier: number
}

/** Decimal places of USDC. */
const places = 6

/** Paid tokens of one payment at most: 2 TiB, more than any content here, and small enough for any table of buckets. */
export const tokensMax = 2 ** 31 - 1

/** Bytes of one token of the rate limiter. */
const tokenBytes = 1024

interface Decimal {
  readonly digits: bigint
  /** The number is `digits / ten`. */
  readonly ten: bigint
}

function readDecimal(text: string): Decimal {
  const found = /^(\d+)(?:\.(\d+))?$/.exec(text)
  if (found === null) throw new RangeError(`${text} is no plain decimal number`)
  const [, whole = '', fraction = ''] = found
  return { digits: BigInt(whole + fraction), ten: 10n ** BigInt(fraction.length) }
}

function divideUp(amount: bigint, by: bigint): bigint {
  return (amount + by - 1n) / by
}

function unitsOf(text: string): bigint {
  const { digits, ten } = readDecimal(text)
  return divideUp(digits * 10n ** BigInt(places), ten)
}

/** A tariff, read once. The same bytes always cost the same. */
export class Price {
  readonly #perByte: Decimal
  readonly #minimum: bigint
  readonly #maximum: bigint

  /** Throws a RangeError on an invalid tariff, which the configuration should have refused. */
  constructor(readonly tariff: Tariff) {
    const { digits, ten } = readDecimal(tariff.perByte)
    this.#perByte = { digits: digits * 10n ** BigInt(places), ten }
    this.#minimum = unitsOf(tariff.minimum)
    this.#maximum = unitsOf(tariff.maximum)
    const whole = Number.isSafeInteger(tariff.multiplier) && tariff.multiplier >= 1
    if (digits === 0n || this.#minimum < 1n || this.#minimum > this.#maximum || !whole) {
      throw new RangeError(
        'a tariff needs a price above zero, a minimum not above the maximum, and a whole multiplier',
      )
    }
  }

  /** The price of `bytes` in smallest units, rounded up, within minimum and maximum. */
  units(bytes: number): bigint {
    const { digits, ten } = this.#perByte
    const exact = divideUp(BigInt(bytes) * digits, ten)
    if (exact < this.#minimum) return this.#minimum
    if (exact > this.#maximum) return this.#maximum
    return exact
  }

  /**
   * Tokens (1 KiB each) for a payment of `units`: what it paid for, rounded up, times the multiplier. It buys at least the tokens
   * of an answer of `bytes`, even where the maximum price is below the price of those bytes.
   */
  tokens(units: bigint, bytes: number): number {
    const { digits, ten } = this.#perByte
    const bought = divideUp(units * ten, digits * BigInt(tokenBytes)) * BigInt(this.tariff.multiplier)
    const needed = Math.max(1, Math.ceil(bytes / tokenBytes))
    const tokens = bought > BigInt(tokensMax) ? tokensMax : Number(bought)
    return Math.min(Math.max(tokens, needed), tokensMax)
  }
}

/** Smallest units as USDC: at least two decimal places, no more zeros than that. */
export function inUsdc(units: bigint): string {
  const digits = units.toString().padStart(places + 1, '0')
  const fraction = digits.slice(-places).replace(/0{1,4}$/, '')
  return `${digits.slice(0, -places)}.${fraction}`
}
