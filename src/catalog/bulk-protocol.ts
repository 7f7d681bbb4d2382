import type { Attributes } from './attributes.js'
import type { IndexRequest } from './index-protocol.js'

/** What brings rows of blocks. */
export type BulkRows = Extract<IndexRequest, { kind: 'index-block' | 'index-transactions' | 'index-items' }>

/** What is done in the transaction in which the rows before it come into the index: see `CatalogRequest`. */
export type BulkAside =
  | { readonly kind: 'learn'; readonly attributes: readonly Attributes[] }
  | { readonly kind: 'judged'; readonly bundle: Uint8Array; readonly items: Uint8Array }

export type BulkPart = BulkRows | BulkAside

/**
 * An import in bulk, past the tables. What it brings is taken into memory and is not seen in the index before it is listed:
 * when there is enough for a segment, at `bulk-end`, or when another request changes the index. A session ends where what was
 * taken is lost; what was taken before that and not listed must be imported again.
 */
export type BulkRequest =
  /** Begins a session; the one before it is over. */
  | { readonly kind: 'bulk-begin' }
  /** Taken as if each were a request of its own, in order. */
  | { readonly kind: 'bulk'; readonly session: number; readonly parts: readonly BulkPart[] }
  /** Lists all that was taken. */
  | { readonly kind: 'bulk-end'; readonly session: number }

/** How far an import in bulk has come. */
export interface BulkReply {
  readonly session: number
  /** Requests of the session that were taken, and of them those whose rows are in the index. */
  readonly taken: number
  readonly listed: number
}
