import { BoundedMap } from '../../actor/bounded-map.js'
import type { Requester } from '../../actor/requester.js'
import type { Chain, TransactionOffset } from '../../chain/chain.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { Transaction } from '../../format/transaction.js'
import { isBoundById, verifyTransaction } from '../../proof/transaction-proof.js'
import { unknownEverywhere } from '../refusals.js'
import type { Wanted } from '../source.js'
import type { RootPlace } from './proven-chunks.js'

/** The requests to the chain that are made here. */
export type TransactionChain = Pick<Chain, 'transaction' | 'transactionOffset'>

const nothing = new Uint8Array(0)

/** Bytes of data that came with headers of format 1, and is kept until it is read. */
const inlineMaxBytes = 16 * 1024 * 1024

/** Headers of transactions, each with its signature verified once, and where their data lies. Remembers a bounded number. */
export class Transactions {
  readonly #headers: BoundedMap<Id, Transaction>
  readonly #places: BoundedMap<Id, RootPlace>
  /** Data that came with a header, true to its signature. */
  readonly #inline = new Map<Id, Uint8Array>()
  #inlineBytes = 0
  /** Requests for transactions that the nodes have denied. */
  readonly #unknown = new WeakMap<Wanted, Refusal>()

  /** Each remembered header takes some 2 KiB. */
  constructor(
    private readonly chain: TransactionChain,
    private readonly rememberedMax = 2000,
  ) {
    this.#headers = new BoundedMap(rememberedMax)
    this.#places = new BoundedMap(rememberedMax)
  }

  /**
   * The transaction `id`, true to its id and signature; `unknown` where the chain has no such transaction, as for every data
   * item. Without data. Where a node left out the data that a signature of format 1 covers, nothing is verified yet.
   */
  async header(id: Id, requester: Requester): Promise<Transaction | Refusal> {
    const known = this.#headers.get(id)
    if (known !== undefined) return known
    // Verified here, since a large format-1 header comes without the data that its signature covers.
    const answer = await this.chain.transaction(id, { signed: false, ...requester })
    if (isRefusal(answer)) return answer
    const transaction = answer.format === 2 ? { ...answer, data: nothing } : answer
    if (transaction.format === 1 && transaction.data.length < transaction.dataSize) return transaction
    const held = transaction.id === id ? verifyTransaction(transaction) : mistaken(id)
    if (held !== true) return held
    const header = { ...transaction, data: nothing }
    this.#headers.set(id, header)
    if (transaction.format === 1) this.#keepInline(id, transaction.data)
    return header
  }

  /**
   * The data of a transaction of format 1 that came with its header and was verified, once; undefined where it is not here. Nodes
   * send it with each header: up to 13 MB that need not come again.
   */
  takeInline(id: Id): Uint8Array | undefined {
    const data = this.#inline.get(id)
    if (this.#inline.delete(id)) this.#inlineBytes -= data?.length ?? 0
    return data
  }

  #keepInline(id: Id, data: Uint8Array): void {
    this.takeInline(id)
    this.#inline.set(id, data)
    this.#inlineBytes += data.length
    for (const oldest of this.#inline.keys()) {
      if (this.#inlineBytes <= inlineMaxBytes && this.#inline.size <= this.rememberedMax) return
      this.takeInline(oldest)
    }
  }

  /**
   * The header for a want that several sources see, one after the other: nodes get one request where they know no such
   * transaction, which is so for every data item.
   */
  async headerFor(wanted: Wanted, signal: AbortSignal): Promise<Transaction | Refusal> {
    const refusal = this.#unknown.get(wanted)
    if (refusal !== undefined) return refusal
    const answer = await this.header(wanted.id, { client: wanted.client, signal })
    if (isRefusal(answer) && answer.refused === 'unknown') this.#unknown.set(wanted, answer)
    return answer
  }

  /**
   * Where the data of `id` lies, with the data root that its owner signed. `unknown` also for transactions without a signed
   * data root (format 1): their data cannot be proven chunk by chunk.
   */
  async place(id: Id, requester: Requester): Promise<RootPlace | Refusal> {
    const known = this.#places.get(id)
    if (known !== undefined) return known
    const header = await this.header(id, requester)
    if (isRefusal(header)) return header
    if (header.format !== 2 || header.dataRoot.length !== 32 || header.dataSize === 0)
      return unknownEverywhere()
    const offset = await this.chain.transactionOffset(id, requester)
    if (isRefusal(offset)) return offset
    return this.#placeOf(header, offset)
  }

  #placeOf(header: Transaction, offset: TransactionOffset): RootPlace | Refusal {
    if (offset.size !== header.dataSize) {
      return refuse(
        'forged',
        'upstream',
        `a node places ${offset.size} bytes of ${header.id}, not ${header.dataSize}`,
      )
    }
    const { id, dataRoot, dataSize } = header
    const place = {
      id,
      isBound: isBoundById(header),
      dataRoot,
      sizeBytes: dataSize,
      weaveStart: offset.start,
    }
    this.#places.set(id, place)
    return place
  }

  /** Forgets where data lies: a fork may have moved it. */
  forget(id: Id): void {
    this.#places.delete(id)
  }
}

function mistaken(id: Id): Refusal {
  return refuse('forged', 'upstream', `a node answered with another transaction than ${id}`)
}
