import type { Clock } from '../actor/clock.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { ClickhouseClient } from './clickhouse-client.js'
import { tagLinesStatement, wholeRowsStatement } from './clickhouse-schema.js'
import { recordedHeights, recordHeights, type StableHeights, wholeHeights, withHeights } from './heights.js'
import { ensureTables } from './index-push.js'
import { RowBinaryFault, RowBinaryReader } from './row-binary.js'
import { fillWholeRows } from './whole-rows.js'

/** Heights whose tags are looked up in one statement. */
const heightsEach = 500
const boundsBytes = 1000
const writeSettings = { optimize_on_insert: 0, async_insert: 0 }

/** Counted as whole, and rows in the tables that were found for them. */
export interface ForeignHeights extends StableHeights {
  readonly rows: number
}

/**
 * Takes over heights whose rows another program has written into the tables, as the importer of ar-io-node does: makes what is
 * missing besides, looks up the tags of these rows, and records the heights as whole. Without bounds they are those of all rows
 * in the tables. What is done twice counts once. Undefined: there are no rows. Never rejects for what the server does.
 */
export async function takeForeignRows(
  client: Pick<ClickhouseClient, 'ask' | 'write'>,
  wanted: { readonly from?: number | undefined; readonly to?: number | undefined },
  clock: Clock,
  onHeight: (height: number, heights: StableHeights) => void,
): Promise<ForeignHeights | undefined | Refusal> {
  const made = await ensureTables(client)
  if (isRefusal(made)) return made
  const found = await foundHeights(client, wanted)
  if (found === undefined || isRefusal(found)) return found
  const known = await recordedHeights(client)
  if (isRefusal(known)) return known
  // Rows that were restored or attached have passed no view. Where it is not filled yet, all rows are missing.
  const linesOf = known.hasWholeRows ? [tagLinesStatement, wholeRowsStatement] : [tagLinesStatement]
  for (let from = found.from; from <= found.to; from += heightsEach) {
    const to = Math.min(found.to, from + heightsEach - 1)
    for (const statementOf of linesOf) {
      const written = await client.write(statementOf({ from, to }), undefined, writeSettings)
      if (isRefusal(written)) return written
    }
    onHeight(to, found)
  }
  const filled = await fillWholeRows(client, () => true)
  if (isRefusal(filled)) return filled
  const before = await wholeHeights(client)
  if (isRefusal(before)) return before
  const version = Math.max(Math.floor(clock.now()), (before?.version ?? 0) + 1)
  const recorded = await recordHeights(client, withHeights(before, found, version))
  return isRefusal(recorded) ? recorded : found
}

async function foundHeights(
  client: Pick<ClickhouseClient, 'ask'>,
  wanted: { readonly from?: number | undefined; readonly to?: number | undefined },
): Promise<ForeignHeights | undefined | Refusal> {
  const { from = 0, to = 2 ** 32 - 1 } = wanted
  const bytes = await client.ask(
    `SELECT min(height), max(height), uniqExact(id) FROM transactions WHERE height BETWEEN ${from} AND ${to} FORMAT RowBinary`,
    boundsBytes,
  )
  if (isRefusal(bytes)) return bytes
  try {
    const read = new RowBinaryReader(bytes)
    const [lowest, highest, rows] = [read.u32(), read.u32(), read.u64()]
    if (rows === 0) return undefined
    return { from: wanted.from ?? lowest, to: wanted.to ?? highest, rows }
  } catch (error) {
    if (!(error instanceof RowBinaryFault) && !(error instanceof RangeError)) throw error
    return refuse('upstream', 'upstream', `ClickHouse gave no heights: ${error.message}`)
  }
}
