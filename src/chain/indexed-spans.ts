import type { Tip } from '../actor/shared.js'
import { unpackBlockHeader } from '../catalog/block-header.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { Row } from '../catalog/row.js'
import { idOfBytes } from '../format/id.js'
import { type BlockTransaction, emptyInlineRoot } from '../proof/block-tree.js'
import type { BlockStretch, IndexedPlace, OffsetIndex, WeaveSpan } from './span.js'

/** Looks up weave offsets, and the blocks that hold them, in the index. */
export class IndexedSpans implements OffsetIndex {
  constructor(
    private readonly index: ChainIndex,
    private readonly tip: Tip,
    /** Confirmations after which no fork moves a transaction. */
    private readonly forkDepth: number,
  ) {}

  find(offset: number): WeaveSpan | undefined {
    const place = this.place(offset)
    const { dataRoot } = place ?? {}
    return place === undefined || dataRoot === undefined ? undefined : { ...place, dataRoot }
  }

  place(offset: number): IndexedPlace | undefined {
    return this.index.known(() => this.#place(offset))
  }

  block(height: number): BlockStretch | undefined {
    return this.index.known(() => this.#block(height))
  }

  transactions(height: number): readonly BlockTransaction[] | undefined {
    return this.index.known(() => this.#transactions(height))
  }

  #place(offset: number): IndexedPlace | undefined {
    const row = this.index.transactionAt(offset)
    const end = row?.transfer?.weaveEnd ?? 0
    if (row?.height === undefined || row.transfer === undefined || end === 0) return undefined
    const { dataRoot } = row.transfer
    return {
      start: end - row.size + 1,
      sizeBytes: row.size,
      id: idOfBytes(row.id),
      height: row.height,
      settled: this.tip.height - row.height >= this.forkDepth,
      ...(dataRoot.length === 32 ? { dataRoot } : {}),
    }
  }

  #block(height: number): BlockStretch | undefined {
    const block = this.index.block(height)
    if (block?.header === undefined) return undefined
    const { txRoot, blockSize } = unpackBlockHeader(block.header)
    const sizeBytes = Number(blockSize)
    if (txRoot === undefined || !Number.isSafeInteger(sizeBytes)) return undefined
    return { txRoot, sizeBytes, before: Number(block.weaveSize) - sizeBytes }
  }

  #transactions(height: number): readonly BlockTransaction[] | undefined {
    const block = this.index.block(height)
    if (block === undefined) return undefined
    const found: BlockTransaction[] = []
    for (let index = 0; index < block.transactionCount; index += 1) {
      const row = this.index.transactionIn(height, index)
      const transaction = row === undefined ? undefined : leafOf(row)
      if (transaction === undefined) return undefined
      found.push(transaction)
    }
    return found
  }
}

/** What a block's tree needs to know of a row; undefined where its root is not known. */
function leafOf({ id, size, transfer }: Row): BlockTransaction | undefined {
  if (transfer === undefined || (transfer.format !== 1 && transfer.format !== 2)) return undefined
  const { format, dataRoot } = transfer
  if (size > 0 && dataRoot.length !== 32) return undefined
  const isBlank = format === 1 && size === 0
  return { id: idOfBytes(id), format, dataSize: size, dataRoot: isBlank ? emptyInlineRoot : dataRoot }
}
