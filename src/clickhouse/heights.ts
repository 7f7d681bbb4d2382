import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { ClickhouseClient } from './clickhouse-client.js'
import { heightsTable, wholeRowsMark } from './clickhouse-schema.js'
import { RowBinaryFault, RowBinaryReader } from './row-binary.js'

/** Heights, both inclusive. */
export interface StableHeights {
  readonly from: number
  readonly to: number
}

/** Heights of which ClickHouse has every row that the writer of the index has. */
export interface WholeHeights extends StableHeights {
  /** Rows that were written for them; undefined where several writers wrote parts of it. */
  readonly rows: number | undefined
  /** Version of the record that names them. */
  readonly version: number
}

/** What is recorded. */
export interface RecordedHeights {
  /** The highest heights that are there without a gap; undefined: nobody has recorded any. */
  readonly heights: WholeHeights | undefined
  /** The table of whole rows has all rows. */
  readonly hasWholeRows: boolean
}

const answerMaxBytes = 2 ** 20
const rowsUnknown = 2 ** 53 - 1

/** The highest heights that are there without a gap; undefined: nobody has recorded any. Never rejects. */
export async function wholeHeights(
  client: Pick<ClickhouseClient, 'ask'>,
): Promise<WholeHeights | undefined | Refusal> {
  const recorded = await recordedHeights(client)
  return isRefusal(recorded) ? recorded : recorded.heights
}

/** All that is recorded of heights. Never rejects. */
export async function recordedHeights(
  client: Pick<ClickhouseClient, 'ask'>,
): Promise<RecordedHeights | Refusal> {
  const bytes = await client.ask(
    'SELECT from_height, argMax(to_height, version), argMax(row_count, version), max(version) ' +
      `FROM ${heightsTable} GROUP BY from_height FORMAT RowBinary`,
    answerMaxBytes,
  )
  if (isRefusal(bytes)) return bytes
  try {
    const from = new RowBinaryReader(bytes)
    const found: WholeHeights[] = []
    while (from.more) {
      const [low, high, rows, version] = [from.u32(), from.u32(), from.u64(), from.u64()]
      found.push({ from: low, to: high, rows: rows === rowsUnknown ? undefined : rows, version })
    }
    const mark = found.find((one) => one.from === wholeRowsMark.from && one.to === wholeRowsMark.to)
    return { heights: joinedHeights(found), hasWholeRows: mark?.rows === 1 }
  } catch (error) {
    if (!(error instanceof RowBinaryFault) && !(error instanceof RangeError)) throw error
    return refuse('upstream', 'upstream', `ClickHouse gave no heights: ${error.message}`)
  }
}

/** The highest range of all that touch each other. */
export function joinedHeights(ranges: readonly WholeHeights[]): WholeHeights | undefined {
  const byFrom = [...ranges].sort((one, other) => one.from - other.from)
  let last: WholeHeights | undefined
  for (const range of byFrom) {
    if (range.to < range.from) continue
    if (last === undefined || range.from > last.to + 1) {
      last = range
      continue
    }
    const version = Math.max(last.version, range.version)
    const isInside = range.to <= last.to
    last = isInside ? { ...last, version } : { from: last.from, to: range.to, rows: undefined, version }
  }
  return last
}

/** Heights that are whole now, with those that were whole `before` where the two touch or overlap: what is to be recorded. */
export function withHeights(
  before: WholeHeights | undefined,
  { from, to, rows }: StableHeights & Pick<WholeHeights, 'rows'>,
  version: number,
): WholeHeights {
  if (before === undefined || from > before.to + 1 || to + 1 < before.from) return { from, to, rows, version }
  const areApart = from > before.to || to < before.from
  const isCounted = areApart && rows !== undefined && before.rows !== undefined
  return {
    from: Math.min(from, before.from),
    to: Math.max(to, before.to),
    // Rows of heights that both have would count twice.
    rows: isCounted ? rows + before.rows : undefined,
    version,
  }
}

/** Records that heights are there as a whole. */
export function recordHeights(
  client: Pick<ClickhouseClient, 'write'>,
  { from, to, rows = rowsUnknown, version }: WholeHeights,
): Promise<'done' | Refusal> {
  return client.write(
    `INSERT INTO ${heightsTable} (from_height, to_height, row_count, version) VALUES (${from}, ${to}, ${rows}, ${version})`,
  )
}
