import type { Id } from '../format/id.js'
import { type Environment, openEnvironment } from '../store/lmdb.js'
import type { MinedPlace, NodeRecord } from './base-layer.js'
import { type ChunkKey, type ChunkRow, chunkWriting } from './chunk-rows.js'
import { jsonValue, Rows, textKey, wholeKey } from './devnet-rows.js'

/** A block with all that is needed to undo it. */
export interface BlockRow {
  readonly header: NodeBlockHeader
  /** Ids in the order of the weave. */
  readonly order: readonly Id[]
  /** What the block did to wallets; amounts as signed decimal text. */
  readonly changes: readonly WalletChange[]
}

/** The fields of a header that the chain itself computes with. Amounts and sizes are decimal text, as nodes write them. */
export interface NodeBlockHeader extends NodeRecord {
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

/** A valid transaction, and the fields that the chain computes with. */
export interface TransactionRow {
  /** The transaction as nodes give it, without data. */
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

export interface MinedRow extends MinedPlace {
  /** Proof from tx_root to the data root, base64url; absent without data. */
  readonly txPath?: string
}

/**
 * The chain on disk, in one LMDB environment. A block and all its consequences are one transaction, so a process killed at any
 * moment leaves the chain as it was before or after.
 */
export class ChainStore {
  readonly #environment: Environment
  /** Height to block hash, of the current branch. */
  readonly heights: Rows<number, string>
  /** Every block ever made, also those a fork replaced. */
  readonly blocks: Rows<string, BlockRow>
  readonly transactions: Rows<string, TransactionRow>
  readonly mined: Rows<string, MinedRow>
  /** Last weave byte of each transaction with data, to its id. */
  readonly ends: Rows<number, string>
  /** Ids that wait, by the order of their arrival. */
  readonly pool: Rows<number, Id>
  readonly wallets: Rows<string, Wallet>
  /** Data roots (`root:size`) of known transactions. */
  readonly dataRoots: Rows<string, true>
  readonly chunks: Rows<ChunkKey, ChunkRow>
  /** Height of the tip, and how many ids ever entered the pool. */
  readonly #counts: Rows<string, number>

  constructor(path: string) {
    const environment = openEnvironment(path)
    const rows = <Value>(name: string): Rows<string, Value> =>
      new Rows(environment.table(name), { ...textKey, ...jsonValue<Value>() })
    const numbered = <Value>(name: string): Rows<number, Value> =>
      new Rows(environment.table(name), { ...wholeKey, ...jsonValue<Value>() })
    this.#environment = environment
    this.heights = numbered('heights')
    this.blocks = rows('blocks')
    this.transactions = rows('transactions')
    this.mined = rows('mined')
    this.ends = numbered('ends')
    this.pool = numbered('pool')
    this.wallets = rows('wallets')
    this.dataRoots = rows('data-roots')
    this.chunks = new Rows(environment.table('chunks'), chunkWriting)
    this.#counts = rows('counts')
  }

  /** Runs `change` as one transaction, on disk before this returns. A throw undoes it. */
  write<T>(change: () => T): T {
    return this.#environment.write(change)
  }

  /** The highest block, or undefined on an empty store. */
  tip(): BlockRow | undefined {
    const hash = this.heights.get(this.#counts.get('tip') ?? 0)
    return hash === undefined ? undefined : this.blocks.get(hash)
  }

  /** Hashes of the last `count` blocks, the newest first. */
  lastHashes(count: number): string[] {
    const tip = this.#counts.get('tip') ?? 0
    const first = Math.max(0, tip - count + 1)
    return this.heights
      .from(first, tip - first + 1)
      .map(({ value }) => value)
      .reverse()
  }

  /** Makes `block` the tip. Only inside `write`, like everything that writes. */
  append(block: BlockRow): void {
    const { height, indep_hash } = block.header
    this.blocks.put(indep_hash, block)
    this.heights.put(height, indep_hash)
    this.#counts.put('tip', height)
  }

  /** Makes the block before the tip the tip. The removed block can still be read by its hash. */
  dropTip(height: number): void {
    this.heights.remove(height)
    this.#counts.put('tip', height - 1)
  }

  wallet(address: string): Wallet {
    return this.wallets.get(address) ?? { balance: '0', last: '' }
  }

  /** Adds to a wallet; the amount may be negative. `last` replaces its last transaction. */
  credit(address: string, winston: bigint, last?: string): void {
    const wallet = this.wallet(address)
    const balance = (BigInt(wallet.balance) + winston).toString()
    this.wallets.put(address, { balance, last: last ?? wallet.last })
  }

  /** Puts an id at the end of the pool. */
  enqueue(id: Id): void {
    const arrivals = this.#counts.get('arrivals') ?? 0
    this.pool.put(arrivals, id)
    this.#counts.put('arrivals', arrivals + 1)
  }

  /** Ids that wait, the oldest first, at most `limit`. */
  waiting(limit: number): { readonly key: number; readonly value: Id }[] {
    return this.pool.from(undefined, limit)
  }

  close(): Promise<void> {
    return this.#environment.close()
  }
}
