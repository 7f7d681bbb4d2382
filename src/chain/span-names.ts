import type { Clock } from '../actor/clock.js'
import type { Requester } from '../actor/requester.js'
import { isRefusal } from '../format/refusal.js'
import { equalBytes } from '../proof/digest.js'
import { transactionAt } from './block-order.js'
import type { Block, Chain } from './chain.js'
import type { ReportedPlaces } from './reported-places.js'
import type { Spans, WeaveSpan } from './span.js'
import { untilLate } from './until-late.js'

export interface NamingOptions {
  /** Spent at most on the id of a transaction whose chunk is proven already. */
  readonly nameMs: number
  /** True: an answer without the id is of no use, and `deadlineMs` may be spent on it. */
  readonly mustName?: () => boolean
  readonly deadlineMs: number
}

export interface NamingParts {
  readonly chain: Pick<Chain, 'transactionOffset'>
  readonly clock: Clock
  readonly reported: ReportedPlaces
  readonly spans: Spans
}

/** Finds out which transaction a span belongs to that was proven by its block alone. */
export class SpanNames {
  readonly #running = new Map<number, Promise<WeaveSpan>>()

  constructor(
    private readonly parts: NamingParts,
    private readonly options: NamingOptions,
  ) {}

  /** The span with the id of its transaction, where that can be found in time and it has signed this data root. */
  named(
    span: WeaveSpan,
    block: Block,
    offset: number,
    requester: Pick<Requester, 'client'>,
  ): Promise<WeaveSpan> {
    if (span.id !== undefined) return Promise.resolve(span)
    const known = this.parts.spans.find(offset)
    if (known?.id !== undefined && known.start === span.start) return Promise.resolve(known)
    const running = this.#running.get(span.start)
    if (running !== undefined) return running
    const naming = this.#name(span, block, offset, requester).finally(() => this.#running.delete(span.start))
    this.#running.set(span.start, naming)
    return naming
  }

  async #name(
    span: WeaveSpan,
    block: Block,
    offset: number,
    { client }: Pick<Requester, 'client'>,
  ): Promise<WeaveSpan> {
    const { chain, clock, reported, spans } = this.parts
    const { nameMs, deadlineMs, mustName } = this.options
    const signed = await untilLate(clock, mustName?.() === true ? deadlineMs : nameMs, async (signal) => {
      const requester = { client, signal }
      const placed = await transactionAt(chain, block, offset, requester)
      if (placed === undefined || isRefusal(placed)) return undefined
      return reported.signed(placed.id, placed.place, requester)
    })
    const same =
      signed !== undefined &&
      !isRefusal(signed) &&
      signed.start === span.start &&
      signed.sizeBytes === span.sizeBytes &&
      equalBytes(signed.dataRoot, span.dataRoot)
    const named = same && signed.id !== undefined ? { ...span, id: signed.id } : span
    spans.remember(named)
    return named
  }
}
