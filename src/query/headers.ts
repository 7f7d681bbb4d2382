import type { Id } from '../format/id.js'
import type { Refusal } from '../format/refusal.js'

/** What stands in front of a payload and is not in the index. */
export interface SignedHeader {
  readonly signature: Uint8Array
  readonly owner: Uint8Array
}

/**
 * The way to signatures and keys that the index does not keep: out of the content, proven to belong to the
 * id.
 */
export interface HeaderSource {
  /** Never rejects. A header whose signature does not hash to `id` is a refusal, not an answer. */
  header(id: Id): Promise<SignedHeader | Refusal>
}

/** Nothing to read from: what the index does not keep is unavailable. */
export const noHeaders: HeaderSource = {
  header: async () => ({ refused: 'upstream', fault: 'self', message: 'headers are not read here' }),
}
