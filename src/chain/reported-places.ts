import { BoundedMap } from '../actor/bounded-map.js'
import type { Requester } from '../actor/requester.js'
import type { Id } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import type { TransactionOffset } from './chain.js'
import type { WeaveSpan } from './span.js'
import { type HeaderChain, verifiedHeader } from './verified-header.js'

/** Places remembered, some 100 bytes each. */
const placesMax = 1024

/**
 * Places of transactions from answers of nodes that were relayed to clients: a client that downloads by chunks asks
 * for the place first. Saves the search through the chain. Nothing is believed: the data root comes from the signed
 * transaction.
 */
export class ReportedPlaces {
  readonly #places = new BoundedMap<Id, TransactionOffset>(placesMax)

  constructor(private readonly chain: HeaderChain) {}

  hear(id: Id, place: TransactionOffset): void {
    this.#places.set(id, place)
  }

  forget({ id }: WeaveSpan): void {
    if (id !== undefined) this.#places.delete(id)
  }

  /** The span that reportedly holds `offset`, of a transaction whose signature was verified. */
  async span(offset: number, requester: Requester): Promise<WeaveSpan | undefined> {
    for (const [id, place] of this.#places) {
      if (offset < place.start || offset > place.end) continue
      const span = await this.signed(id, place, requester)
      if (span === undefined) this.#places.delete(id)
      return span
    }
    return undefined
  }

  /**
   * The data root of what the owner of `id` signed, at a place that a node stated; undefined where their sizes differ.
   * In format 1 the data itself is signed: its root is computed, for which up to 10 MiB are fetched.
   */
  async signed(id: Id, place: TransactionOffset, requester: Requester): Promise<WeaveSpan | undefined> {
    const header = await verifiedHeader(this.chain, id, requester)
    if (isRefusal(header)) return undefined
    const { dataSize } = header.transaction
    const { treeRoot: dataRoot } = header
    if (dataRoot.length !== 32 || dataSize === 0 || dataSize !== place.size) return undefined
    return { start: place.start, sizeBytes: dataSize, dataRoot, id, settled: false }
  }
}
