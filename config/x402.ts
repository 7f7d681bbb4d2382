import { keccak_256 } from '@noble/hashes/sha3.js'
import {
  custom,
  flag,
  maybeText,
  type Parsed,
  readUrl,
  readWholeUrl,
  secret,
  text,
  whole,
} from './setting.js'

/** Payments for egress in USDC (x402): prices, where the money goes, and who settles it. */

/** A plain decimal number: no sign, no exponent, so that what is written is what is charged. */
const decimal = /^(?:0|[1-9]\d{0,8})(?:\.\d{1,30})?$/
const zero = /^0(?:\.0*)?$/

/** An amount as a whole number of 10^-30, for comparing. */
function scaled(amount: string): bigint {
  const [whole = '0', fraction = ''] = amount.split('.')
  return BigInt(whole + fraction.padEnd(30, '0'))
}

const perByteAllowed = 'a positive decimal number of at most 30 decimal places, without sign and exponent'

function readPerByte(given: string): Parsed<string> {
  return decimal.test(given) && !zero.test(given) ? { value: given } : { wrong: `must be ${perByteAllowed}` }
}

const priceAllowed = 'a positive decimal number of at most 6 decimal places, without sign and exponent'

/** USDC has six decimal places: a price with more cannot be paid exactly. */
function readPrice(given: string): Parsed<string> {
  const fraction = given.split('.')[1] ?? ''
  const fits = decimal.test(given) && !zero.test(given) && fraction.length <= 6
  return fits ? { value: given } : { wrong: `must be ${priceAllowed}` }
}

/** USDC on the two chains. */
const tokens = new Set([
  '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
  '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
])

const walletAllowed =
  'an address: 0x and 40 hexadecimal digits, with a right checksum where letters are mixed (EIP-55)'

/** Whoever mistypes a digit here gives the money away, so the checksum counts where there is one. */
function readWallet(given: string): Parsed<string> {
  if (!/^0x[0-9a-fA-F]{40}$/.test(given) || /^0x0{40}$/.test(given))
    return { wrong: `must be ${walletAllowed}` }
  if (tokens.has(given.toLowerCase()))
    return { wrong: 'is the contract of USDC itself: what it is paid is lost' }
  const digits = given.slice(2)
  const lower = digits.toLowerCase()
  if (digits === lower || digits === digits.toUpperCase()) return { value: `0x${lower}` }
  const hash = Buffer.from(keccak_256(Buffer.from(lower))).toString('hex')
  const right = [...lower]
    .map((char, at) => (hash.charCodeAt(at) >= 0x38 ? char.toUpperCase() : char))
    .join('')
  return right === digits ? { value: `0x${lower}` } : { wrong: 'has a wrong checksum: a digit is mistyped' }
}

type Network = 'base' | 'base-sepolia'

function readNetwork(given: string): Parsed<Network | undefined> {
  return given === 'base' || given === 'base-sepolia'
    ? { value: given }
    : { wrong: 'must be one of: base-sepolia, base' }
}

