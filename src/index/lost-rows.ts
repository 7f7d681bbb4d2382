import { DamagedSegment, pageBytes } from './checked-file.js'
import { rowsPerStart, startBytes } from './row-record.js'
import type { Segment } from './segment.js'

/**
 * The rows that cannot be read because of these damaged pages, ascending. Undefined where a page has anything but rows: then
 * nobody can say which rows it takes away.
 */
export function lostRows(segment: Segment, pages: readonly number[]): number[] | undefined {
  const { rows, starts, rowCount } = segment.footer
  const areRows = pages.every((page) => page * pageBytes >= rows && (page + 1) * pageBytes <= starts)
  if (!areRows) return undefined
  const lost = new Set<number>()
  for (const page of pages) {
    // Rows are found by every sixteenth: those of one stretch behind the damage are lost with it.
    for (let stretch = stretchAt(segment, page * pageBytes); ; stretch += 1) {
      const first = stretch * rowsPerStart
      if (first >= rowCount || startOf(segment, stretch) >= (page + 1) * pageBytes) break
      const end = Math.min(first + rowsPerStart, rowCount)
      for (let row = first; row < end; row += 1) if (!canLoad(segment, row)) lost.add(row)
    }
  }
  return [...lost].sort((one, other) => one - other)
}

/** Where the rows of a stretch begin. */
function startOf({ file, footer }: Segment, stretch: number): number {
  const entry = footer.starts + stretch * startBytes
  const at = file.at(entry, entry + startBytes)
  return file.bytes.readUIntLE(at, startBytes)
}

/** The last stretch that does not begin behind this position of the file; the first where all do. */
function stretchAt(segment: Segment, position: number): number {
  let [low, high] = [0, Math.max(0, Math.ceil(segment.footer.rowCount / rowsPerStart) - 1)]
  while (low < high) {
    const middle = (low + high + 1) >>> 1
    if (startOf(segment, middle) <= position) low = middle
    else high = middle - 1
  }
  return low
}

function canLoad(segment: Segment, row: number): boolean {
  try {
    segment.rows.load(row)
    return true
  } catch (error) {
    if (!(error instanceof DamagedSegment)) throw error
    return false
  }
}
