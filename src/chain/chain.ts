import type { Requester } from '../actor/requester.js'
import type { Id } from '../format/id.js'
import type { Refusal } from '../format/refusal.js'
import type { Transaction } from '../format/transaction.js'

/**
 * The base layer for the rest of the program. The shape of every value was checked by the parser. Each method states what the
 * caller must still prove. Refusals:
 *
 * - `unknown`: every queried node denies it
 * - `upstream`: a node failed or gave a malformed answer
 * - `forged`: a node's answer contradicts the requested id
 * - `late`: no node answered in time, or the caller's signal fired
 * - `busy`: too many calls wait already
 * - `too-large`: an answer beyond its bound
 *
 * Where too many calls are under way, the others wait by turns of their clients (`Requester`).
 */
export interface Chain {
  /** A node's information about itself and its tip. */
  info(requester?: Requester): Promise<NodeInfo | Refusal>
  /** Height of the tip, as most of several nodes have it (`AgreedTips`). `before`: what an earlier run of the program knew. */
  height(requester?: Requester, before?: KnownHeight): Promise<number | Refusal>
  /** The block at this height of the queried node's chain; its height is checked, its hash is not. */
  blockByHeight(height: number, requester?: Requester): Promise<Block | Refusal>
  /** The block of this name; the name in the answer is checked. */
  blockByHash(hash: BlockHash, requester?: Requester): Promise<Block | Refusal>
  currentBlock(requester?: Requester): Promise<Block | Refusal>
  /**
   * The transaction, mined ones only. Its id is checked against its signature; with `signed` (the default) the signature is
   * verified too.
   */
  transaction(id: Id, options?: TransactionOptions): Promise<Transaction | Refusal>
  /**
   * The same, signed, as several nodes have it: for what cannot be taken back, where its id does not prove its fields
   * (`isBoundById`). `upstream` where they differ.
   */
  agreedTransaction(id: Id, requester?: Requester): Promise<Transaction | Refusal>
  /** Ids of transactions that wait for a block, as far as the node states; at most 100,000. */
  pending(requester?: Requester): Promise<readonly Id[] | Refusal>
  /** Same as `transaction`, for one that waits for a block; signed. */
  pendingTransaction(id: Id, requester?: Requester): Promise<Transaction | Refusal>
  /** Whether the transaction is mined or pending, and in which block. */
  transactionStatus(id: Id, requester?: Requester): Promise<TransactionStatus | Refusal>
  /**
   * The same as several nodes agree on (`agreedStatus`): for what cannot be taken back, such as credits, or bytes that are given
   * up. One node alone may be wrong, or on the other side of a fork.
   */
  agreedStatus(id: Id, requester?: Requester): Promise<TransactionStatus | Refusal>
  /** Where its data lies in the weave, as the node says: not proven before chunks were. */
  transactionOffset(id: Id, requester?: Requester): Promise<TransactionOffset | Refusal>
  /**
   * The chunk that holds the weave byte `offset` (1-based). Shapes and bounds only: the caller proves the paths, best with
   * `check`: a node whose chunk it refuses counts as failed, and the next one is queried.
   */
  chunk(
    offset: number,
    requester?: Requester,
    check?: (chunk: Chunk) => true | Refusal,
  ): Promise<Chunk | Refusal>
  /**
   * The transaction's data as one stream, `sizeBytes` in all, or a refusal before the first byte. Not proved: the caller hashes.
   * Nodes give data this way up to 12 MiB only.
   */
  transactionData(id: Id, sizeBytes: number, requester?: Requester): Promise<ByteFlow | Refusal>
  /** A recent block hash to sign into a new transaction, with the height to which nodes count it (`AgreedTips`). */
  tip(requester?: Requester): Promise<ChainTip | Refusal>
  /**
   * The least reward in winston for `sizeBytes` of data, which two nodes confirm where there are several; `target` (an address)
   * may cost extra where it is new.
   */
  price(sizeBytes: number, target?: string, requester?: Requester): Promise<bigint | Refusal>
  /** Winston owned by an address. */
  balance(address: string, requester?: Requester): Promise<bigint | Refusal>
  /** Offers a signed transaction, as node JSON, to nodes in turn until one takes it. Refused by all of them: `malformed`. */
  postTransaction(transaction: object, requester?: Requester): Promise<Posted | Refusal>
  /** Offers a chunk with its proof, as node JSON. A node that does not know the data root yet: `unknown`. */
  postChunk(chunk: object, requester?: Requester): Promise<Posted | Refusal>
}

