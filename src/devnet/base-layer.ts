/** JSON of the node's HTTP interface. */
export interface NodeRecord {
  readonly [field: string]: unknown
}

/** Where a mined transaction lies. */
export interface MinedPlace {
  /** Absent where only the weave position is known. */
  readonly block?: { readonly height: number; readonly hash: string }
  /** First and last byte in the weave, 1-based; absent where the transaction has no data, or where it is not known. */
  readonly start?: number
  readonly end?: number
}

/** What the routes need of a chain, whether it grows here or is replayed from files. Calls may be slow. */
export interface BaseLayer {
  /** `GET /info`. */
  info(): NodeRecord
  height(): number
  blockAt(height: number): NodeRecord | undefined
  blockOf(hash: string): NodeRecord | undefined
  /** Node JSON, `data` empty for format 2. */
  transaction(id: string): NodeRecord | undefined
  /** Undefined: not mined. */
  place(id: string): MinedPlace | undefined
  /** Bytes of the transaction's data in order; undefined where a part of them is missing. */
  data(id: string): Iterable<Uint8Array> | undefined
  /** `GET /chunk/{offset}`: the chunk that holds this 1-based weave position. */
  chunk(offset: number): NodeRecord | undefined
  /** Ids that wait for a block. */
  pending(): string[]
  anchor(): string
  price(sizeBytes: number, target: string | undefined): bigint
  /** Winston. */
  balance(address: string): bigint
  /** Id of the address' last mined transaction, or ''. */
  lastTransaction(address: string): string
}

/** An answer to something posted: HTTP status and body. */
export interface PostReply {
  readonly status: number
  readonly body: string
}

/** A chain that grows. */
export interface GrowingLayer extends BaseLayer {
  /** `POST /tx`, with parsed JSON of any shape. */
  submit(json: unknown): PostReply
  /** `POST /chunk`, with parsed JSON of any shape. */
  submitChunk(json: unknown): PostReply
  /** Adds new winston to an address; returns its balance. */
  mint(address: string, winston: bigint): bigint
  /** Mines blocks; returns the new tip. */
  mine(blocks: number): NodeRecord
  /** Whether nothing waits for a block, and nobody needs more of them: all that was mined is as deep as anybody wants. */
  isAtRest(): boolean
  /** Replaces the last `depth` blocks; returns the new tip. */
  fork(depth: number, options?: ForkOptions): NodeRecord
}

export interface ForkOptions {
  /** Length of the new branch (default: one more than `depth`, so that it wins). */
  readonly blocks?: number
  /**
   * Transactions of the replaced blocks: `again` (default) puts them back into the pool, so that the new branch mines them
   * elsewhere; `lost` forgets them.
   */
  readonly transactions?: 'again' | 'lost'
}
