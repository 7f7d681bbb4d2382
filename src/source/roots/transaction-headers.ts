import { BoundedMap } from '../../actor/bounded-map.js'
import type { Requester } from '../../actor/requester.js'
import type { Chain, TransactionOffset } from '../../chain/chain.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { Transaction } from '../../format/transaction.js'
import { isBoundById, verifyTransaction } from '../../proof/transaction-proof.js'
import { unknownEverywhere, unknownForNow } from '../refusals.js'
import type { Wanted } from '../source.js'
import type { RootPlace } from './proven-chunks.js'

/** The requests to the chain that are made here. */
export type TransactionChain = Pick<Chain, 'transaction' | 'transactionOffset'>

const nothing = new Uint8Array(0)

/** A header, and the verified data that came with it. */
interface Read {
  readonly header: Transaction
  readonly data?: Uint8Array
}

/** Bytes of data that came with headers of format 1, and is kept until it is read. */
const inlineMaxBytes = 16 * 1024 * 1024

/**
 * Headers of transactions, each with its signature verified once, and where their data lies. A bounded number of those is
 * remembered whose id proves their fields (`isBoundById`). Of any other header a node can make a second one under the same id,
 * which must not last longer than the request that it was sent for.
 */
export class Transactions {
  readonly #headers: BoundedMap<Id, Transaction>
  readonly #places: BoundedMap<Id, RootPlace>
  /** Data that came with a header, true to its signature, until it is read. */
  readonly #inline = new Map<Transaction, Uint8Array>()
  #inlineBytes = 0
  /** What nodes answered to requests under way: that they know no such transaction, or a header that is not remembered. */
  readonly #answered = new WeakMap<Wanted, Transaction | Refusal>()

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
    const found = await this.#read(id, requester)
    return isRefusal(found) ? found : found.header
  }

  async #read(id: Id, requester: Requester, withoutData = false): Promise<Read | Refusal> {
    const known = this.#headers.get(id)
    if (known !== undefined) return { header: known }
    // Verified here, since a large format-1 header comes without the data that its signature covers.
    const answer = await this.chain.transaction(id, { signed: false, withoutData, ...requester })
    if (isRefusal(answer)) return answer
    const transaction = answer.format === 2 ? { ...answer, data: nothing } : answer
    if (transaction.format === 1 && transaction.data.length < transaction.dataSize)
      return { header: transaction }
    const held = transaction.id === id ? verifyTransaction(transaction) : mistaken(id)
    if (held !== true) return held
    const header = { ...transaction, data: nothing }
    if (isBoundById(header)) this.#headers.set(id, header)
    return transaction.format === 1 ? { header, data: transaction.data } : { header }
  }

  /**
   * The data of a transaction of format 1 that came with this header and was verified, once; undefined where it is not here.
   * Nodes send it with each header: up to 13 MB that need not come again.
   */
  takeInline(header: Transaction): Uint8Array | undefined {
    const data = this.#inline.get(header)
    if (this.#inline.delete(header)) this.#inlineBytes -= data?.length ?? 0
    return data
  }

  #keepInline(header: Transaction, data: Uint8Array): void {
    this.#inline.set(header, data)
    this.#inlineBytes += data.length
    for (const oldest of this.#inline.keys()) {
      if (this.#inlineBytes <= inlineMaxBytes && this.#inline.size <= this.rememberedMax) return
      this.takeInline(oldest)
    }
  }

  /**
   * The header for a want that several sources see, one after the other: nodes get one request for it, also where they know no
   * such transaction, which is so for every data item.
   */
  async headerFor(wanted: Wanted, signal: AbortSignal): Promise<Transaction | Refusal> {
    const answered = this.#answered.get(wanted)
    if (answered !== undefined) return answered
    const found = await this.#read(wanted.id, { client: wanted.client, signal })
    if (isRefusal(found)) {
      if (found.refused === 'unknown') this.#answered.set(wanted, found)
      return found
    }
    const { header, data } = found
    if (!isBoundById(header)) this.#answered.set(wanted, header)
    if (data !== undefined) this.#keepInline(header, data)
    return header
  }

  /**
   * Where the data of `id` lies, with the data root that its owner signed. `unknown` also for transactions without a signed
   * data root (format 1): their data cannot be proven chunk by chunk. Nodes send that data with the header, up to 13 MB. None of
   * it is read, since whoever names a root for an item would set that off with each request.
   */
  async place(id: Id, requester: Requester): Promise<RootPlace | Refusal> {
    const known = this.#places.get(id)
    if (known !== undefined) return known
    const found = await this.#read(id, requester, true)
    if (!isRefusal(found)) return this.placeOf(found.header, requester)
    // Or the node's answer is no header at all: other nodes may have it.
    return found.refused === 'too-large' ? unknownForNow() : found
  }

  /** The same, where its header is known. */
  async placeOf(header: Transaction, requester: Requester): Promise<RootPlace | Refusal> {
    const { id } = header
    const known = this.#places.get(id)
    if (known !== undefined) return known
    if (header.format !== 2 || header.dataRoot.length !== 32 || header.dataSize === 0)
      return unknownEverywhere()
    const offset = await this.chain.transactionOffset(id, requester)
    if (isRefusal(offset)) return offset
    return this.#checked(header, offset)
  }

  #checked(header: Transaction, offset: TransactionOffset): RootPlace | Refusal {
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
    if (place.isBound) this.#places.set(id, place)
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
