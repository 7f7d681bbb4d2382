import type { RecordOwner } from '../admission/payment-owners.js'
import type { Refusal } from '../format/refusal.js'

/**
 * What the upload service asks the payment service. Every order is named by the id of its item and may be given again: it then
 * has the answer of the first time. Amounts are winc as decimal text, because they are of any length.
 */

/** Who pays for an item. */
export interface Payer {
  /** Address of the signer, as its own network writes it (proof/owner-address.ts, `nativeAddress`). */
  readonly address: string
  readonly signatureType: number
  /** The address of the key in receipts (`aliasOf`): credits that were sent there belong to the same wallet. */
  readonly alias?: string
  /** Wallets whose approvals pay first, in this order. */
  readonly paidBy: readonly string[]
  /** `list-only`: the signer's own credits are not touched. Absent: they pay the rest. */
  readonly directive?: 'list-or-signer' | 'list-only'
}

export interface ReserveOrder extends Payer {
  readonly itemId: string
  /** Size of the whole signed item. */
  readonly bytes: number
  /** Name of this one order, by which it can be withdrawn: no other order ever has it. */
  readonly ticket?: string
  /** Name of the upload service that orders it, where there are several: what it spends has paid no other one. */
  readonly service?: string
}

/** Names an order to reserve whose outcome may not be known. */
export interface WithdrawOrder {
  readonly itemId: string
  /** The ticket of the order that is withdrawn. */
  readonly ticket: string
}

/** Whoever asks need not have signed anything: the payer is what an item says of itself. */
export interface CheckOrder extends Payer {
  readonly bytes: number
  /** Something may be reserved for it already. */
  readonly itemId?: string
  /** IP address of the client that causes it, by which it has its turn; absent: this machine's own. */
  readonly asker?: string
  /** It is about no upload: it does not wait in line with those that are. */
  readonly isQuestion?: true
}

/** Credits are reserved for the item: `settle` or `refund` must come. */
export interface Reserved {
  readonly paid: true
  readonly winc: string
}

/** The credits are not enough. Nothing was reserved. */
export interface Unpaid {
  readonly paid: false
  /** What it costs. */
  readonly winc: string
  /** Nobody has ever put credits there. */
  readonly isUnknownWallet: boolean
  /** Another upload service has accepted the item (`spent`), or is about to (`held`). */
  readonly elsewhere?: 'spent' | 'held'
}

export interface Checked {
  readonly isEnough: boolean
  readonly isUnknownWallet: boolean
  /** What it costs. */
  readonly winc: string
  /** What the signer and the approvals of `paidBy` have together. */
  readonly balance: string
}

export interface ApproveOrder {
  /** Id of the item that approves: the name of the approval. */
  readonly itemId: string
  readonly payingAddress: string
  /** As `Payer.alias`. */
  readonly payingAlias?: string
  readonly approvedAddress: string
  readonly winc: string
  readonly expiresInSeconds?: number
}

export interface RevokeOrder {
  readonly itemId: string
  readonly payingAddress: string
  /** As `Payer.alias`. */
  readonly payingAlias?: string
  readonly approvedAddress: string
}

/** An approval as clients read it. */
export interface ApprovalView {
  readonly approvalDataItemId: string
  readonly approvedAddress: string
  readonly payingAddress: string
  readonly approvedWincAmount: string
  readonly usedWincAmount: string
  /** ISO 8601. */
  readonly creationDate: string
  readonly expirationDate?: string
  readonly inactiveReason?: 'expired' | 'used' | 'revoked'
  readonly inactiveDate?: string
  readonly revokeDataItemId?: string
}

/**
 * What was wanted cannot be; `text` is for the client, word for word. `status`: 400, 402 or 404. Nothing has happened.
 */
export interface Denied {
  readonly denied: true
  readonly status: 400 | 402 | 404
  readonly text: string
}

/**
 * Credits, as the upload service uses them. No method rejects. A refusal (`busy`, `late`, `upstream`) means that the payment
 * service was not reached or did not answer. It is then unknown whether the order was carried out: repeat the same order, or
 * `withdraw` it.
 */
