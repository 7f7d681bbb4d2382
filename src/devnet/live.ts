import type { Clock } from '../actor/clock.js'
import { encodeBase64url } from '../format/base64url.js'
import { rulesetAt } from '../proof/path.js'
import type { ForkOptions, GrowingLayer, MinedPlace, NodeRecord, PostReply } from './base-layer.js'
import type { ChainStore, NodeBlockHeader, TransactionRow } from './chain-store.js'
import type { DevnetOptions } from './devnet-options.js'
import { priceOf, usualWinstonPerByte } from './devnet-price.js'
import { anchors, begin, costOf, mine, unwind } from './growth.js'
import { isVerdict, soundChunk, soundTransaction } from './sound.js'
import { storedChunk, wholeData } from './stored-chunk.js'
import { objection } from './transaction-objection.js'

/** Weave offset from which today's rules of the network hold: since that block data roots may be rebased. */
const usualWeaveStart = 151_066_495_197_430
/** Transactions that may wait; one more is answered 503. */
const poolMax = 10_000
/**
 * Empty blocks after which a chain is at rest: those in which an anchor holds, and as many again as the deepest fork and as any
 * reader waits for, with some to spare.
 */
const restBlocks = 200

/** A chain that grows here: accepts or refuses what is posted, and answers from its store. One per store. */
export class LiveLayer implements GrowingLayer {
  readonly #store: ChainStore
  readonly #clock: Clock
  readonly #winstonPerByte: bigint
  readonly #onChanged: () => void
  /** Winston that waiting transactions will take, by owner; follows the pool. */
  #waitingWinston = new Map<string, bigint>()
  #waitingCount = 0
  /** Blocks in a row without a transaction, up to the tip; only as far as `restBlocks`. */
  #emptyBlocks: number