export interface ChainTip {
  /** A recent block: transactions with it are taken for some 50 blocks more. */
  readonly anchor: BlockHash
  readonly height: number
}

export interface KnownHeight {
  readonly height: number
  /** Since when it was known. */
  readonly ageMs: number
}

/** `accepted`: new to the node. `known`: it had it already. */
export type Posted = 'accepted' | 'known'

export interface TransactionOptions extends Partial<Requester> {
  /** Verify the owner's signature too (default). Old transactions carry all their data in it: up to 10 MiB are hashed. */
  readonly signed?: boolean
  /**
   * No more is read than a header without data takes, 128 KiB: `too-large` where nodes send data with it. They do so with
   * format 1 alone, so that says nothing against a node.
   */
  readonly withoutData?: boolean
}

declare const brand: unique symbol

/** A block's indep_hash: 48 bytes as 64 characters of base64url. */
export type BlockHash = string & { readonly [brand]: 'block hash' }

const hashShape = /^[A-Za-z0-9_-]{64}$/

/** The block hash spelled by `text`, or undefined where it is not 64 characters of base64url (every such text is canonical). */
export function parseBlockHash(text: string): BlockHash | undefined {
  return hashShape.test(text) ? (text as BlockHash) : undefined
}

export interface NodeInfo {
  readonly network: string
  readonly height: number
  /** Hash of the tip. */
  readonly current: BlockHash
  readonly blocks: number
  readonly peers: number
}

export interface Block {
  readonly hash: BlockHash
  /** Undefined for the genesis block only. */
  readonly previous?: BlockHash
  readonly height: number
  /** Seconds since 1970. */
  readonly timestamp: number
  /** In the order of the block header, which is not the order of the data in the weave. */
  readonly transactionIds: readonly Id[]
  /** Root of the tree over the block's data roots; undefined before it existed and where the block carries no data. */
  readonly txRoot?: Uint8Array
  /** Bytes of the whole weave after this block: the end offset of its last byte, padding included. */
  readonly weaveSize: number
  /** Bytes this block added, padding included. */
  readonly blockSize: number
  /** What else stands in its header, packed (catalog/block-header.ts). */
  readonly header?: Uint8Array
}

export type TransactionStatus =
  /** `isContested`: a node has it in a block, and the others do not confirm that. `isUnknownToMost`: most nodes deny it. */
  | { readonly kind: 'pending'; readonly isContested?: true; readonly isUnknownToMost?: true }
  | {
      readonly kind: 'mined'
      readonly height: number
      readonly block: BlockHash
      /** Blocks from the transaction's own to the tip, both counted: 1 at the tip. */
      readonly confirmations: number
    }

/** 1-based absolute weave positions; both ends belong to the data: start = end - size + 1. */
export interface TransactionOffset {
  readonly size: number
  readonly start: number
  readonly end: number
}

export interface Chunk {
  /** 1 to 262144 bytes. */
  readonly chunk: Uint8Array
  /** Proof from the data root down to the chunk. */
  readonly dataPath: Uint8Array
  /** Proof from the block's tx_root down to the data root. */
  readonly txPath?: Uint8Array
  /** The node that gave it (its configured address without credentials): for logs and headers. */
  readonly node: string
}

/** A broken flow ends with a Refusal as its last element; a flow that ends without one is complete. */
export interface ByteFlow {
  readonly node: string
  readonly bytes: AsyncIterable<Uint8Array | Refusal>
}
