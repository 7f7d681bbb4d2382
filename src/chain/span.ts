import type { Clock } from '../actor/clock.js'
import type { Id } from '../format/id.js'

/** Where the data of one transaction lies in the weave, and the root that vouches for every chunk of it. */
export interface Span {
  /** 1-based weave position of the first byte. */
  readonly start: number
  readonly sizeBytes: number
  readonly dataRoot: Uint8Array
  /** Absent where only the block's tree was asked. */
  readonly id?: Id
  /** Proof from the block's tx_root down to the data root, where a node gave it. */
  readonly txPath?: Uint8Array
  /** So deep in the chain that no fork moves it. */
  readonly settled: boolean
}

/** Whoever knows which transaction holds a weave offset: the catalog, or what was learned on the way. Never asks anybody. */
export interface OffsetIndex {
  /** The span that holds weave byte `offset` (from 1). */
  find(offset: number): Span | undefined
}

/** Spans remembered: a scan over all of them takes some microseconds, and each holds a proof of about 1 KiB. */
const spansMax = 1024
/** A span that a fork may move is believed so long, and so is one that nobody could name. */
const unsettledMs = 30_000

/** The spans that were found last. */
export class Spans implements OffsetIndex {
  readonly #spans = new Map<number, { readonly span: Span; readonly sinceMs: number }>()

  constructor(private readonly clock: Clock) {}

  find(offset: number): Span | undefined {
    for (const { span, sinceMs } of this.#spans.values()) {
      if (offset < span.start || offset >= span.start + span.sizeBytes) continue
      const isFinal = span.settled && span.id !== undefined
      if (isFinal || this.clock.monotonic() - sinceMs < unsettledMs) return span
      this.#spans.delete(span.start)
      return undefined
    }
    return undefined
  }

  remember(span: Span): void {
    this.#spans.delete(span.start)
    if (this.#spans.size >= spansMax) {
      const [oldest] = this.#spans.keys()
      if (oldest !== undefined) this.#spans.delete(oldest)
    }
    this.#spans.set(span.start, { span, sinceMs: this.clock.monotonic() })
  }

  forget(span: Span): void {
    this.#spans.delete(span.start)
  }
}