export const x402 = {
  enabled: flag({
    env: 'ENABLE_X_402_USDC_DATA_EGRESS',
    default: false,
    why: 'Sells egress beyond the free allowance for USDC. Needs the rate limiter: only who exceeds it pays.',
  }),
  network: custom<Network | undefined>({
    env: 'X_402_USDC_NETWORK',
    allowed: 'base-sepolia, base',
    defaultText: '',
    default: undefined,
    read: readNetwork,
    why: 'Chain of the payments: base-sepolia for trying out, base for real money.',
  }),
  wallet: custom<string | undefined>({
    env: 'X_402_USDC_WALLET_ADDRESS',
    allowed: walletAllowed,
    defaultText: '',
    default: undefined,
    read: readWallet,
    why: 'Receives the payments.',
  }),
  facilitatorUrl: custom<string | undefined>({
    env: 'X_402_USDC_FACILITATOR_URL',
    allowed: 'an http(s) address',
    defaultText: '',
    default: undefined,
    read: readUrl,
    why: 'Verifies and settles payments, before anything is served.',
  }),
  rpcUrl: secret(
    custom<string | undefined>({
      env: 'X_402_USDC_RPC_URL',
      allowed: 'an http(s) address, with or without a query, or none',
      defaultText: '',
      default: undefined,
      read: (given) => (given === 'none' ? { value: given } : readWholeUrl(given)),
      why: 'A node of the chain (JSON-RPC): did a payment move that was left unanswered? Unset: a public one, on devnet none.',
    }),
  ),
  perBytePrice: custom<string>({
    env: 'X_402_USDC_PER_BYTE_PRICE',
    allowed: perByteAllowed,
    defaultText: '0.0000000001',
    default: '0.0000000001',
    read: readPerByte,
    why: 'USDC a byte; a price is rounded up to a whole millionth.',
  }),
  minPrice: custom<string>({
    env: 'X_402_USDC_DATA_EGRESS_MIN_PRICE',
    allowed: priceAllowed,
    defaultText: '0.001',
    default: '0.001',
    read: readPrice,
    why: 'The least that is charged, in USDC: below it a settlement costs more than it brings.',
  }),
  maxPrice: custom<string>({
    env: 'X_402_USDC_DATA_EGRESS_MAX_PRICE',
    allowed: priceAllowed,
    defaultText: '1.00',
    default: '1.00',
    read: readPrice,
    why: 'The most that is charged, in USDC. Stock clients of protocol 1 pay at most 0.10 unless configured otherwise.',
  }),
  multiplier: whole({
    env: 'X_402_RATE_LIMIT_CAPACITY_MULTIPLIER',
    default: 10,
    min: 1,
    max: 1_000_000,
    why: 'A payment buys so many times the bytes that it paid for.',
  }),
  settleTimeoutMs: whole({
    env: 'X_402_USDC_SETTLE_TIMEOUT_MS',
    default: 5000,
    min: 100,
    max: 60_000,
    why: 'A request waits so long for a settlement; it is then finished in the background, and a retry joins it.',
  }),
  appName: text({
    env: 'X_402_APP_NAME',
    default: 'Sluice Gateway',
    allowed: 'at most 80 characters',
    shape: /^[^\p{Cc}]{1,80}$/u,
    why: 'Title of the paywall.',
  }),
  appLogo: custom<string | undefined>({
    env: 'X_402_APP_LOGO',
    allowed: 'an http(s) address',
    defaultText: '',
    default: undefined,
    read: readUrl,
    why: 'Picture on the paywall.',
  }),
  cdpClientKey: maybeText({
    env: 'X_402_CDP_CLIENT_KEY',
    allowed: 'a key',
    shape: /^[\w-]{1,128}$/,
    why: "Public key of the operator's onramp: the paywall then links to it, so that visitors can buy USDC.",
  }),
  sessionTokenEndpoint: custom<string | undefined>({
    env: 'X_402_SESSION_TOKEN_ENDPOINT',
    allowed: 'a path of this host, or an http(s) address',
    defaultText: '',
    default: undefined,
    read: (given) => (/^\/(?!\/)[\x21-\x7e]*$/.test(given) ? { value: given } : readUrl(given)),
    why: "Gives session tokens of the operator's onramp: the paywall asks it (JSON by POST) and leads visitors there.",
  }),
  cdpKeyId: secret(
    maybeText({
      env: 'CDP_API_KEY_ID',
      allowed: 'a key id',
      shape: /^[\x21-\x7e]{1,256}$/,
      why: "Names the key that signs requests to the provider's own facilitator; no other facilitator sees it.",
    }),
  ),
  cdpKeySecret: secret(
    maybeText({
      env: 'CDP_API_KEY_SECRET',
      allowed: 'a PEM key (P-256), or 64 bytes in base64 (Ed25519)',
      why: 'The key itself.',
    }),
  ),
  cdpKeySecretFile: maybeText({
    env: 'CDP_API_KEY_SECRET_FILE',
    allowed: 'a file',
    why: 'Holds the key; wins over CDP_API_KEY_SECRET.',
  }),
}

interface Given {
  readonly enabled: boolean
  readonly network: Network | undefined
  readonly wallet: string | undefined
  readonly facilitatorUrl: string | undefined
  readonly minPrice: string
  readonly maxPrice: string
  readonly cdpKeyId: string | undefined
  readonly cdpKeySecret: string | undefined
  readonly cdpKeySecretFile: string | undefined
}

/** Host of the provider's facilitator: the only one that is shown tokens signed with its key. */
export const providerHost = 'api.cdp.coinbase.com'

/** True where the facilitator is the provider's own, reached over TLS. */
export function isProvider(facilitatorUrl: string): boolean {
  const { protocol, host } = new URL(facilitatorUrl)
  return protocol === 'https:' && host === providerHost
}

/** What is wrong with these settings taken together, all of it. */
export function x402Faults(given: Given, limiterEnabled: boolean): string[] {
  const wrong: string[] = []
  if (scaled(given.minPrice) > scaled(given.maxPrice)) {
    wrong.push('X_402_USDC_DATA_EGRESS_MIN_PRICE must not be above X_402_USDC_DATA_EGRESS_MAX_PRICE')
  }
  if (!given.enabled) return wrong
  const needs = (name: string): number => wrong.push(`ENABLE_X_402_USDC_DATA_EGRESS: needs ${name}`)
  if (!limiterEnabled) needs('ENABLE_RATE_LIMITER=true: there is no mode with payments only')
  if (given.network === undefined) needs('X_402_USDC_NETWORK')
  if (given.wallet === undefined) needs('X_402_USDC_WALLET_ADDRESS')
  if (given.facilitatorUrl === undefined) needs('X_402_USDC_FACILITATOR_URL')
  const secretGiven = given.cdpKeySecret !== undefined || given.cdpKeySecretFile !== undefined
  if ((given.cdpKeyId !== undefined) !== secretGiven) {
    wrong.push('CDP_API_KEY_ID and CDP_API_KEY_SECRET (or CDP_API_KEY_SECRET_FILE) need each other')
  }
  const signed = given.facilitatorUrl !== undefined && isProvider(given.facilitatorUrl)
  if (given.network === 'base' && signed && (given.cdpKeyId === undefined || !secretGiven)) {
    wrong.push(`X_402_USDC_FACILITATOR_URL: ${providerHost} needs CDP_API_KEY_ID and a secret on base`)
  }
  return wrong
}