export interface CreditsPort {
  /** Price of an item of so many bytes: affine, with an amount for each item. */
  price(bytes: number): Promise<{ readonly winc: string } | Refusal>
  /** Would it be enough? Reserves nothing, and writes nothing: the item's signature may not have been checked. */
  check(order: CheckOrder): Promise<Checked | Refusal>
  /** Reserves what the item costs. Again for the same item: what was reserved the first time, and no more. */
  reserve(order: ReserveOrder): Promise<Reserved | Unpaid | Refusal>
  /** The item was accepted: what was reserved is spent. '0': nothing is reserved for it, which should never happen. */
  settle(itemId: string): Promise<{ readonly winc: string } | Refusal>
  /** The item was not accepted: refunds what was reserved or spent for it, once, however often it is called. */
  refund(itemId: string): Promise<{ readonly winc: string } | Refusal>
  /**
   * An order to reserve is void: what it reserved is refunded, and where it comes only after this it reserves nothing. What
   * another order reserves for the item stays.
   */
  withdraw(order: WithdrawOrder): Promise<{ readonly winc: string } | Refusal>
  approve(order: ApproveOrder): Promise<ApprovalView | Denied | Refusal>
  /** Ends all approvals of the pair; the rest goes back. */
  revoke(order: RevokeOrder): Promise<readonly ApprovalView[] | Denied | Refusal>
}

/** True where the order was denied with a reason for the client. */
export function isDenied(value: object): value is Denied {
  return 'denied' in value
}

/** An answer in the words of x402: an offer, or why a payment was not taken. */
export interface UsdcAnswer {
  readonly status: number
  readonly json: unknown
  /** Header lines, each with CRLF in front. */
  readonly lines: string
  /** Another upload service has accepted the item (`spent`), or is about to (`held`): nothing more was paid for it. */
  readonly elsewhere?: 'spent' | 'held'
  /** With `elsewhere`: the order is no sale of its own. It is paid by this one, or (`pending`) will be. */
  readonly first?: FirstSale | 'pending'
}

/** The identifier of a payment (extension payment-identifier) names another request of its payer. */
export const identifierConflict: UsdcAnswer = {
  status: 409,
  json: {
    error: 'payment_identifier_conflict',
    message: 'this payment-identifier was used for another request',
  },
  lines: '',
}

/** What is to be paid in USDC for one item alone. */
export interface UsdcWanted {
  /** Size of the whole signed item. */
  readonly bytes: number
  /** Absolute address of the requested resource. */
  readonly resource: string
  readonly mimeType: string
}

/** A payment in USDC for one item alone. */
export interface UsdcOrder extends UsdcWanted {
  /** Id of the item, or name of the upload: what the payment is good for, and nothing else. */
  readonly itemId: string
  /** Wallet that is credited with what was paid and not used; absent: the payer's own. */
  readonly address?: string
  /** Value of the header X-PAYMENT (version 1) or PAYMENT-SIGNATURE (2). */
  readonly header: string
  readonly version: 1 | 2
  /** Address of the client that brought it, as limits go by. */
  readonly asker: string
  /** What is paid beyond the price becomes credits; else it is spent with it. */
  readonly keepsRest?: true
  /** As in `ReserveOrder`: the upload service that has the item and accepts it when this is paid. */
  readonly service?: string
  /**
   * What the payment, and its identifier, are good for at any upload service: the id of a signed item, or a digest of what is
   * signed there, with the owner of the item. Absent: for this item alone, and the identifier says nothing.
   */
  readonly sale?: { readonly request: string; readonly owner: string }
  /**
   * Id of the item of the first sale (`UsdcAnswer.first`), where the orderer has looked, and no machine of its cluster has
   * accepted that item. Without this nothing that was paid for it becomes credits.
   */
  readonly notAccepted?: string
}

/** The sale of the same request that came first, by the same payment or identifier. */
export interface FirstSale extends Omit<UsdcPaid, 'paid' | 'winc'> {
  readonly itemId: string
  readonly owner: string
  /** Smallest units of USDC. */
  readonly units: string
}

/**
 * A payment would settle, and its payer has signed it; or it has settled. `units`: what its bytes cost, in smallest units of
 * USDC. '0': it has settled, and whoever reads it on the chain can bring it. Absent: the service is of an earlier version.
 */
export interface UsdcGood {
  readonly good: true
  readonly units?: string
}

/**
 * The money is here, and reserved for the item, as much as its bytes cost: `CreditsPort.settle` or `refund`, or
 * `UsdcPort.finish`, must come. No other order takes it away.
 */
