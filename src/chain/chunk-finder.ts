import type { Clock } from '../actor/clock.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { type Ruleset, rulesetAt } from '../proof/path.js'
import type { PostedChunk } from '../proof/posted-chunk.js'
import { transactionAt } from './block-order.js'
import type { Block, Chain, Chunk, TransactionOffset } from './chain.js'
import { type InBlock, proveInBlock, proveInSpan } from './chunk-proof.js'
import { Hearsay } from './hearsay.js'
import { type ProvenChunk, Shelf } from './shelf.js'
import { type OffsetIndex, type Span, Spans } from './span.js'
import { Turns } from './turns.js'
import { WeaveSearch } from './weave-search.js'

export interface FinderOptions {
  /** From the question to an answer of any kind. */
  readonly deadlineMs: number
  /** Of that, spent at most on the id of a transaction whose chunk is proven already. */
  readonly nameMs: number
  /** True: an answer without the id is of no use, and all of the deadline may be spent on it. */
  readonly mustName?: () => boolean
  /** Offsets looked for at once; one more is refused `busy`. */
  readonly flightsMax: number
  /** Searches for a block at once; the others wait. */
  readonly searchesMax: number
  /** Bytes of proven chunks kept in memory, those of clients' posts apart. */
  readonly shelfBytes: number
  readonly postedShelfBytes: number
}

export type FinderChain = Pick<
  Chain,
  'currentBlock' | 'blockByHeight' | 'chunk' | 'transaction' | 'transactionOffset'
>

/** A chunk with everything an answer says about it. */
export interface FoundChunk {
  readonly span: Span
  readonly proven: ProvenChunk
  /** The node that gave it; undefined: it was here. */
  readonly node: string | undefined
}

type Provider = { span: Span; proven: ProvenChunk } | Refusal

/** Finds the chunk at an absolute weave offset, and proves it against the chain before anybody sees it. */
export class ChunkFinder {
  readonly #weave: WeaveSearch
  readonly #spans: Spans
  readonly #hearsay: Hearsay
  readonly #fetched: Shelf
  readonly #posted: Shelf
  readonly #searches: Turns
  readonly #flights = new Map<number, Promise<FoundChunk | Refusal>>()
  readonly #naming = new Map<number, Promise<Span>>()

  constructor(
    private readonly chain: FinderChain,
    private readonly clock: Clock,
    private readonly options: FinderOptions,
    private readonly index?: OffsetIndex,
  ) {
    this.#weave = new WeaveSearch(chain, clock)
    this.#spans = new Spans(clock)
    this.#hearsay = new Hearsay(chain)
    this.#fetched = new Shelf(options.shelfBytes)
    this.#posted = new Shelf(options.postedShelfBytes)
    this.#searches = new Turns(options.searchesMax, options.flightsMax)
  }

