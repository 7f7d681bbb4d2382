import type { Id } from '../../format/id.js'
import type { ItemCharge } from '../charging/charging.js'
import type { Purchase } from '../charging/sales.js'
import type { UploadAnswer } from '../requests/upload-answers.js'

/** How an item is accepted. */
export interface AcceptTerms {
  /** Called when the signature is verified. An answer: the item is not to be accepted any more. */
  readonly onVerified?: (id: Id) => Promise<UploadAnswer | undefined>
  /** Its price is reserved already. */
  readonly charge?: ItemCharge
  /** It is paid for by a payment of its own. */
  readonly purchase?: Purchase
  /** SHA-256 (base64) of the whole item as the sender states it. The item's reader must have been set to compute it. */
  readonly digest?: string | undefined
  /** The service has signed it for somebody else: its tags move no credits. */
  readonly isSignedHere?: true
}
