import type { Id } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import type { Chain, TransactionOffset } from './chain.js'
import type { Span } from './span.js'

/** Places remembered, some 100 bytes each. */
const placesMax = 1024

/**
 * Places of transactions as nodes said them in passing: who downloads by chunks asks for the place first. Saves the search
 * through the chain; the data root comes from the transaction's own signature.
 */
export class Hearsay {
  readonly #places = new Map<Id, TransactionOffset>()

  constructor(private readonly chain: Pick<Chain, 'transaction'>) {}

  hear(id: Id, place: TransactionOffset): void {
    this.#places.delete(id)
    if (this.#places.size >= placesMax) {
      const [oldest] = this.#places.keys()
      if (oldest !== undefined) this.#places.delete(oldest)
    }
    this.#places.set(id, place)
  }

  forget({ id }: Span): void {
    if (id !== undefined) this.#places.delete(id)
  }

  /** The span that is said to hold `offset`, of a transaction whose signature was verified. */
  async span(offset: number, signal: AbortSignal): Promise<Span | undefined> {
    for (const [id, place] of this.#places) {
      if (offset < place.start || offset > place.end) continue
      const span = await this.signed(id, place, signal)
      if (span === undefined) this.#places.delete(id)
      return span
    }
    return undefined
  }

  /** The data root that the owner of `id` signed, at a place that a node said; undefined where they do not go together. */
  async signed(id: Id, place: TransactionOffset, signal: AbortSignal): Promise<Span | undefined> {
    const transaction = await this.chain.transaction(id, { signal })
    if (isRefusal(transaction)) return undefined
    const { format, dataRoot, dataSize } = transaction
    // Format 1 signs its data, not its data root.
    if (format !== 2 || dataRoot.length !== 32 || dataSize !== place.size) return undefined
    return { start: place.start, sizeBytes: dataSize, dataRoot, id, settled: false }
  }
}
