import type { Tip } from '../actor/shared.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import { idOfBytes } from '../format/id.js'
import type { OffsetIndex, Span } from './span.js'

/** Spans of transactions that the index knows the place of. */
export class IndexedSpans implements OffsetIndex {
  constructor(
    private readonly index: ChainIndex,
    private readonly tip: Tip,
    /** Blocks on top of a transaction after which nothing moves it. */
    private readonly forkDepth: number,
  ) {}

  find(offset: number): Span | undefined {
    this.index.refresh()
    const row = this.index.transactionAt(offset)
    const end = row?.transfer?.weaveEnd ?? 0
    if (row?.height === undefined || row.transfer === undefined || end === 0) return undefined
    return {
      start: end - row.size + 1,
      sizeBytes: row.size,
      dataRoot: row.transfer.dataRoot,
      id: idOfBytes(row.id),
      settled: this.tip.height - row.height >= this.forkDepth,
    }
  }
}
