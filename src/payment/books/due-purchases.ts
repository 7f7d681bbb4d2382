import type { RecordChange } from '../../ledger/ledger-port.js'

/** Purchases of names that are paid and not carried out yet: keys are their nonces. */
export const duePurchaseKind = 'name-pending'

/** The card was charged and its credits are in the wallet of the owner: what is written with them. */
export function duePurchase(nonce: string): RecordChange {
  return { kind: duePurchaseKind, key: nonce, value: '1' }
}
