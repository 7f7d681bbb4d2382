import { type AnySignal, signalOf } from '../../actor/lazy-signal.js'
import type { Requester } from '../../actor/requester.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { Transaction } from '../../format/transaction.js'
import { isBoundById } from '../../proof/transaction-proof.js'
import { unknownEverywhere, weightier } from '../refusals.js'
import type { Found, Source, Wanted } from '../source.js'
import { windowIn } from '../window-in.js'
import { ChunkedRoot, type ChunkedRootParts } from './chunked-root.js'
import type { Items, OpenRoot } from './items.js'
import { learnedOfTransaction } from './learned.js'
import type { RootPlace } from './proven-chunks.js'
import type { RootHeights } from './root-heights.js'
import type { RootLookup } from './root-lookup.js'
import type { Transactions } from './transaction-headers.js'

/** The data of transactions, chunk by chunk from nodes, each proven against the data root that the owner signed. */
export class Chunks implements Source {
  readonly name = 'chunks'

  constructor(
    private readonly transactions: Transactions,
    private readonly parts: ChunkedRootParts,
    private readonly heights?: Pick<RootHeights, 'known'>,
  ) {}

  /** Opens a transaction's data to be read at any place. */
  readonly openRoot: OpenRoot = async (id, requester) =>
    this.#opened(await this.transactions.place(id, requester), requester)

  async #rootOf(header: Transaction, requester: Requester): Promise<ChunkedRoot | Refusal> {
    return this.#opened(await this.transactions.placeOf(header, requester), requester)
  }

  #opened(place: RootPlace | Refusal, { client }: Requester): ChunkedRoot | Refusal {
    return isRefusal(place)
      ? place
      : new ChunkedRoot(place, this.parts, this.heights?.known(place.id), client)
  }

  async open(wanted: Wanted, ending: AnySignal): Promise<Found | Refusal> {
    const signal = signalOf(ending)
    const { avoid } = wanted
    if (avoid.has(this.name)) return unknownEverywhere()
    const header = await this.transactions.headerFor(wanted, signal)
    if (isRefusal(header)) return header
    // An empty payload has no chunks; for format 2 the signature says that it is empty.
    const empty = header.format === 2 && header.dataSize === 0
    const root = empty ? undefined : await this.#rootOf(header, { client: wanted.client, signal })
    if (isRefusal(root)) return root
    const window = wanted.window && windowIn(wanted.window, header.dataSize)
    if (isRefusal(window)) return window
    const [from, to] = window === undefined ? [0, header.dataSize] : [window.start, window.end + 1]
    return {
      name: this.name,
      origin: this.name,
      sizeBytes: header.dataSize,
      body: root === undefined ? nothing : root.stream(from, to, signal, window === undefined),
      trusted: true,
      proven: isBoundById(header),
      learned: learnedOfTransaction(header),
      hints: {},
    }
  }
}

const nothing: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: undefined }) }),
}

/**
 * Transactions and data items from chunks. An item whose root is known or hinted comes from the root's chunks. Any other id is
 * tried as a transaction. If the chain has none, the root is requested from other gateways, and then proven like any hint.
 */
export class OffsetAwareChunks implements Source {
  readonly name = 'chunks-offset-aware'

  constructor(
    private readonly items: Items,
    private readonly chunks: Chunks,
    private readonly roots?: RootLookup,
  ) {}

  async open(wanted: Wanted, ending: AnySignal): Promise<Found | Refusal> {
    const signal = signalOf(ending)
    const item = await this.items.open(wanted, signal)
    if (!isRefusal(item)) return { ...item, name: this.name }
    const isItem = wanted.attributes?.place?.isSigned === true
    // A place that somebody named may hold something else.
    const isElsewhere = item.refused === 'unknown' || item.refused === 'forged'
    if (!isElsewhere || isItem) return item
    const transaction = await this.chunks.open(wanted, signal)
    if (!isRefusal(transaction)) return { ...transaction, name: this.name }
    const refusal = weightier(item, transaction)
    return transaction.refused === 'unknown' ? this.#elsewhere(wanted, refusal, signal) : refusal
  }

  async #elsewhere(wanted: Wanted, refusal: Refusal, signal: AbortSignal): Promise<Found | Refusal> {
    const hints = await this.roots?.find(wanted.id, wanted.provenance, signal, wanted.client)
    if (hints === undefined) return refusal
    if (isRefusal(hints)) return weightier(refusal, hints)
    const item = await this.items.open({ ...wanted, hints }, signal)
    return isRefusal(item) ? item : { ...item, name: this.name }
  }
}
