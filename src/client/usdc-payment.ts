import { decodeBase64, encodeBase64 } from '../format/base64url.js'
import { encodeHex } from '../format/hex.js'
import { textOfBytes, utf8 } from './bytes.js'
import { ClientError } from './errors.js'
import type { ServiceAnswer } from './service.js'
import type { ClientSigner } from './signer.js'
import { nowMs } from './timing.js'

/** The terms of a service (x402, scheme `exact`), in either version of the protocol. */
export interface PaymentOffer {
  readonly version: 1 | 2
  readonly network: 'base' | 'base-sepolia'
  /** Micro-USDC. */
  readonly amount: bigint
  readonly asset: string
  readonly payTo: string
  readonly maxTimeoutSeconds: number
  /** The requirement as it came; version 2 wants it back. */
  readonly requirement: Readonly<Record<string, unknown>>
  readonly resource: unknown
}

/** Where USDC lives; the domain is part of what is signed, so it is never taken from the service. */
const tokens = {
  base: {
    caip: 'eip155:8453',
    chainId: 8453,
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    name: 'USD Coin',
  },
  'base-sepolia': {
    caip: 'eip155:84532',
    chainId: 84532,
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    name: 'USDC',
  },
} as const

/**
 * Bounds of the time that a payment may be valid for, whatever the service requests. While it is valid no second one is signed
 * for the same content: with less a service could settle one and have the next signed at once.
 */
const [timeoutSecondsMin, timeoutSecondsMax] = [60, 7200] as const
/** How much the clock of the other side may be behind. */
const clockSlackSeconds = 600

/** A service's own time, milliseconds since 1970; undefined where it states none, or browsers do not show it. */
export function timeOf({ headers }: Pick<ServiceAnswer, 'headers'>): number | undefined {
  const atMs = Date.parse(headers.get('date') ?? '')
  return Number.isNaN(atMs) ? undefined : atMs
}

/**
 * Throws where a payment that is signed by this clock could not be settled by that of the service. Its time is not taken over:
 * one that says another year would get a payment that it can settle then.
 */
export function checkClock(answer: Pick<ServiceAnswer, 'headers'>): void {
  const apartSeconds = Math.round((nowMs() - (timeOf(answer) ?? nowMs())) / 1000)
  if (Math.abs(apartSeconds) < clockSlackSeconds) return
  const side = apartSeconds > 0 ? 'ahead of' : 'behind'
  const found = `this clock is ${Math.abs(apartSeconds)} s ${side} the service's`
  throw new ClientError('wrong-clock', found, 'set the clock: nothing was paid')
}

