/**
 * Messages to the cashier, the one actor that settles payments. A gateway's edge threads send them for readers. A payment service
 * has a cashier of its own on its thread, which settles top-ups and sales of items.
 */

/** A payment whose terms were checked (not its signature yet: `X402`), with the data for the facilitator. Plain data. */
export interface PaymentOrder {
  /** Names the payment: chain, payer and nonce; lower case. */
  readonly payment: string
  /** The digest that was signed: two authorizations with one nonce are two payments, and only one can settle. */
  readonly digest: string
  /** Hexadecimal with 0x. Never kept. */
  readonly signature: string
  /** What is kept of it (`signatureDigest`). */
  readonly signed: string
  readonly version: 1 | 2
  readonly payer: string
  /** Smallest units of USDC. */
  readonly units: string
  /** Tokens that it buys, where it pays for reading; else of no use. */
  readonly tokens: number
  /** Seconds; it cannot be settled any more after that. */
  readonly validBefore: number
  /** The requested resource, for the operator's list. */
  readonly resource: string
  /**
   * Who or what gets the settled money. In a gateway: the address of the client whose bucket is filled. In a payment service: a
   * wallet that is topped up, or a sale of an item as one text (`saleBeneficiaryOf`).
   */
  readonly beneficiary: string
  /** Address of the client that brought it, as limits go by: it has a share of what is done at once. Never kept. */
  readonly asker: string
  /** Body of the facilitator's /verify and /settle (JSON). */
  readonly message: string
}

export type CashierRequest =
  | { readonly pay: PaymentOrder }
  /** Would it settle? Moves nothing. */
  | { readonly look: PaymentOrder }

export type CashierReply =
  /** The money has moved and is credited. `tokens` is what this payment bought when it was first seen. */
  | { readonly state: 'settled'; readonly tokens: number; readonly transaction: string }
  /** No money has moved, by the facilitator's answer. `reason` is one of the known codes. */
  | { readonly state: 'refused'; readonly stage: 'verify' | 'settle'; readonly reason: string }
  /** It is bound to another beneficiary, and counts for that one. It may have moved, so nothing is offered. */
  | { readonly state: 'elsewhere' }
  /** Whether it has moved could not be found out, and it is not requested any more. So nothing is offered. */
  | { readonly state: 'doubtful' }
  /** It would settle now: the answer to `look`. Its payer has signed it. */
  | { readonly state: 'good' }
  /** It is settled or being settled already: likewise. Who brings it may have read it on the chain. */
  | { readonly state: 'made' }
  /** Not known yet: the settlement goes on, and another request with the same payment waits for the same one. */
  | { readonly state: 'pending' }
  /** Too many signatures to look at, or too much under way for this client: nothing was done. */
  | { readonly state: 'busy' }
  /** The facilitator cannot be used now; nothing has moved. */
  | { readonly state: 'down' }

/** Which versions of the protocol the facilitator settles, for all threads. Written by the cashier. */
export class Kinds {
  static readonly bytes: number = 4
  readonly #cells: Int32Array

  constructor(readonly memory: SharedArrayBuffer = new SharedArrayBuffer(Kinds.bytes)) {
    this.#cells = new Int32Array(memory)
  }

  set(versions: readonly (1 | 2)[]): void {
    Atomics.store(
      this.#cells,
      0,
      versions.reduce<number>((bits, version) => bits | version, 4),
    )
  }

  /** False until the facilitator has answered once. */
  get known(): boolean {
    return Atomics.load(this.#cells, 0) !== 0
  }

  /** Until the facilitator has stated what it takes, both are offered: nothing can be paid meanwhile, so nothing is lost. */
  has(version: 1 | 2): boolean {
    const bits = Atomics.load(this.#cells, 0)
    return bits === 0 || (bits & version) !== 0
  }
}

export interface LaneOptions {
  /** Payments being settled at most; one more is turned away before any request. */
  readonly settlementsMax: number
  /** How many of them one client may have. */
  readonly settlementsEachMax: number
  /** The same for signatures that only the chain can judge: anybody can make one up at no cost. */
  readonly contractsMax: number
  readonly contractsEachMax: number
}

export interface CashierOptions extends LaneOptions {
  /** The caller waits so long for a settlement; it goes on by itself. */
  readonly waitMs: number
  /** First pause before the next request to the facilitator; it doubles up to 64 times that. */
  readonly retryMs: number
  /** A settlement without a clear answer is given up so long after its request, at the latest. */
  readonly giveUpMs: number
  /** The chain is queried so often, at most, for a payment that failed in doubt. */
  readonly doubtfulEveryMs: number
  /** First pause before the facilitator is queried again for what it supports. */
  readonly supportedRetryMs: number
  readonly supportedEveryMs: number
}

export const cashierDefaults: CashierOptions = {
  waitMs: 5000,
  settlementsMax: 256,
  settlementsEachMax: 16,
  contractsMax: 32,
  contractsEachMax: 4,
  retryMs: 1000,
  giveUpMs: 3600_000,
  doubtfulEveryMs: 60_000,
  supportedRetryMs: 1000,
  supportedEveryMs: 600_000,
}

/** The reason of a settlement that failed without one that clients may see. */
export const settleFailed = 'unexpected_settle_error'

/** Reasons of facilitators that are passed on to clients. Others are free text, sometimes with addresses in it. */
const reasons = new Set(
  (
    `insufficient_funds invalid_network invalid_scheme invalid_transaction_state ${settleFailed} ` +
    'unexpected_verify_error invalid_payload invalid_payment_requirements invalid_x402_version unsupported_scheme ' +
    'invalid_exact_evm_payload_signature invalid_exact_evm_payload_recipient_mismatch ' +
    'invalid_exact_evm_payload_authorization_valid_before invalid_exact_evm_payload_authorization_valid_after ' +
    'invalid_exact_evm_payload_authorization_value invalid_exact_evm_signature invalid_exact_evm_recipient_mismatch ' +
    'invalid_exact_evm_authorization_value invalid_exact_evm_insufficient_balance ' +
    'invalid_exact_evm_nonce_already_used invalid_exact_evm_transaction_simulation_failed ' +
    'invalid_exact_evm_transaction_failed asset_not_deployed_contract settlement_pending'
  ).split(' '),
)

/** The reason for the client, from that of the facilitator. */
export function publicReason(given: unknown, other: string): string {
  return typeof given === 'string' && reasons.has(given) ? given : other
}
