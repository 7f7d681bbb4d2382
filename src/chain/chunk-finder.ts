import type { Clock } from '../actor/clock.js'
import { FairSlots } from '../actor/fair-slots.js'
import { FreeShares } from '../actor/free-shares.js'
import type { Requester } from '../actor/requester.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { type Ruleset, rulesetAt } from '../proof/path.js'
import type { PostedChunk } from '../proof/posted-chunk.js'
import { transactionAt } from './block-order.js'
import type { Block, Chain, Chunk, TransactionOffset } from './chain.js'
import { ChunkCache, type ProvenChunk } from './chunk-cache.js'
import { firstProven, type InBlock, proveInBlock, proveInSpan } from './chunk-proof.js'
import { ReportedPlaces } from './reported-places.js'
import { type OffsetIndex, Spans, type WeaveSpan } from './span.js'
import { SpanNames } from './span-names.js'
import { type PathSources, TxPaths } from './tx-paths.js'
import { untilLate } from './until-late.js'
import { WeaveSearch } from './weave-search.js'

export interface ChunkFinderOptions {
  /** Timeout of one `find`, with any result. */
  readonly deadlineMs: number
  /** The part of it that may be spent on finding the transaction's id after the chunk is proven. */
  readonly nameMs: number
  /** True: an answer without the id is of no use, and all of the deadline may be spent on it. */
  readonly mustName?: () => boolean
  /** Changes when a node reported a longer chain. */
  readonly growths?: () => number
  /** Offsets looked for at once, a quarter of them for one client; one more is refused `busy`. */
  readonly flightsMax: number
  /** False: an offset that is not indexed is unknown, and no block is searched for it. */
  readonly searchesChain?: boolean
  /** Searches for a block at once; the others wait. */
  readonly searchesMax: number
  /** Bytes of proven chunks kept in memory; posted chunks have a bound of their own. */
  readonly fetchedCacheBytes: number
  readonly postedCacheBytes: number
}

export type FinderChain = Pick<
  Chain,
  'currentBlock' | 'blockByHeight' | 'chunk' | 'transaction' | 'transactionData' | 'transactionOffset'
>

/** A chunk with everything an answer says about it. */
export interface FoundChunk {
  readonly span: WeaveSpan
  readonly proven: ProvenChunk
  /** The node that gave it; undefined: it was in memory. */
  readonly node: string | undefined
}

const notSearched = refuse('unknown', 'self', 'not in the index, and the chain is not searched')

/** A chunk with the proof for the block that its node gave, which nobody has checked. */
type Brought = FoundChunk & { readonly given?: Uint8Array }

/** Finds the chunk at an absolute weave offset, and proves it against the chain before it is returned. */
export class ChunkFinder {
  readonly #weave: WeaveSearch
  readonly #spans: Spans
  readonly #reported: ReportedPlaces
  readonly #paths: TxPaths
  readonly #names: SpanNames
  readonly #fetched: ChunkCache
  readonly #posted: ChunkCache
  readonly #searches: FairSlots
  readonly #slots: FreeShares
  readonly #flights = new Map<number, Promise<FoundChunk | Refusal>>()

  constructor(
    private readonly chain: FinderChain,
    private readonly clock: Clock,
    private readonly options: ChunkFinderOptions,
    private readonly index?: OffsetIndex,
  ) {
    this.#weave = new WeaveSearch(chain, clock, options.growths)
    this.#spans = new Spans(clock)
    this.#reported = new ReportedPlaces(chain)
    this.#paths = new TxPaths(index, clock)
    this.#names = new SpanNames({ chain, clock, reported: this.#reported, spans: this.#spans }, options)
    this.#fetched = new ChunkCache(options.fetchedCacheBytes)
    this.#posted = new ChunkCache(options.postedCacheBytes)
    this.#searches = new FairSlots({ max: options.searchesMax, waitingMax: options.flightsMax })
    this.#slots = FreeShares.quarters(options.flightsMax)
  }