  /**
   * The chunk that holds weave byte `offset` (from 1). Several who ask for one offset share the work; it goes on when they leave,
   * at most for the deadline. Refusals: `unknown` (padding, beyond the weave, or no node has it), `forged`, `upstream`,
   * `late`, `busy`. Never rejects.
   */
  async find(offset: number): Promise<FoundChunk | Refusal> {
    const here = this.#here(offset)
    if (here !== undefined) return here
    const running = this.#flights.get(offset)
    if (running !== undefined) return running
    if (this.#flights.size >= this.options.flightsMax) {
      return refuse('busy', 'self', 'too many chunks are being looked for')
    }
    const flight = this.#within(this.options.deadlineMs, (signal) => this.#bring(offset, signal)).finally(
      () => this.#flights.delete(offset),
    )
    this.#flights.set(offset, flight)
    return flight
  }

  /** The rules by which data is proven that comes into the weave now; today's where no node says how long it is. */
  async rulesNow(): Promise<Ruleset> {
    const tip = await this.#within(this.options.nameMs, () => this.#weave.tip())
    return isRefusal(tip) ? 'rebase' : rulesetAt(tip.weaveSize + 1)
  }

  /** A chunk that a client posted, to be served as soon as its transaction has a place. */
  keep(posted: PostedChunk, ruleset: Ruleset): void {
    this.#posted.put({ ...posted, ruleset })
  }

  /** A node said in passing where a transaction lies: worth a look before the long way, proven like all else. */
  hear(id: Id, place: TransactionOffset): void {
    this.#hearsay.hear(id, place)
  }

  #known(offset: number): Span | undefined {
    return this.#spans.find(offset) ?? this.index?.find(offset)
  }

  #here(offset: number): FoundChunk | undefined {
    const span = this.#known(offset)
    return span === undefined ? undefined : this.#onShelf(span, offset)
  }

  #onShelf(span: Span, offset: number): FoundChunk | undefined {
    const { dataRoot, sizeBytes, start } = span
    const wanted = [dataRoot, sizeBytes, offset - start, rulesetAt(offset)] as const
    const proven = this.#fetched.find(...wanted) ?? this.#posted.find(...wanted)
    return proven === undefined ? undefined : { span, proven, node: undefined }
  }

  /** Runs `act` with a signal that fires in time; nobody waits longer, whatever `act` does. */
  async #within<T>(ms: number, act: (signal: AbortSignal) => Promise<T | Refusal>): Promise<T | Refusal> {
    const end = new AbortController()
    const timer = this.clock.after(ms, () => end.abort())
    const late = new Promise<Refusal>((resolve) => {
      const say = (): void => resolve(refuse('late', 'upstream', `no answer within ${ms} ms`))
      end.signal.addEventListener('abort', say, { once: true })
    })
    try {
      return await Promise.race([act(end.signal), late])
    } finally {
      timer.cancel()
      end.abort()
    }
  }

  async #bring(offset: number, signal: AbortSignal): Promise<FoundChunk | Refusal> {
    const known = this.#known(offset)
    if (known !== undefined) {
      const found = await this.#bySpan(known, offset, signal)
      if (!isRefusal(found) || found.refused !== 'forged') return found
      // A fork may have moved it: what the chain says now counts.
      this.#spans.forget(known)
    }
    const heard = known === undefined ? await this.#hearsay.span(offset, signal) : undefined
    if (heard !== undefined) {
      const found = this.#onShelf(heard, offset) ?? (await this.#bySpan(heard, offset, signal))
      if (!isRefusal(found)) this.#spans.remember(heard)
      if (!isRefusal(found) || found.refused !== 'forged') return found
      this.#hearsay.forget(heard)
    }
    return this.#byBlock(offset, signal)
  }

  #bySpan(span: Span, offset: number, signal: AbortSignal): Promise<FoundChunk | Refusal> {
    return this.#ask(offset, signal, (chunk) => {
      const proven = proveInSpan(chunk, span, offset)
      return isRefusal(proven) ? proven : { span, proven }
    })
  }

  /** Asks nodes until one gives a chunk that proves true. */
  async #ask(
    offset: number,
    signal: AbortSignal,
    prove: (chunk: Chunk) => Provider,
  ): Promise<FoundChunk | Refusal> {
    let held: Exclude<Provider, Refusal> | undefined
    const answer = await this.chain.chunk(offset, signal, (chunk) => {
      const outcome = prove(chunk)
      if (isRefusal(outcome)) return outcome
      held = outcome
      return true
    })
    if (isRefusal(answer)) return answer
    if (held === undefined) throw new Error('a chunk came without having been proven')
    this.#fetched.put(held.proven)
    return { ...held, node: answer.node }
  }

  async #byBlock(offset: number, signal: AbortSignal): Promise<FoundChunk | Refusal> {
    const tip = await this.#weave.tip(offset)
    if (isRefusal(tip)) return tip
    if (offset > tip.weaveSize) return refuse('unknown', 'client', 'beyond the end of the weave')
    const leave = new AbortController()
    const searching = this.#search(offset, AbortSignal.any([signal, leave.signal]))
    // Nodes know at once that there is only padding: then nobody waits for the search.
    const chunk = await this.chain.chunk(offset, signal)
    if (isRefusal(chunk)) {
      leave.abort()
      return chunk
    }
    const block = await searching
    if (isRefusal(block)) return block
    const found = await this.#inBlock(chunk, block, tip.height, offset, signal)
    if (isRefusal(found)) return found
    const span = await this.#named(found.span, block, offset)
    return { ...found, span }
  }

  async #search(offset: number, signal: AbortSignal): Promise<Block | Refusal> {
    const turn = await this.#searches.take(signal)
    if (isRefusal(turn)) return turn
    try {
      return await this.#weave.find(offset, signal)
    } finally {
      turn()
    }
  }

  async #inBlock(
    chunk: Chunk,
    block: Block,
    tipHeight: number,
    offset: number,
    signal: AbortSignal,
  ): Promise<FoundChunk | Refusal> {
    const found: InBlock | Refusal = proveInBlock(chunk, block, tipHeight, offset)
    if (!isRefusal(found)) {
      this.#fetched.put(found.proven)
      return { ...found, node: chunk.node }
    }
    if (chunk.txPath !== undefined) {
      return this.#ask(offset, signal, (other) => proveInBlock(other, block, tipHeight, offset))
    }
    // Without a proof for the block, the transaction's own signature vouches for the data root.
    const placed = await transactionAt(this.chain, block, offset, signal)
    if (isRefusal(placed)) return placed
    const span =
      placed === undefined ? undefined : await this.#hearsay.signed(placed.id, placed.place, signal)
    return span === undefined ? found : this.#bySpan(span, offset, signal)
  }

  /** The span with the id of its transaction, where that can be found in time and its signature names this data root. */
  #named(span: Span, block: Block, offset: number): Promise<Span> {
    if (span.id !== undefined) return Promise.resolve(span)
    const known = this.#spans.find(offset)
    if (known?.id !== undefined && known.start === span.start) return Promise.resolve(known)
    const running = this.#naming.get(span.start)
    if (running !== undefined) return running
    const naming = this.#name(span, block, offset).finally(() => this.#naming.delete(span.start))
    this.#naming.set(span.start, naming)
    return naming
  }

  async #name(span: Span, block: Block, offset: number): Promise<Span> {
    const { nameMs, deadlineMs, mustName } = this.options
    const signed = await this.#within(mustName?.() === true ? deadlineMs : nameMs, async (signal) => {
      const placed = await transactionAt(this.chain, block, offset, signal)
      if (placed === undefined || isRefusal(placed)) return undefined
      return this.#hearsay.signed(placed.id, placed.place, signal)
    })
    const same =
      signed !== undefined &&
      !isRefusal(signed) &&
      signed.start === span.start &&
      signed.sizeBytes === span.sizeBytes &&
      Buffer.compare(signed.dataRoot, span.dataRoot) === 0
    const named = same && signed.id !== undefined ? { ...span, id: signed.id } : span
    this.#spans.remember(named)
    return named
  }
}