function jsonOfHeader(text: string | null): Record<string, unknown> | undefined {
  const bytes = text === null ? undefined : decodeBase64(text)
  if (bytes === undefined) return undefined
  try {
    const json: unknown = JSON.parse(textOfBytes(bytes))
    return typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** The offers of a 402 that a payment in USDC can answer: of version 2 from its header, of version 1 from the body. */
export function offersOf(answer: ServiceAnswer): PaymentOffer[] {
  const header = jsonOfHeader(answer.headers.get('payment-required'))
  if (header?.x402Version === 2) return readOffers(2, header)
  const body = answer.json as Record<string, unknown> | undefined
  return body?.x402Version === 1 ? readOffers(1, body) : []
}

function readOffers(version: 1 | 2, challenge: Record<string, unknown>): PaymentOffer[] {
  const list = Array.isArray(challenge.accepts) ? (challenge.accepts as Record<string, unknown>[]) : []
  return list.flatMap((requirement) => {
    const { scheme, asset, payTo, maxTimeoutSeconds } = requirement
    const amount = version === 1 ? requirement.maxAmountRequired : requirement.amount
    const network = (['base', 'base-sepolia'] as const).find(
      (name) => requirement.network === (version === 1 ? name : tokens[name].caip),
    )
    if (scheme !== 'exact' || network === undefined) return []
    if (typeof amount !== 'string' || !/^[0-9]{1,18}$/.test(amount)) return []
    if (String(asset).toLowerCase() !== tokens[network].asset.toLowerCase()) return []
    if (typeof payTo !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(payTo)) return []
    const seconds = maxTimeoutSeconds ?? 300
    if (typeof seconds !== 'number' || !Number.isSafeInteger(seconds)) return []
    if (seconds < timeoutSecondsMin) return []
    const offer = {
      version,
      network,
      amount: BigInt(amount),
      asset: tokens[network].asset,
      payTo,
      requirement,
    }
    return [
      { ...offer, maxTimeoutSeconds: Math.min(seconds, timeoutSecondsMax), resource: challenge.resource },
    ]
  })
}

/** A payment that can be sent again and again: its nonce lets it be settled once only. */
export interface SignedPayment {
  readonly header: 'X-PAYMENT' | 'PAYMENT-SIGNATURE'
  readonly value: string
  readonly amount: string
  /** Milliseconds since 1970; from then on it can no longer be settled. */
  readonly validUntilMs: number
}

/**
 * Signs the payment of an offer. Throws `over-cap` above `maxMUSDCAmount`, `no-signer` where the key is none of an EVM network.
 * Nothing is paid until a service settles it.
 */
export async function signPayment(
  offers: readonly PaymentOffer[],
  signer: ClientSigner,
  maxMUSDCAmount: bigint,
): Promise<SignedPayment> {
  const [offer] = offers
  if (offer === undefined)
    throw new ClientError(
      'payment-required',
      'the service offers no payment in USDC on Base',
      'use credits instead',
    )
  const { signTransfer, address } = signer
  if (signTransfer === undefined)
    throw new ClientError('no-signer', 'only an EVM key can pay in USDC', 'use signerOfEthereum, or credits')
  if (offer.amount > maxMUSDCAmount) {
    const found = `the price is ${offer.amount} micro-USDC, the cap ${maxMUSDCAmount}`
    throw new ClientError('over-cap', found, 'raise maxMUSDCAmount if that price is right')
  }
  const { chainId, asset, name } = tokens[offer.network]
  const seconds = Math.floor(nowMs() / 1000)
  const authorization = {
    from: address,
    to: offer.payTo,
    value: String(offer.amount),
    validAfter: String(seconds - clockSlackSeconds),
    validBefore: String(seconds + offer.maxTimeoutSeconds),
    nonce: `0x${encodeHex(crypto.getRandomValues(new Uint8Array(32)))}`,
  }
  const domain = { name, version: '2', chainId, verifyingContract: asset }
  const signature = `0x${encodeHex(await signTransfer(domain, authorization))}`
  const payload = { signature, authorization }
  const { version, network, requirement, resource } = offer
  const envelope =
    version === 1
      ? { x402Version: 1, scheme: 'exact', network, payload }
      : { x402Version: 2, resource, accepted: requirement, payload }
  return {
    header: version === 1 ? 'X-PAYMENT' : 'PAYMENT-SIGNATURE',
    value: encodeBase64(utf8(JSON.stringify(envelope))),
    amount: authorization.value,
    validUntilMs: (seconds + offer.maxTimeoutSeconds) * 1000,
  }
}

/** The statement of a service about a settled payment. */
export interface SettledPayment {
  readonly success: boolean
  readonly transaction: string
  readonly reason: string | undefined
}

/** The settlement in an answer's header; undefined where there is none. */
export function settlementOf(answer: ServiceAnswer): SettledPayment | undefined {
  const { headers } = answer
  const settlement = jsonOfHeader(headers.get('payment-response') ?? headers.get('x-payment-response'))
  if (settlement === undefined) return undefined
  const { success, transaction, errorReason } = settlement
  return {
    success: success === true,
    transaction: typeof transaction === 'string' ? transaction : '',
    reason: typeof errorReason === 'string' ? errorReason : undefined,
  }
}
