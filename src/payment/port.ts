import type { Refusal } from '../format/refusal.js'

/**
 * What the upload service asks the payment service. Every order is named by the id of its item and may be given again: it then
 * has the answer of the first time. Amounts are winc as decimal text, because they are of any length.
 */

/** Who pays for an item. */
export interface Payer {
  /** Of the signer, as its own network writes it (proof/address.ts, `nativeAddress`). */
  readonly address: string
  readonly signatureType: number
  /** The address of the key in receipts (`normalizedAddress`): credits that were sent there belong to the same wallet. */
  readonly alias?: string
  /** Wallets whose approvals pay first, in this order. */
  readonly paidBy: readonly string[]
  /** `list-only`: the signer's own credits are not touched. Absent: they pay the rest. */
  readonly directive?: 'list-or-signer' | 'list-only'
}

export interface ReserveOrder extends Payer {
  readonly itemId: string
  /** Of the whole signed item. */
  readonly bytes: number
}

export interface CheckOrder extends Payer {
  readonly bytes: number
}

/** Credits are held back for the item: `settle` or `refund` must come. */
export interface Reserved {
  readonly paid: true
  readonly winc: string
}

/** The credits are not enough. Nothing was held back. */
export interface Unpaid {
  readonly paid: false
  /** What it costs. */
  readonly winc: string
  /** Nobody has ever put credits there. */
  readonly isUnknownWallet: boolean
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
  /** Id of the item that says so: the name of the approval. */
  readonly itemId: string
  readonly payingAddress: string
  readonly approvedAddress: string
  readonly winc: string
  readonly expiresInSeconds?: number
}

export interface RevokeOrder {
  readonly itemId: string
  readonly payingAddress: string
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
 * Credits, as the upload service sees them. None of these ever rejects. A refusal means that the payment service could not be
 * asked or could not answer (`busy`, `late`, `upstream`): whether the order was carried out is then not known, and the same
 * order must be given again, or `refund`.
 */
export interface CreditsPort {
  /** Price of an item of so many bytes: affine, with an amount for each item. */
  price(bytes: number): Promise<{ readonly winc: string } | Refusal>
  /** Would it be enough? Holds nothing back. */
  check(order: CheckOrder): Promise<Checked | Refusal>
  /** Holds back what the item costs. Again for the same item: what was held back the first time, and no more. */
  reserve(order: ReserveOrder): Promise<Reserved | Unpaid | Refusal>
  /** The item was accepted: what was held back is spent; '0' where nothing is held back for it. */
  settle(itemId: string): Promise<{ readonly winc: string } | Refusal>
  /** The item was not accepted: gives back what was held back or spent for it, once, however often it is asked. */
  refund(itemId: string): Promise<{ readonly winc: string } | Refusal>
  approve(order: ApproveOrder): Promise<ApprovalView | Denied | Refusal>
  /** Ends all approvals of the pair; the rest goes back. */
  revoke(order: RevokeOrder): Promise<readonly ApprovalView[] | Denied | Refusal>
}

/** True where the client is to be told why not. */
export function isDenied(value: object): value is Denied {
  return 'denied' in value
}

/** What the payment service asks the upload service: free bytes are counted there. */
export interface FreeTier {
  /** Bytes that a wallet may still upload for free; null: as many as it wants; 0: none. '' asks for nobody in particular. */
  remaining(address: string): Promise<number | null>
}
