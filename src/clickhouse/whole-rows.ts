import { isRefusal, type Refusal } from '../format/refusal.js'
import type { ClickhouseClient } from './clickhouse-client.js'
import { heightsTable, wholeRowsMark, wholeRowsStatement, wholeRowTable } from './clickhouse-schema.js'
import { recordedHeights, type StableHeights } from './heights.js'
import { rowHeights, writeByHeights } from './row-heights.js'

type Client = Pick<ClickhouseClient, 'ask' | 'write'>

const existsBytes = 1000

/**
 * Whether there is no table of whole rows. A record that says it has all rows is of one that was removed, and is made void, so
 * that nobody reads the next one before it is filled.
 */
export async function lacksWholeRows(client: Client): Promise<boolean | Refusal> {
  const answer = await client.ask(`EXISTS TABLE ${wholeRowTable} FORMAT RowBinary`, existsBytes)
  if (isRefusal(answer) || answer[0] === 1) return isRefusal(answer) ? answer : false
  const made = await markWholeRows(client, false)
  return isRefusal(made) && made.refused !== 'unknown' ? made : true
}

/** Records that the table of whole rows has all rows where there is none: the view that fills it will see each of them. */
export async function markIfEmpty(client: Client): Promise<'done' | Refusal> {
  const found = await rowHeights(client)
  if (isRefusal(found)) return found
  return found === undefined ? markWholeRows(client, true) : 'done'
}

/**
 * Fills the table of whole rows with rows that were there before it, and records that it has all. Does nothing where that is
 * recorded. What is done twice counts once. `onHeight` is called after each part; with false it ends, and begins anew the next
 * time. Never rejects for what the server does.
 */
export async function fillWholeRows(
  client: Client,
  onHeight: (height: number, heights: StableHeights) => boolean | Promise<boolean>,
): Promise<'done' | Refusal> {
  const recorded = await recordedHeights(client)
  if (isRefusal(recorded)) return recorded
  if (recorded.hasWholeRows) return 'done'
  const found = await rowHeights(client)
  if (isRefusal(found)) return found
  if (found === undefined) return markWholeRows(client, true)
  const written = await writeByHeights(client, found, [wholeRowsStatement], (height) =>
    onHeight(height, found),
  )
  if (isRefusal(written)) return written
  return written === 'left' ? 'done' : markWholeRows(client, true)
}

function markWholeRows(client: Client, hasAll: boolean): Promise<'done' | Refusal> {
  const { from, to } = wholeRowsMark
  return client.write(
    `INSERT INTO ${heightsTable} (from_height, to_height, row_count, version) ` +
      `SELECT toUInt32(${from}), toUInt32(${to}), toUInt64(${hasAll ? 1 : 0}), max(version) + 1 ` +
      `FROM ${heightsTable} WHERE from_height = ${from}`,
  )
}
