import type { Dictionary } from './dictionary.js'
import { endlessEffort } from './effort.js'
import { passes } from './page-span.js'
import type { Row } from './row.js'
import { pendingStart, rowKey } from './row-key.js'
import { MergedScan, type RowScan } from './row-scan.js'
import type { LiveSegment } from './segment-rows.js'
import { boundsOf } from './selection.js'
import { tableParts } from './table-scan.js'
import type { LiveTables } from './table-sets.js'

/** The rows of the index by where they are. Each is in one place only. */
export interface RowParts {
  readonly segments: readonly LiveSegment[]
  /** The rows of the tables between two heights (inclusive), in the order of the chain. */
  tables(from: number, to: number): Generator<Row>
  /** The height of each of these, in their order. */
  tableHeights(from: number, to: number): Generator<number>
}

const noId = Buffer.alloc(32)

/** The rows of a segment between two heights (inclusive): the first one, and the one behind the last. Some may be removed. */
export function rowsBetween(
  { segment }: LiveSegment,
  from: number,
  to: number,
): [first: number, end: number] {
  const at = (height: number): number =>
    height >= pendingStart ? segment.count : segment.lowerBound(rowKey(height, 0, false, noId))
  return [at(from), at(to + 1)]
}

/** The rows of the tables, by what `read` says of each. */
export function* tableRows<Read>(
  live: readonly LiveTables[],
  dictionaries: readonly Dictionary[],
  { from, to }: { readonly from: number; readonly to: number },
  read: (scan: RowScan, key: Uint8Array) => Read,
): Generator<Read> {
  const wanted = { minHeight: from, maxHeight: to }
  const { first: start, last: end } = boundsOf(wanted)
  const wish = { backwards: false, effort: endlessEffort(), start, end }
  const scan = new MergedScan(tableParts(live, dictionaries, wanted, wish), wish)
  scan.seek(start)
  for (let { key } = scan; key !== undefined && !passes(key, end, false); key = scan.key) {
    yield read(scan, key)
    scan.next()
  }
}
