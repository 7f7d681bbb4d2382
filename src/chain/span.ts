import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock } from '../actor/clock.js'
import type { Id } from '../format/id.js'
import type { BlockExtent, BlockTransaction } from '../proof/block-tree.js'

/** Where the data of one transaction lies in the weave, and the root against which its chunks are proven. */
export interface WeaveSpan {
  /** 1-based weave position of the first byte. */
  readonly start: number
  readonly sizeBytes: number
  readonly dataRoot: Uint8Array
  /** Absent where it was proven by the block's tree alone. */
  readonly id?: Id
  /** Proof from the block's tx_root down to the data root, where a node gave it. */
  readonly txPath?: Uint8Array
  /** Height of its block, where the index has it. */
  readonly height?: number
  /** So deep in the chain that no fork moves it. */
  readonly settled: boolean
}

/** A span as the index has it. */
export interface IndexedPlace extends Omit<WeaveSpan, 'dataRoot' | 'txPath'> {
  readonly id: Id
  readonly height: number
  /** Absent for format 1 where the index got it without data (`RowTransfer.dataRoot`). */
  readonly dataRoot?: Uint8Array
}

/** A block's part of the weave, and its root. */
export interface BlockStretch extends BlockExtent {
  /** Bytes of the weave in front of it. */
  readonly before: number
}

/** What the catalog knows of weave offsets. Makes no requests. */
export interface OffsetIndex {
  /** The span that holds weave byte `offset` (from 1). */
  find(offset: number): WeaveSpan | undefined
  /** The same, whether or not its data root is known. */
  place(offset: number): IndexedPlace | undefined
  /** The block at this height; undefined where it has no root, or the index does not have it. */
  block(height: number): BlockStretch | undefined
  /** All transactions of the block at this height; undefined where one of them, or the data root of one, is not known. */
  transactions(height: number): readonly BlockTransaction[] | undefined
}

/** Spans remembered: a scan over all of them takes some microseconds, and each holds a proof of about 1 KiB. */
const spansMax = 1024
/** How long a span that a fork may move is remembered, and one whose transaction was not found. */
const unsettledMs = 30_000

/** The spans that were found last. */
export class Spans {
  readonly #spans = new BoundedMap<number, { readonly span: WeaveSpan; readonly sinceMs: number }>(spansMax)

  constructor(private readonly clock: Clock) {}

  find(offset: number): WeaveSpan | undefined {
    for (const { span, sinceMs } of this.#spans.values()) {
      if (offset < span.start || offset >= span.start + span.sizeBytes) continue
      const isFinal = span.settled && span.id !== undefined
      if (isFinal || this.clock.monotonic() - sinceMs < unsettledMs) return span
      this.#spans.delete(span.start)
      return undefined
    }
    return undefined
  }

  remember(span: WeaveSpan): void {
    this.#spans.set(span.start, { span, sinceMs: this.clock.monotonic() })
  }

  forget(span: WeaveSpan): void {
    this.#spans.delete(span.start)
  }
}
