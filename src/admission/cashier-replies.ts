import { type CashierReply, type PaymentOrder, settleFailed } from './cashier-messages.js'
import type { PaymentRecord } from './payment-records.js'

/** Facilitators' reasons for a used nonce: used by us before a crash, or by somebody who submitted the payment first. */
export const usedReasons = new Set(['invalid_exact_evm_nonce_already_used', 'invalid_transaction_state'])

/** The reason for a payment whose time is over, or has not come. */
export const late = 'invalid_exact_evm_payload_authorization_valid_before'

/** Facilitators refuse what has less than 6 seconds left; the request takes some of them. */
const marginSeconds = 8

/** Whether the time is over in which a payment can be settled. */
export function isLate({ validBefore }: Pick<PaymentOrder, 'validBefore'>, nowMs: number): boolean {
  return validBefore < nowMs / 1000 + marginSeconds
}

/** Facilitators' reasons for a signature that is not the payer's. */
export const unsignedReasons = new Set(['invalid_exact_evm_payload_signature', 'invalid_exact_evm_signature'])

/** The nonce was used with another amount or window: only one of the two can ever settle. */
export const spent: CashierReply = {
  state: 'refused',
  stage: 'verify',
  reason: 'invalid_exact_evm_nonce_already_used',
}

/** Somebody else signed. */
export const unsigned: CashierReply = {
  state: 'refused',
  stage: 'verify',
  reason: 'invalid_exact_evm_payload_signature',
}

/** In a record that was taken over with a signature which only the chain can check: the payer may have signed otherwise. */
export const uncheckedDigest = ''

/** True where nothing is recorded, or this very authorization, or one that nobody has checked. */
export function isSame(record: PaymentRecord | undefined, order: PaymentOrder): boolean {
  return record === undefined || record.digest === uncheckedDigest || record.digest === order.digest
}

/** The payment counts for somebody else, or for another bucket. */
export const boundElsewhere: CashierReply = { state: 'elsewhere' }

/** The reply to a payment whose record says that it is settled. */
export function settledReply({ tokens, transaction }: PaymentRecord): CashierReply {
  return { state: 'settled', tokens, transaction: transaction ?? '' }
}

/** The reply to a payment whose record says that its settlement failed. */
export function refusedReply({ reason, doubtful }: PaymentRecord): CashierReply {
  if (doubtful === true) return { state: 'doubtful' }
  return { state: 'refused', stage: 'settle', reason: reason ?? settleFailed }
}
