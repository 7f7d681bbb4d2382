import { type Database, open, type RootDatabase } from 'lmdb'
import type { Id } from '../format/id.js'
import type { NodeRecord, Place } from './base-layer.js'

/** A block with all that is needed to take it back. */
export interface BlockRow {
  readonly header: BlockHeader
  /** Ids in the order of the weave. */
  readonly order: readonly Id[]
  /** What the block did to wallets; amounts as signed decimal text. */
  readonly changes: readonly WalletChange[]
}

/** The fields of a header that the chain itself computes with. Amounts and sizes are decimal text, as nodes write them. */
export interface BlockHeader extends NodeRecord {
  readonly indep_hash: string
  readonly previous_block: string
  readonly height: number
  readonly timestamp: number
  readonly txs: readonly Id[]
  readonly tx_root: string
  readonly weave_size: string
  readonly block_size: string
  readonly reward_pool: string
  readonly cumulative_diff: string
  readonly wallet_list: string
  readonly hash_list_merkle: string
}

export interface WalletChange {
  readonly address: string
  readonly winston: string
  /** The wallet's last transaction before; absent where the block did not change it. */
  readonly lastBefore?: string
}

export interface Wallet {
  /** Decimal text. */
  readonly balance: string
  /** Id of the last mined transaction, or ''. */
  readonly last: string
}

/** A transaction that was found sound, with what the chain computes with read out of it. */
export interface TransactionRow {
  /** As nodes give it, without data. */
  readonly json: NodeRecord
  readonly format: 1 | 2
  /** Address that pays. */
  readonly owner: string
  /** Address, or ''. */
  readonly target: string
  /** Winston as decimal text. */
  readonly quantity: string
  readonly reward: string
  /** A block hash, the owner's last transaction, or ''. */
  readonly anchor: string
  /** Bytes of data. */
  readonly size: number
  /** Base64url; computed for format 1; '' without data. */
  readonly dataRoot: string
}

export interface MinedRow extends Place {
  /** Proof from tx_root to the data root; absent without data. */
  readonly txPath?: Uint8Array
}

export interface ChunkRow {
  readonly chunk: Uint8Array
  readonly dataPath: Uint8Array
}

/** Data root, data size, end of the chunk in the data: chunks lie by what they prove, not by who posted them. */
export type ChunkKey = [root: string, size: number, end: number]

/**
 * The chain on disk: one LMDB environment, so that a block and all its consequences are one transaction, and a process killed
 * at any moment leaves the chain as it was before or after.
 */
export class Ledger {
  readonly #root: RootDatabase
  /** Height to block hash: the chain that counts. */
  readonly heights: Database<string, number>
  /** Every block ever made, also those a fork replaced. */
  readonly blocks: Database<BlockRow, string>
  readonly transactions: Database<TransactionRow, string>
  readonly mined: Database<MinedRow, string>
  /** Last weave byte of each transaction with data, to its id. */
  readonly ends: Database<string, number>
  /** Ids that wait, by the order of their arrival. */
  readonly pool: Database<Id, number>
  readonly wallets: Database<Wallet, string>
  /** Data roots (`root:size`) of known transactions. */
  readonly dataRoots: Database<true, string>
  readonly chunks: Database<ChunkRow, ChunkKey>

  constructor(path: string) {
    this.#root = open({ path, maxDbs: 16, noMemInit: true })
    this.heights = this.#root.openDB({ name: 'heights' })
    this.blocks = this.#root.openDB({ name: 'blocks' })
    this.transactions = this.#root.openDB({ name: 'transactions' })
    this.mined = this.#root.openDB({ name: 'mined' })
    this.ends = this.#root.openDB({ name: 'ends' })
    this.pool = this.#root.openDB({ name: 'pool' })
    this.wallets = this.#root.openDB({ name: 'wallets' })
    this.dataRoots = this.#root.openDB({ name: 'data-roots' })
    this.chunks = this.#root.openDB({ name: 'chunks' })
  }

  /** Runs `change` as one transaction, synced to disk before this returns. A throw undoes it. */
  write<T>(change: () => T): T {
    return this.#root.transactionSync(change)
  }

  /** The highest block, or undefined on an empty ledger. */
  tip(): BlockRow | undefined {
    for (const { value } of this.heights.getRange({ reverse: true, limit: 1 })) return this.blocks.get(value)
    return undefined
  }

  wallet(address: string): Wallet {
    return this.wallets.get(address) ?? { balance: '0', last: '' }
  }

  /** Adds to a wallet, which may be less than nothing; `last` replaces its last transaction. */
  credit(address: string, winston: bigint, last?: string): void {
    const wallet = this.wallet(address)
    const balance = (BigInt(wallet.balance) + winston).toString()
    this.wallets.putSync(address, { balance, last: last ?? wallet.last })
  }

  /** Puts an id at the end of the pool. */
  enqueue(id: Id): void {
    let next = 0
    for (const key of this.pool.getKeys({ reverse: true, limit: 1 })) next = key + 1
    this.pool.putSync(next, id)
  }

  /** Ids that wait, the oldest first. */
  waiting(): Id[] {
    return [...this.pool.getRange()].map(({ value }) => value)
  }

  close(): Promise<void> {
    return this.#root.close()
  }
}
