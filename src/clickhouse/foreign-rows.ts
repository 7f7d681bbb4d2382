import type { Clock } from '../actor/clock.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { ClickhouseClient } from './clickhouse-client.js'
import { tagLinesStatement, wholeRowsStatement } from './clickhouse-schema.js'
import { recordedHeights, recordHeights, type StableHeights, wholeHeights, withHeights } from './heights.js'
import { ensureTables } from './index-push.js'
import { type RowHeights, rowHeights, writeByHeights } from './row-heights.js'
import { fillWholeRows } from './whole-rows.js'

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
): Promise<RowHeights | undefined | Refusal> {
  const made = await ensureTables(client)
  if (isRefusal(made)) return made
  const rows = await rowHeights(client, { from: wanted.from ?? 0, to: wanted.to ?? 2 ** 32 - 1 })
  if (rows === undefined || isRefusal(rows)) return rows
  const found = { ...rows, from: wanted.from ?? rows.from, to: wanted.to ?? rows.to }
  const known = await recordedHeights(client)
  if (isRefusal(known)) return known
  // Rows that were restored or attached have passed no view. Where it is not filled yet, all rows are missing.
  const linesOf = known.hasWholeRows ? [tagLinesStatement, wholeRowsStatement] : [tagLinesStatement]
  const written = await writeByHeights(client, found, linesOf, (height) => {
    onHeight(height, found)
    return true
  })
  if (isRefusal(written)) return written
  const filled = await fillWholeRows(client, () => true)
  if (isRefusal(filled)) return filled
  const before = await wholeHeights(client)
  if (isRefusal(before)) return before
  const version = Math.max(Math.floor(clock.now()), (before?.version ?? 0) + 1)
  const recorded = await recordHeights(client, withHeights(before, found, version))
  return isRefusal(recorded) ? recorded : found
}
