import { ClientError } from './errors.js'

/** Decimal places of the tokens. */
export const tokenDecimals: Readonly<Record<string, number>> = {
  arweave: 12,
  ario: 6,
  'base-ario': 6,
  solana: 9,
  ethereum: 18,
  'base-eth': 18,
  matic: 18,
  pol: 18,
  kyve: 6,
  usdc: 6,
  'base-usdc': 6,
  'polygon-usdc': 6,
  'solana-usdc': 6,
}

/** Credits as a service states them, in winc. Throws `malformed-answer` where they are no amount. */
export function wincOf(stated: unknown): bigint {
  if (typeof stated === 'string' && /^[0-9]{1,40}$/.test(stated)) return BigInt(stated)
  if (typeof stated === 'number' && Number.isSafeInteger(stated) && stated >= 0) return BigInt(stated)
  const found = `credits are stated as ${JSON.stringify(stated)?.slice(0, 60)}`
  throw new ClientError('malformed-answer', found, 'check the address of the service')
}

/** Rounded up, so that nobody pays too little. */
export function ceilDivided(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}

/** A number of smallest units as a decimal text. */
export function decimalText(units: bigint, decimals: number): string {
  const digits = units.toString().padStart(decimals + 1, '0')
  const whole = digits.slice(0, -decimals)
  const rest = digits.slice(-decimals).replace(/0+$/, '')
  return rest === '' ? whole : `${whole}.${rest}`
}

/** A credit has so many decimal places: one is 10^12 winc. */
const creditDigits = 12

/** Credits as people read them: all digits, because most uploads cost millionths of one. */
export function creditsText(winc: string | bigint): string {
  return `${decimalText(BigInt(winc), creditDigits)} credits`
}

/** Dollars as people read them: cents, or two digits of what is less than that. */
export function dollarsText(usd: number): string {
  if (usd === 0 || usd >= 0.01) return `$${usd.toFixed(2)}`
  const places = Math.min(12, 1 - Math.floor(Math.log10(usd)))
  return `$${usd.toFixed(places)}`
}
