import type { Id } from '../format/id.js'
import type { Tag } from '../format/tag.js'

/** What transactions and data items have in common, as they enter the index. */
export interface RowInput {
  readonly id: Id
  /** Bytes of the payload. */
  readonly size: number
  /** Public key; empty where it is not known. */
  readonly owner: Uint8Array
  /** SHA-256 of the public key, 32 bytes. */
  readonly ownerAddress: Uint8Array
  /** Empty where there is none. */
  readonly target: Uint8Array
  readonly anchor: Uint8Array
  readonly tags: readonly Tag[]
  /** Kept where it is given; absent, it is read from the content when somebody asks. */
  readonly signature?: Uint8Array
  /** Number of the signature scheme (ANS-104); absent for transactions of the first kinds. */
  readonly signatureType?: number
}

/** A transaction of the base layer. */
export interface TransactionInput extends RowInput {
  /** Its position in the block; 0 while pending. */
  readonly index: number
  readonly format: number
  /** In the smallest unit. */
  readonly quantity: bigint
  /** In the smallest unit. */
  readonly reward: bigint
  /** What the block's tree has for it, 32 bytes; empty without data, and of format 1 where the data was not at hand. */
  readonly dataRoot: Uint8Array
  /**
   * Offset of the last byte of its data in the weave (1-based); 0 while not known, and for transactions
   * without data.
   */
  readonly weaveEnd: number
}

/** A data item inside a root transaction. */
export interface ItemInput extends RowInput {
  /** The bundle that directly holds it. */
  readonly parentId: Id
  /** Start of the whole item in the root transaction's data. */
  readonly rootItemOffset: number
  /** Start of the whole item in its parent's payload. */
  readonly parentItemOffset: number
  /** Bytes in front of the payload. */
  readonly headerSize: number
}

/** A block of the base layer. Ids are base64url of 48 bytes. */
export interface BlockInput {
  readonly height: number
  readonly id: string
  readonly previous: string
  /** Seconds since 1970. */
  readonly timestamp: number
  /** Cumulative end of the weave after this block, in bytes; decimal. */
  readonly weaveSize: string
  /** Transactions that the block lists, whether or not they could be had. */
  readonly transactionCount: number
  /** The rest of its header (block-header.ts); absent where the request lacks it. */
  readonly header?: Uint8Array
}

/** Messages that change the index. Rows travel packed (pack.ts): one buffer, not thousands of small ones. */
export type IndexRequest =
  /** A block with the transactions that could be had. A transaction that was pending moves into the block. */
  | { readonly kind: 'index-block'; readonly block: BlockInput; readonly transactions: Uint8Array }
  /** Transactions of a known block that came later than the block. */
  | { readonly kind: 'index-transactions'; readonly height: number; readonly transactions: Uint8Array }
  /**
   * Items of one root transaction, at most some thousand a message. Items of a root transaction that is not
   * known are skipped, unless they are `optimistic`: then they are pending.
   */
  | {
      readonly kind: 'index-items'
      readonly rootId: Id
      readonly items: Uint8Array
      readonly optimistic?: boolean
      /** Nobody checked who signed these items: each gives way to one that was checked, wherever the chain has it. */
      readonly isUnjudged?: boolean
    }
  /** Transactions that are known but in no block yet. */
  | { readonly kind: 'index-pending'; readonly transactions: Uint8Array }
  /** Ends in the weave that were learned later. Unknown ids, items and what is in no block are skipped. */
  | {
      readonly kind: 'index-offsets'
      readonly offsets: readonly { readonly id: Id; readonly weaveEnd: number }[]
    }
  /** Public keys by their addresses (`packOwners`), for rows that come without. */
  | { readonly kind: 'index-owners'; readonly owners: Uint8Array }
  /** Drops the items with these row keys (16 bytes each, one behind the other); those that are gone are skipped. */
  | { readonly kind: 'remove-items'; readonly keys: Uint8Array }
  /** Drops the items with these ids (32 bytes each, one behind the other) that are in no block; others are skipped. */
  | { readonly kind: 'remove-pending'; readonly ids: Uint8Array }
  /** Drops transactions that have been pending since before one second, and items since before another one (not later). */
  | { readonly kind: 'expire-pending'; readonly beforeSeconds: number; readonly itemsBeforeSeconds: number }
  /** Drops every block from this height on, with all that is in it. */
  | { readonly kind: 'unwind'; readonly fromHeight: number }

/** What became of the rows of a message. */
export interface IndexOutcome {
  readonly added: number
  /** Already there, at the same or an earlier place. */
  readonly known: number
  /** Not indexed: their root is unknown, or their key is taken. */
  readonly skipped: number
  readonly removed: number
}
