import { type CashierReply, type PaymentOrder, settleFailed } from './cashier-messages.js'
import type { PaymentRecord } from './payment-records.js'

/** Facilitators' reasons for a used nonce: used by us before a crash, or by somebody who submitted the payment first. */
export const usedReasons = new Set(['invalid_exact_evm_nonce_already_used', 'invalid_transaction_state'])

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

/** True where nothing is recorded, or this very authorization. */
export function isSame(record: PaymentRecord | undefined, order: PaymentOrder): boolean {
  return record === undefined || record.digest === order.digest
}

/** The reply to a payment whose record says that it is settled. */
export function settledReply({ tokens, transaction }: PaymentRecord): CashierReply {
  return { state: 'settled', tokens, transaction: transaction ?? '' }
}

/** The reply to a payment whose record says that its settlement failed. */
export function refusedReply({ reason }: PaymentRecord): CashierReply {
  return { state: 'refused', stage: 'settle', reason: reason ?? settleFailed }
}
