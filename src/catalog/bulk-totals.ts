import { VarReader, VarWriter } from '../format/varbytes.js'
import type { Table } from '../store/lmdb.js'

/** What the last import in bulk brought, up to what it listed last. */
export interface BulkTotals {
  readonly rows: number
  /** Times that rows were listed. */
  readonly batches: number
  /** When it began and when it listed rows last, seconds since 1970. */
  readonly beganSeconds: number
  readonly listedSeconds: number
  /** The most bytes that its rows took in memory before they were listed. */
  readonly batchBytesMax: number
}

const totalsKey = Buffer.from('bulk import')
const version = 1

/** Undefined where no import in bulk ever listed rows, or another version of this program wrote what it brought. */
export function bulkTotals(indexMeta: Table): BulkTotals | undefined {
  const record = indexMeta.get(totalsKey)
  if (record === undefined || record[0] !== version) return undefined
  const read = new VarReader(record, 1)
  return {
    rows: read.uint(),
    batches: read.uint(),
    beganSeconds: read.uint(),
    listedSeconds: read.uint(),
    batchBytesMax: read.uint(),
  }
}

/** Inside the transaction that lists rows: only the keeper. Version u8, then the numbers in LEB128, in their order above. */
export function putBulkTotals(indexMeta: Table, totals: BulkTotals): void {
  const out = new VarWriter()
  out.u8(version)
  const { rows, batches, beganSeconds, listedSeconds, batchBytesMax } = totals
  for (const number of [rows, batches, beganSeconds, listedSeconds, batchBytesMax]) out.uint(number)
  indexMeta.put(totalsKey, out.copy())
}

/** Rows a second of an import in bulk, from its begin to what it listed last. */
export function bulkRate({ rows, beganSeconds, listedSeconds }: BulkTotals): number {
  return rows / Math.max(1, listedSeconds - beganSeconds)
}
