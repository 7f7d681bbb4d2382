import type { Requester } from '../actor/requester.js'
import type { Row } from '../catalog/row.js'
import type { Id } from '../format/id.js'
import type { Refusal } from '../format/refusal.js'

/** Fields of the header of a payload that are not in the index. */
export interface SignedHeader {
  readonly signature: Uint8Array
  readonly owner: Uint8Array
}

/** Reads signatures and keys that the index does not keep from the content, verified against the id. */
export interface HeaderSource {
  /**
   * Never rejects. A header whose signature does not hash to `id` is a refusal, not an answer. `row`: what is known of it
   * already. `requester`: whose turns a call to a node takes, and until when it is waited for.
   */
  header(id: Id, row?: Row, requester?: Requester): Promise<SignedHeader | Refusal>
}

/** Nothing to read from: what the index does not keep is unavailable. */
export const noHeaders: HeaderSource = {
  header: async () => ({ refused: 'upstream', fault: 'self', message: 'headers are not read here' }),
}