  /**
   * The chunk that holds weave byte `offset` (from 1). Concurrent calls for one offset share one search. It goes on
   * when the callers leave, at most until the deadline, and is counted for the `client` that requested it first. Refusals:
   * `unknown` (padding, beyond the weave, or no node has it), `forged`, `upstream`, `late`, `busy`. Never rejects.
   */
  async find(offset: number, client = ''): Promise<FoundChunk | Refusal> {
    const here = this.#here(offset)
    if (here !== undefined) return here
    const running = this.#flights.get(offset)
    if (running !== undefined) return running
    const leave = this.#slots.take(client)
    if (typeof leave === 'string') {
      return refuse('busy', leave === 'client' ? 'client' : 'self', 'too many chunks are being looked for')
    }
    const flight = this.#whole(offset, client).finally(() => {
      this.#flights.delete(offset)
      leave()
    })
    this.#flights.set(offset, flight)
    return flight
  }

  /** The rules by which data is proven that comes into the weave now; today's where no node says how long it is. */
  async rulesNow(): Promise<Ruleset> {
    const tip = await untilLate(this.clock, this.options.nameMs, () => this.#weave.tip())
    return isRefusal(tip) ? 'rebase' : rulesetAt(tip.weaveSize + 1)
  }

  /** A chunk that a client posted, to be served as soon as its transaction has a place. */
  keep(posted: PostedChunk, ruleset: Ruleset): void {
    this.#posted.put({ ...posted, ruleset })
  }

  /**
   * A node's answer to another request stated where a transaction lies. It is tried before the search through the
   * chain, and proven like everything else.
   */
  hear(id: Id, place: TransactionOffset): void {
    this.#reported.hear(id, place)
  }

  #known(offset: number): WeaveSpan | undefined {
    return this.#spans.find(offset) ?? this.index?.find(offset)
  }

  #here(offset: number): FoundChunk | undefined {
    const known = this.#known(offset)
    const span = known === undefined ? undefined : this.#paths.known(known)
    return span === undefined ? undefined : this.#inMemory(span, offset)
  }

  /** A chunk with the proof for its block, if that can be had in time. */
  async #whole(offset: number, client: string): Promise<FoundChunk | Refusal> {
    const brought = await untilLate(this.clock, this.options.deadlineMs, (signal) =>
      this.#bring(offset, { client, signal }),
    )
    if (isRefusal(brought)) return brought
    const { given, ...found } = brought
    const span = await untilLate(this.clock, this.options.nameMs, (signal) => {
      return this.#paths.complete(found.span, given, this.#pathSources({ client, signal }))
    })
    return isRefusal(span) ? found : { ...found, span }
  }

  #pathSources(requester: Requester): PathSources {
    return {
      block: async (offset) => {
        const block = await this.#search(offset, requester)
        if (isRefusal(block) || block.txRoot === undefined) return undefined
        const { txRoot, weaveSize, blockSize } = block
        return { txRoot, sizeBytes: blockSize, before: weaveSize - blockSize }
      },
      chunk: async (offset, wanted) => {
        // A node without this proof is not at fault, so it is not counted as failed.
        const without = refuse('unknown', 'upstream', 'no proof for the block came with the chunk')
        await this.chain.chunk(offset, requester, (chunk) => wanted(chunk) || without)
      },
    }
  }

  #inMemory(span: WeaveSpan, offset: number): FoundChunk | undefined {
    const { dataRoot, sizeBytes, start } = span
    const wanted = [dataRoot, sizeBytes, offset - start, rulesetAt(offset)] as const
    const proven = this.#fetched.find(...wanted) ?? this.#posted.find(...wanted)
    return proven === undefined ? undefined : { span, proven, node: undefined }
  }

  async #bring(offset: number, requester: Requester): Promise<Brought | Refusal> {
    const known = this.#known(offset) ?? (await this.#computed(offset, requester))
    if (known !== undefined) {
      const found = this.#inMemory(known, offset) ?? (await this.#bySpan(known, offset, requester))
      if (!isRefusal(found) || found.refused !== 'forged') return found
      // A fork may have moved it, so the chain is queried again.
      this.#spans.forget(known)
    }
    const heard = known === undefined ? await this.#reported.span(offset, requester) : undefined
    if (heard !== undefined) {
      const found = this.#inMemory(heard, offset) ?? (await this.#bySpan(heard, offset, requester))
      if (!isRefusal(found)) this.#spans.remember(heard)
      if (!isRefusal(found) || found.refused !== 'forged') return found
      this.#reported.forget(heard)
    }
    return this.#byBlock(offset, requester)
  }

  /** The span of an indexed place without data root: the root comes from the transaction itself. */
  async #computed(offset: number, requester: Requester): Promise<WeaveSpan | undefined> {
    const indexed = this.index?.place(offset)
    if (indexed === undefined) return undefined
    const { id, start, sizeBytes: size, height, settled } = indexed
    const signed = await this.#reported.signed(id, { start, size, end: start + size - 1 }, requester)
    if (signed === undefined) return undefined
    const span = { ...signed, height, settled }
    this.#spans.remember(span)
    return span
  }

  #bySpan(span: WeaveSpan, offset: number, requester: Requester): Promise<Brought | Refusal> {
    return this.#ask(offset, requester, (chunk) => {
      const proven = proveInSpan(chunk, span, offset)
      return isRefusal(proven) ? proven : { span, proven }
    })
  }

  async #ask(
    offset: number,
    requester: Requester,
    prove: (chunk: Chunk) => InBlock | Refusal,
  ): Promise<Brought | Refusal> {
    const found = await firstProven(this.chain, offset, requester, prove)
    if (isRefusal(found)) return found
    const { chunk, proven } = found
    this.#fetched.put(proven.proven)
    return { ...proven, node: chunk.node, ...(chunk.txPath === undefined ? {} : { given: chunk.txPath }) }
  }

  async #byBlock(offset: number, requester: Requester): Promise<Brought | Refusal> {
    if (this.options.searchesChain === false) return notSearched
    const tip = await this.#weave.tip(offset)
    if (isRefusal(tip)) return tip
    if (offset > tip.weaveSize) return refuse('unknown', 'client', 'beyond the end of the weave')
    const leave = new AbortController()
    const either = AbortSignal.any([requester.signal, leave.signal])
    const searching = this.#search(offset, { ...requester, signal: either })
    // A node knows at once where there is only padding; then the search through the blocks need not be waited for.
    const chunk = await this.chain.chunk(offset, requester)
    if (isRefusal(chunk)) {
      leave.abort()
      return chunk
    }
    const block = await searching
    if (isRefusal(block)) return block
    const found = await this.#inBlock(chunk, block, tip.height, offset, requester)
    if (isRefusal(found)) return found
    const span = await this.#names.named(found.span, block, offset, requester)
    return { ...found, span }
  }

  async #search(offset: number, requester: Requester): Promise<Block | Refusal> {
    if (this.options.searchesChain === false) return notSearched
    const turn = await this.#searches.wait(requester.client, requester.signal)
    if (isRefusal(turn)) return turn
    try {
      return await this.#weave.find(offset, requester)
    } finally {
      turn()
    }
  }

  async #inBlock(
    chunk: Chunk,
    block: Block,
    tipHeight: number,
    offset: number,
    requester: Requester,
  ): Promise<Brought | Refusal> {
    const found: InBlock | Refusal = proveInBlock(chunk, block, tipHeight, offset)
    if (!isRefusal(found)) {
      this.#fetched.put(found.proven)
      return { ...found, node: chunk.node }
    }
    if (chunk.txPath !== undefined) {
      return this.#ask(offset, requester, (other) => proveInBlock(other, block, tipHeight, offset))
    }
    // Without a proof for the block, the data root is proven by the signature of the transaction.
    const placed = await transactionAt(this.chain, block, offset, requester)
    if (isRefusal(placed)) return placed
    const span =
      placed === undefined ? undefined : await this.#reported.signed(placed.id, placed.place, requester)
    return span === undefined ? found : this.#bySpan(span, offset, requester)
  }
}
