import { keccak_256 } from '@noble/hashes/sha3.js'
import { custom, maybeText, type Parsed, readWholeUrl, type Setting, secret, whole } from './setting.js'

/** Payments on chains: the service's addresses, the nodes that are read, and when a payment counts. */

const hexAllowed =
  'an address: 0x and 40 hexadecimal digits, with a right checksum where letters are mixed (EIP-55)'

function checksummed(lower: string): string {
  const hash = Buffer.from(keccak_256(Buffer.from(lower))).toString('hex')
  return [...lower].map((char, at) => (hash.charCodeAt(at) >= 0x38 ? char.toUpperCase() : char)).join('')
}

/** Whoever mistypes a digit here gives the money away, so the checksum counts where there is one. */
function readHexAddress(given: string): Parsed<string> {
  const digits = given.slice(2)
  const lower = digits.toLowerCase()
  const right = checksummed(lower)
  const isPlain = digits === lower || digits === digits.toUpperCase()
  if (!/^0x[0-9a-fA-F]{40}$/.test(given) || /^0+$/.test(lower)) return { wrong: `must be ${hexAllowed}` }
  return isPlain || digits === right
    ? { value: `0x${right}` }
    : { wrong: 'has a wrong checksum: a digit is mistyped' }
}

function hexAddress(env: string, why: string): Setting<string | undefined> {
  return custom<string | undefined>({
    env,
    allowed: hexAllowed,
    defaultText: '',
    default: undefined,
    read: readHexAddress,
    why,
  })
}

function nodeUrl(env: string, chain: string): Setting<string | undefined> {
  const why = `A node of ${chain} (JSON-RPC over HTTP): reads payments. Unset: payments there are not taken.`
  return secret(
    custom<string | undefined>({
      env,
      allowed: 'an http(s) address, with or without a query',
      defaultText: '',
      default: undefined,
      read: readWholeUrl,
      why,
    }),
  )
}

function depth(env: string, fallback: number, chain: string, more = ''): Setting<number> {
  const why = `Blocks that a payment of ${chain} is deep, its own counted, until it is credited.${more}`
  return whole({ env, default: fallback, min: 1, max: 10_000, why })
}

export const chains = {
  arweaveAddress: maybeText({
    env: 'PAYMENT_ARWEAVE_ADDRESS',
    allowed: 'a wallet address',
    shape: /^[\w-]{43}$/,
    why: 'Receives payments in AR. Unset: none are taken; on devnet a wallet is made.',
  }),
  ethereumAddress: hexAddress('PAYMENT_ETHEREUM_ADDRESS', 'Receives payments on all chains of the EVM.'),
  solanaAddress: maybeText({
    env: 'PAYMENT_SOLANA_ADDRESS',
    allowed: 'a wallet address in base58',
    shape: /^[1-9A-HJ-NP-Za-km-z]{32,44}$/,
    why: 'Receives payments on Solana.',
  }),
  kyveAddress: maybeText({
    env: 'PAYMENT_KYVE_ADDRESS',
    allowed: 'an address that begins with kyve1',
    shape: /^kyve1[02-9ac-hj-np-z]{38}$/,
    why: 'Receives payments in KYVE.',
  }),
  arioMint: maybeText({
    env: 'PAYMENT_ARIO_MINT',
    allowed: 'a mint of Solana in base58',
    shape: /^[1-9A-HJ-NP-Za-km-z]{32,44}$/,
    why: 'Mint of ARIO on Solana. Unset: no payments in ARIO are taken there.',
  }),
  baseArio: hexAddress('PAYMENT_BASE_ARIO_ADDRESS', 'Contract of ARIO on Base. Unset: none is taken there.'),
  kyveUrl: secret(
    custom<string | undefined>({
      env: 'PAYMENT_KYVE_API_URL',
      allowed: 'an http(s) address, with or without a query',
      defaultText: '',
      default: undefined,
      read: readWholeUrl,
      why: 'A node of KYVE (REST of the Cosmos SDK). Unset: payments there are not taken.',
    }),
  ),
  ethereumUrl: nodeUrl('PAYMENT_ETHEREUM_RPC_URL', 'Ethereum'),
  baseUrl: nodeUrl('PAYMENT_BASE_RPC_URL', 'Base'),
  polygonUrl: nodeUrl('PAYMENT_POLYGON_RPC_URL', 'Polygon'),
  solanaUrl: nodeUrl('PAYMENT_SOLANA_RPC_URL', 'Solana'),
  baseUsdc: custom<string>({
    env: 'PAYMENT_BASE_USDC_ADDRESS',
    allowed: hexAllowed,
    defaultText: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    default: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    read: readHexAddress,
    why: 'Contract of USDC on Base, for networks where it is another one.',
  }),
  arweaveDepth: depth('PAYMENT_ARWEAVE_CONFIRMATIONS', 18, 'Arweave'),
  ethereumDepth: depth('PAYMENT_ETHEREUM_CONFIRMATIONS', 5, 'Ethereum'),
  baseDepth: depth('PAYMENT_BASE_CONFIRMATIONS', 5, 'Base', ' Also for X_402_USDC_RPC_URL.'),
  polygonDepth: depth('PAYMENT_POLYGON_CONFIRMATIONS', 12, 'Polygon'),
  recheckSeconds: whole({
    env: 'PAYMENT_RECHECK_SECONDS',
    default: 10,
    min: 1,
    max: 3600,
    why: 'Payments that are not deep enough are looked at so often.',
  }),
  questionsPerSecond: whole({
    env: 'PAYMENT_CHAIN_QUESTIONS_PER_SECOND',
    default: 10,
    min: 1,
    max: 1000,
    why: 'Reported payments that no payment here is known by: so many are looked for on each chain. Others wait, or get 503.',
  }),
  lostSeconds: whole({
    env: 'PAYMENT_LOST_SECONDS',
    default: 600,
    min: 0,
    max: 86_400,
    why: 'A credited payment that no node knows for so long is taken back: its chain was reorganized.',
  }),
}
