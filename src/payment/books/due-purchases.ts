import type { RecordChange } from '../../ledger/ledger-port.js'

/** Purchases of names that are paid and not carried out yet: keys are their nonces. */
export const duePurchaseKind = 'name-pending'

/** The record that is written in the commit that credits a card payment for the purchase of a name. */
export function duePurchase(nonce: string): RecordChange {
  return { kind: duePurchaseKind, key: nonce, value: '1' }
}
