import type { Refusal } from '../../format/refusal.js'
import type { TokenName } from '../prices/rates.js'

/** A payment to the service as its chain has it. */
export interface SeenPayment {
  readonly id: string
  /** In the token's smallest unit. */
  readonly quantity: bigint
  readonly sender: string
  /** The address by which the sender's key can spend credits, where it is not `sender`. */
  readonly account?: string
  readonly recipient: string
  /** The beneficiary, where the sender names another one than himself. */
  readonly beneficiary?: string
  /** Deep enough to be credited. */
  readonly isFinal: boolean
  /** Deep enough never to be looked at again. */
  readonly isBeyondWatching: boolean
  readonly height?: number
}

/** What is wrong with a transaction, for the client: it will never be a payment. */
export interface NoPayment {
  readonly wrong: string
  /** Money came to the service with it all the same, and nobody is credited: the operator has to decide. */
  readonly isUnclear?: boolean
}

/** One chain, and what its tokens are called. */
export interface ChainReader {
  readonly chain: string
  readonly tokens: readonly TokenName[]
  /**
   * `recipient`: who was paid when it was seen before, where the settings name another wallet since. `absent`: the chain has no
   * such transaction (yet). Refusals: no node answered. Rejects only for bugs.
   */
  find(
    token: TokenName,
    id: string,
    recipient?: string,
  ): Promise<SeenPayment | NoPayment | 'absent' | Refusal>
  close(): Promise<void>
}

/**
 * How deep a payment is. `confirmations`: blocks on top of it, its own counted; `wanted`: with so many it is credited. With twice
 * as many it is not looked at again.
 */
export function depthsOf(
  confirmations: number,
  wanted: number,
): Pick<SeenPayment, 'isFinal' | 'isBeyondWatching'> {
  return { isFinal: confirmations >= wanted, isBeyondWatching: confirmations >= wanted * 2 }
}

/** A text that names the beneficiary of a payment, as wallets of several chains carry it. */
const beneficiaryShape = /turboCreditDestinationAddress=([\w-]{1,128})/

/** The wallet that a payment names in its text; undefined: none. */
export function beneficiaryIn(text: string): string | undefined {
  return beneficiaryShape.exec(text)?.[1]
}
