import type { Cell } from '../actor/shared.js'
import type { Id } from '../format/id.js'
import type { Attributes } from './attributes.js'
import type { BulkReply, BulkRequest } from './bulk-protocol.js'
import type { IndexOutcome, IndexRequest } from './index-protocol.js'
import type { JudgedItem } from './judged-items.js'

/** Messages to the keeper of the catalog: the one writer. Bytes of items never travel here. */
export type CatalogRequest =
  /** Merges what was learned: present fields replace, absent ones stay; `verified` never falls back to false. */
  | { readonly kind: 'learn'; readonly attributes: readonly Attributes[] }
  /** Items of the bundle with this digest were judged where they lie in it (`packJudged`). Nothing where it is not on disk. */
  | { readonly kind: 'judged'; readonly bundle: Uint8Array; readonly items: Uint8Array }
  /** A blob of this size is on disk now. `isSmall`: in a segment, which counts its own bytes and uses. */
  | {
      readonly kind: 'kept'
      readonly digest: Uint8Array
      readonly sizeBytes: number
      readonly isSmall?: boolean
    }
  /** These blobs were served since the last word. */
  | { readonly kind: 'touched'; readonly digests: readonly Uint8Array[] }
  /** The blob is about to be removed from disk. `touchedMs`: its place in the order of uses, whatever its record says. */
  | { readonly kind: 'dropped'; readonly digest: Uint8Array; readonly touchedMs?: number }
  /** The digest known for this id proved wrong: forget digest and verified. */
  | { readonly kind: 'distrust'; readonly id: Id }
  /** What is left to prove about this id cannot be proven now (its blob is gone, nobody knows its root): do not list it. */
  | { readonly kind: 'resigned'; readonly id: Id }
  /**
   * These announced items will be in no block: they are pending no more, and their ids mean no bytes any more, even where the
   * bytes are still on disk. What was verified, or is in a block, stays.
   */
  | { readonly kind: 'forget-items'; readonly ids: readonly Id[] }
  /** All of them in one transaction, in order: either all happen or none. */
  | { readonly kind: 'all'; readonly requests: readonly CatalogRequest[] }
  /** The index of the chain. What is unwound also loses the height that was learned of it. */
  | IndexRequest
  | BulkRequest

/** Every reply comes after the commit that holds the change, but for those of an import in bulk. */
export interface CatalogReply {
  readonly kind: 'committed'
  /** What an `IndexRequest` did; the sums of all that stand in an `all`. */
  readonly index?: IndexOutcome
  /** How far a session in bulk is. What a `bulk` did is in memory, and not in the index before it is listed. */
  readonly bulk?: BulkReply
}

/** The reading side: any thread, synchronous, a consistent snapshot. Never fetches. */
export interface Catalog {
  /** What is known of `id`; undefined where nothing is. */
  attributes(id: Id): Attributes | undefined
  /** Size in bytes of the blob if the store holds it. */
  blobSize(digest: Uint8Array): number | undefined
  /** An id whose content the blob with this digest is; undefined where the store does not hold it, or none is known. */
  holder(digest: Uint8Array): Id | undefined
  /**
   * SHA-256 of the payload of an item that was judged at this place in the bundle on disk with this digest; undefined: nobody has
   * judged it there.
   */
  judged(bundle: Uint8Array, id: Id, place: JudgedItem['place']): Uint8Array | undefined
  /**
   * Changes whenever anything about an id of the same shard may have changed (shared memory): an entry prepared under
   * another generation must be read again.
   */
  generation(id: Id): number
  /** Where the generation of `id` stands. Absent: not in shared memory. */
  generationCell?(id: Id): Cell
}
