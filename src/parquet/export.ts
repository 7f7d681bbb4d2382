import { setImmediate as turn } from 'node:timers/promises'
import type { ChainIndex } from '../catalog/index-reader.js'
import { ExportFiles, type ExportPartition } from './export-files.js'
import type { ExportTable } from './export-layout.js'
import type { ExportOrder } from './export-protocol.js'
import { blockRow, ExportRows } from './export-rows.js'

/** Rows of the index read at once, fewer where they have many tags: the thread does other things in between. */
const pageRows = 1000

/** How far an export is. */
export interface ExportProgress {
  /** Everything up to this height is written. */
  height: number | undefined
  files: number
  readonly rows: Record<ExportTable, number>
}

/**
 * Writes what the index has of some heights as Parquet files into `folder` (see `ExportFiles` for their names), in chain order,
 * page by page, so memory stays flat. All files appear at the end, or none: rejects with `signal`'s reason, or with the disk's.
 * `lastHeight`: what is higher is left out.
 */
export async function exportParquet(
  index: ChainIndex,
  given: { readonly folder: string; readonly jobId: string; readonly lastHeight: number },
  order: ExportOrder,
  progress: ExportProgress,
  signal: AbortSignal,
): Promise<void> {
  const files = new ExportFiles(given.folder, given.jobId, order.maxFileRows)
  await files.prepare()
  try {
    for (const partition of partitions(order, given.lastHeight)) {
      await files.begin(partition)
      for (const page of pages(index, partition, order)) {
        for (const [table, row] of page) {
          files.push(table, row)
          progress.rows[table] += 1
        }
        progress.files = files.count
        await turn()
        signal.throwIfAborted()
      }
      progress.height = partition.last
    }
    await files.finish()
  } finally {
    await files.drop()
  }
}

type Entry = readonly [ExportTable, Parameters<ExportFiles['push']>[1]]

/** Everything of a partition, some thousand rows a page; each page is read from the current state of the index. */
function* pages(
  index: ChainIndex,
  { first, last }: ExportPartition,
  { skipL1Transactions, skipL1Tags }: ExportOrder,
): Generator<Iterable<Entry>> {
  for (let height = first; height <= last; height += pageRows) {
    index.refresh()
    const blocks = index.blocks(height, Math.min(height + pageRows - 1, last), false, pageRows)
    yield blocks.map((block) => ['blocks', blockRow(block)] as const)
  }
  const rows = new ExportRows(index)
  let after: Uint8Array | undefined
  for (;;) {
    index.refresh()
    const found = index.stretch(first, last, after, pageRows)
    yield entriesOf(found)
    after = found.at(-1)?.key
    if (after === undefined) return
  }

  function* entriesOf(found: ReturnType<ChainIndex['stretch']>): Generator<Entry> {
    for (const row of found) {
      const height = row.height ?? last
      const transaction = rows.transaction(row, height)
      if (row.isItem || !skipL1Transactions) yield ['transactions', transaction]
      if (row.isItem || !skipL1Tags) for (const tag of rows.tags(row, height)) yield ['tags', tag]
    }
  }
}

/** Heights cut where they divide by the partition's size, so that a folder means the same in every export of this size. */
function* partitions(
  { startHeight, heightPartitionSize: size }: ExportOrder,
  lastHeight: number,
): Generator<ExportPartition> {
  for (let from = startHeight - (startHeight % size); from <= lastHeight; from += size) {
    const to = from + size - 1
    yield { from, to, first: Math.max(from, startHeight), last: Math.min(to, lastHeight) }
  }
}