export interface UsdcPaid {
  readonly paid: true
  /** Name of the payment. */
  readonly payment: string
  readonly transaction: string
  /** 0x and 40 hexadecimal digits, lower case. */
  readonly payer: string
  readonly network: string
  /** What is reserved for the item, or spent, by this payment or by others. */
  readonly winc: string
  /** Header lines with the receipt of the payment. */
  readonly lines: string
  /** It is kept as `isAccepting` orders. Absent: that was not ordered, or the payment service is of an earlier version. */
  readonly isKept?: true
}

/**
 * State of a payment for an item. `unknown`: it was neither requested nor settled. `other`: it paid for something else, or became
 * credits, or another upload service has accepted the item. `open`: call again.
 */
export type UsdcOutcome =
  | UsdcPaid
  | { readonly paid: false; readonly state: 'open' | 'unknown' | 'other' | 'failed' }

/** Nobody refunds a payment for so long after the service that has it stated that it accepts its item. */
export const acceptingMs = 600_000

export interface UsdcFinished {
  readonly status: 'confirmed' | 'refunded' | 'fraud_penalty'
  /** Spent. */
  readonly winc: string
  /** Given back as credits. */
  readonly refundWinc: string
}

/** Percent of an announced size: as much more or less makes no difference. */
const tolerance = 5n

/** Whether something is larger than what was announced and paid for. */
export function isBeyond(announced: number, actual: number): boolean {
  return BigInt(actual) * 100n > BigInt(announced) * (100n + tolerance)
}

/** The part of a payment for `announced` bytes that `actual` bytes cost. */
export function usdcShare(paid: bigint, announced: number, actual: number): UsdcFinished {
  const [wanted, real] = [BigInt(announced), BigInt(actual)]
  const whole = { winc: String(paid), refundWinc: '0' }
  if (isBeyond(announced, actual)) return { status: 'fraud_penalty', ...whole }
  if (real * 100n >= wanted * (100n - tolerance)) return { status: 'confirmed', ...whole }
  const share = (paid * real + wanted - 1n) / wanted
  const spent = share < 1n ? 1n : share
  return { status: 'refunded', winc: String(spent), refundWinc: String(paid - spent) }
}

/** Items that are paid for in USDC by x402. None of these ever rejects; a refusal `unknown`: no USDC is taken. */
export interface UsdcPort {
  /** The 402 for an item. `fault`: why a payment for it was not taken. */
  offer(
    wanted: UsdcWanted & { readonly fault?: { readonly error: string; readonly message: string } },
  ): Promise<UsdcAnswer | Refusal>
  /** Would it settle? Moves nothing. */
  look(order: UsdcOrder): Promise<UsdcGood | UsdcAnswer | Refusal>
  /** Settles the payment, once, however often it is called. With 503 it may still settle: call `outcome`. */
  pay(order: UsdcOrder): Promise<UsdcPaid | UsdcAnswer | Refusal>
  /**
   * `bytes`: of the item, as it was ordered. `service`, `request`: as in the order. `isAccepting`: where it is paid, that service
   * accepts the item now: what has paid is kept for it for `acceptingMs`.
   */
  outcome(sale: {
    readonly payment: string
    readonly itemId: string
    readonly bytes: number
    readonly service?: string
    readonly request?: string
    readonly isAccepting?: true
  }): Promise<UsdcOutcome | Refusal>
  /** The item had so many bytes: spends what they cost of what was paid, and credits the rest where that is much. */
  finish(order: { readonly itemId: string; readonly bytes: number }): Promise<UsdcFinished | Refusal>
  /** Who takes a payment, of all sellers with this wallet, and for what: who is named, unless another one was before. */
  readonly own: RecordOwner
  /** What so many bytes cost, in smallest units of USDC. */
  units(bytes: number): Promise<{ readonly units: string; readonly network: string } | Refusal>
}

/** Queries of the payment service to the upload service: free bytes are counted there. */
export interface FreeTier {
  /**
   * Bytes that a wallet may still upload for free from the network of this client; null: as many as it wants; 0: none. '' asks
   * for nobody in particular.
   */
  remaining(address: string, client: string): Promise<number | null | Refusal>
}

/** Where a payment service takes calls of `UsdcPort` as JSON, behind a token of services. */
export const ordersPath = '/v1/x402/orders'
