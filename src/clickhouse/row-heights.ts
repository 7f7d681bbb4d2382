import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { ClickhouseClient } from './clickhouse-client.js'
import type { StableHeights } from './heights.js'
import { RowBinaryFault, RowBinaryReader } from './row-binary.js'

/** Heights whose rows are written in one statement. */
const heightsEach = 500
const boundsBytes = 1000
const writeSettings = { optimize_on_insert: 0, async_insert: 0 }

/** Heights between which there are rows, and how many rows. */
export interface RowHeights extends StableHeights {
  readonly rows: number
}

/**
 * Between which heights the tables have rows; undefined: there are none. `within`: only rows of these heights, and a row that is
 * there twice counts once, which takes memory for each of them.
 */
export async function rowHeights(
  client: Pick<ClickhouseClient, 'ask'>,
  within?: StableHeights,
): Promise<RowHeights | undefined | Refusal> {
  const count = within === undefined ? 'toUInt64(count())' : 'uniqExact(id)'
  const where = within === undefined ? '' : ` WHERE height BETWEEN ${within.from} AND ${within.to}`
  const sql = `SELECT min(height), max(height), ${count} FROM transactions${where} FORMAT RowBinary`
  const bytes = await client.ask(sql, boundsBytes)
  if (isRefusal(bytes)) return bytes
  try {
    const read = new RowBinaryReader(bytes)
    const [from, to, rows] = [read.u32(), read.u32(), read.u64()]
    return rows === 0 ? undefined : { from, to, rows }
  } catch (error) {
    if (!(error instanceof RowBinaryFault) && !(error instanceof RangeError)) throw error
    return refuse('upstream', 'upstream', `ClickHouse gave no heights: ${error.message}`)
  }
}

/**
 * Carries out statements that write rows, for some heights at a time. `onHeight` is called after each part; with false it ends
 * (`left`). Never rejects for what the server does.
 */
export async function writeByHeights(
  client: Pick<ClickhouseClient, 'write'>,
  heights: StableHeights,
  statements: readonly ((heights: StableHeights) => string)[],
  onHeight: (height: number) => boolean | Promise<boolean>,
): Promise<'done' | 'left' | Refusal> {
  for (let { from } = heights; from <= heights.to; from += heightsEach) {
    const to = Math.min(heights.to, from + heightsEach - 1)
    for (const statementOf of statements) {
      const written = await client.write(statementOf({ from, to }), undefined, writeSettings)
      if (isRefusal(written)) return written
    }
    if (!(await onHeight(to))) return 'left'
  }
  return 'done'
}