  /** `onChanged` is called after each change of the chain: not for what waits for a block. */
  constructor(
    store: ChainStore,
    options: DevnetOptions,
    clock: Clock,
    onChanged: () => void = () => undefined,
  ) {
    this.#store = store
    this.#onChanged = onChanged
    this.#clock = clock
    this.#winstonPerByte = options.winstonPerByte ?? usualWinstonPerByte
    begin(store, options.weaveStartBytes ?? usualWeaveStart, this.#seconds())
    this.#countPool()
    this.#emptyBlocks = emptyBlocks(store)
  }

  submit(json: unknown): PostReply {
    const known = this.#known((json as { id?: unknown } | null)?.id)
    if (known) return { status: 208, body: 'Transaction already processed.' }
    if (this.#waitingCount >= poolMax) return { status: 503, body: 'Mempool is full.' }
    const sound = soundTransaction(json)
    if (isVerdict(sound)) return sound
    const { id, row, pieces } = sound
    const recent = new Set(anchors(this.#store))
    const wrong = objection(row, {
      wallet: this.#store.wallet(row.owner),
      waitingWinston: this.#waitingWinston.get(row.owner) ?? 0n,
      isRecent: (anchor) => recent.has(anchor),
      leastReward: this.price(row.size, row.target === '' ? undefined : row.target),
    })
    if (wrong !== undefined) return { status: 400, body: wrong }
    this.#store.write(() => {
      const root = Buffer.from(row.dataRoot, 'base64url')
      for (const { end, chunk, dataPath } of pieces) {
        this.#store.chunks.put({ root, size: row.size, end }, { chunk, dataPath })
      }
      this.#store.transactions.put(id, row)
      if (row.size > 0) this.#store.dataRoots.put(`${row.dataRoot}:${row.size}`, true)
      this.#store.enqueue(id)
    })
    this.#wait(row)
    return { status: 200, body: 'OK' }
  }

  submitChunk(json: unknown): PostReply {
    // Its data will lie behind the present end of the weave, so the rules of the tip apply.
    const sound = soundChunk(json, rulesetAt(Number(this.#tip().weave_size) + 1))
    if (isVerdict(sound)) return sound
    const { key, row } = sound
    if (this.#store.dataRoots.get(`${encodeBase64url(key.root)}:${key.size}`) === undefined) {
      return { status: 400, body: '{"error":"data_root_not_found"}' }
    }
    this.#store.write(() => this.#store.chunks.put(key, row))
    return { status: 200, body: 'OK' }
  }

  mint(address: string, winston: bigint): bigint {
    this.#store.write(() => this.#store.credit(address, winston))
    return this.balance(address)
  }

  mine(blocks: number): NodeBlockHeader {
    try {
      let tip = this.#tip()
      for (let left = Math.max(blocks, 1); left > 0; left -= 1) {
        tip = mine(this.#store, this.#seconds())
        this.#emptyBlocks = tip.txs.length === 0 ? this.#emptyBlocks + 1 : 0
      }
      return tip
    } finally {
      // The disk may have taken some of them only.
      this.#countPool()
      this.#onChanged()
    }
  }

  fork(depth: number, options: ForkOptions = {}): NodeBlockHeader {
    unwind(this.#store, depth, options.transactions ?? 'again')
    // Whose transactions are lost waits for blocks to see it.
    this.#emptyBlocks = 0
    return this.mine(options.blocks ?? depth + 1)
  }

  isAtRest(): boolean {
    return this.#waitingCount === 0 && this.#emptyBlocks >= restBlocks
  }

  info(): NodeRecord {
    const tip = this.#tip()
    return {
      network: 'sluice.devnet',
      version: 5,
      release: 1,
      height: tip.height,
      current: tip.indep_hash,
      blocks: tip.height + 1,
      peers: 0,
      queue_length: 0,
      node_state_latency: 0,
    }
  }

  height(): number {
    return this.#tip().height
  }

  blockAt(height: number): NodeRecord | undefined {
    const hash = this.#store.heights.get(height)
    return hash === undefined ? undefined : this.blockOf(hash)
  }

  blockOf(hash: string): NodeRecord | undefined {
    return this.#store.blocks.get(hash)?.header
  }

  transaction(id: string): NodeRecord | undefined {
    const row = this.#store.transactions.get(id)
    if (row === undefined || row.format !== 1 || row.size === 0) return row?.json
    const data = Buffer.concat([...(this.data(id) ?? [])])
    return { ...row.json, data: encodeBase64url(data) }
  }

  place(id: string): MinedPlace | undefined {
    return this.#store.mined.get(id)
  }

  data(id: string): Iterable<Uint8Array> | undefined {
    const row = this.#store.transactions.get(id)
    return row === undefined ? undefined : wholeData(this.#store, row.dataRoot, row.size)
  }

  chunk(offset: number): NodeRecord | undefined {
    const [found] = this.#store.ends.from(offset, 1)
    if (found === undefined) return undefined
    const { start, txPath } = this.#store.mined.get(found.value) ?? {}
    const row = this.#store.transactions.get(found.value)
    if (start === undefined || txPath === undefined || row === undefined || offset < start) return undefined
    const piece = storedChunk(this.#store, row.dataRoot, row.size, offset - start)
    if (piece === undefined) return undefined
    return {
      tx_path: txPath,
      packing: 'unpacked',
      data_path: encodeBase64url(piece.dataPath),
      chunk: encodeBase64url(piece.chunk),
    }
  }

  pending(): string[] {
    return this.#store.waiting(poolMax).map(({ value }) => value)
  }

  /**
   * As on nodes: from the middle of the blocks that are accepted, so that it stays valid through a wait and through a fork.
   */
  anchor(): string {
    const recent = anchors(this.#store)
    return recent[Math.floor(recent.length / 2)] ?? ''
  }

  price(sizeBytes: number, target: string | undefined): bigint {
    const isNew = target !== undefined && this.#store.wallets.get(target) === undefined
    return priceOf(sizeBytes, isNew, this.#winstonPerByte)
  }

  balance(address: string): bigint {
    return BigInt(this.#store.wallet(address).balance)
  }

  lastTransaction(address: string): string {
    return this.#store.wallet(address).last
  }

  #tip(): NodeBlockHeader {
    const tip = this.#store.tip()
    if (tip === undefined) throw new Error('the store is empty')
    return tip.header
  }

  #known(id: unknown): boolean {
    return typeof id === 'string' && id.length === 43 && this.#store.transactions.get(id) !== undefined
  }

  #wait(row: TransactionRow): void {
    this.#waitingWinston.set(row.owner, (this.#waitingWinston.get(row.owner) ?? 0n) + costOf(row))
    this.#waitingCount += 1
  }

  #countPool(): void {
    this.#waitingWinston = new Map()
    this.#waitingCount = 0
    for (const { value: id } of this.#store.waiting(poolMax)) {
      const row = this.#store.transactions.get(id)
      if (row !== undefined) this.#wait(row)
    }
  }

  #seconds(): number {
    return Math.floor(this.#clock.now() / 1000)
  }
}

/** Empty blocks in a row up to the tip, at most `restBlocks`; as many, too, on a chain that never had a transaction. */
function emptyBlocks(store: ChainStore): number {
  let count = 0
  for (const hash of store.lastHashes(restBlocks)) {
    if ((store.blocks.get(hash)?.header.txs.length ?? 0) > 0) return count
    count += 1
  }
  return store.transactions.from(undefined, 1).length === 0 ? restBlocks : count
}
