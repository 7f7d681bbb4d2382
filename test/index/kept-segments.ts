import { join } from 'node:path'
import { RowBatch } from '../../src/index/row-batch.js'
import { type MergeLimits, SegmentKeeper, type SegmentLedger } from '../../src/index/segment-keeper.js'
import { Segments } from '../../src/index/segment-list.js'
import type { SegmentRow } from '../../src/index/segment-row.js'
import { type Environment, openEnvironment } from '../../src/store/lmdb.js'
import { plainRow } from './rows.js'

export const rowsPerBatch = 150
const limits: MergeLimits = { segmentsAlike: 3, levelMax: 2 }

/** A folder of segments with their list in LMDB, and how many batches are in them. */
export class KeptSegments {
  readonly segments: Segments
  readonly folder: string
  readonly environment: Environment
  #keeper: SegmentKeeper | undefined

  constructor(path: string) {
    this.environment = openEnvironment(path)
    this.folder = join(path, 'segments')
    const { read } = this.#ledger()
    this.segments = new Segments(this.folder, read)
  }

  #ledger(): SegmentLedger {
    const table = this.environment.table('meta')
    return {
      read: () => table.get(Buffer.from('segments')),
      write: (list, also) =>
        this.environment.write(() => {
          table.put(Buffer.from('segments'), list)
          also?.()
        }),
    }
  }

  get keeper(): SegmentKeeper {
    this.#keeper ??= new SegmentKeeper(this.segments, this.#ledger(), limits)
    return this.#keeper
  }

  /** Batches that are in segments: changed in the same transaction as the list. */
  get batches(): number {
    this.environment.refresh()
    return this.environment.table('meta').get(Buffer.from('batches'))?.[0] ?? 0
  }

  /** Adds the next batch. */
  addNext(): number {
    const number = this.batches
    const batch = new RowBatch()
    for (const row of batchRows(number)) batch.add(row)
    this.keeper.add(batch, () => {
      this.environment.table('meta').put(Buffer.from('batches'), Buffer.of(number + 1))
    })
    return number + 1
  }

  async close(): Promise<void> {
    this.#keeper?.close()
    this.segments.close()
    await this.environment.close()
  }
}

/** The rows of a batch: their heights lie among those of other batches. */
export function batchRows(batch: number): SegmentRow[] {
  return Array.from({ length: rowsPerBatch }, (_, at) => {
    const number = batch * rowsPerBatch + at
    return plainRow(number, { height: 1000 + ((number * 7919) % 500) })
  })
}
