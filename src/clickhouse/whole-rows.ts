import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { ClickhouseClient } from './clickhouse-client.js'
import { heightsTable, wholeRowsMark, wholeRowsStatement, wholeRowTable } from './clickhouse-schema.js'
import { recordedHeights, type StableHeights } from './heights.js'
import { RowBinaryFault, RowBinaryReader } from './row-binary.js'

type Client = Pick<ClickhouseClient, 'ask' | 'write'>

/** Heights whose rows are written in one statement. */
const heightsEach = 500
const boundsBytes = 1000
const writeSettings = { optimize_on_insert: 0, async_insert: 0 }

/**
 * Whether there is no table of whole rows. A record that says it has all rows is of one that was removed, and is made void, so
 * that nobody reads the next one before it is filled.
 */
export async function lacksWholeRows(client: Client): Promise<boolean | Refusal> {
  const answer = await client.ask(`EXISTS TABLE ${wholeRowTable} FORMAT RowBinary`, boundsBytes)
  if (isRefusal(answer) || answer[0] === 1) return isRefusal(answer) ? answer : false
  const made = await markWholeRows(client, false)
  return isRefusal(made) && made.refused !== 'unknown' ? made : true
}

/** Where no row was there before the view that fills the table of whole rows, it has all rows. */
export async function markIfEmpty(client: Client): Promise<'done' | Refusal> {
  const found = await allHeights(client)
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
  const found = await allHeights(client)
  if (isRefusal(found)) return found
  for (let from = found?.from ?? 0; found !== undefined && from <= found.to; from += heightsEach) {
    const to = Math.min(found.to, from + heightsEach - 1)
    const written = await client.write(wholeRowsStatement({ from, to }), undefined, writeSettings)
    if (isRefusal(written)) return written
    if (!(await onHeight(to, found))) return 'done'
  }
  return markWholeRows(client, true)
}

function markWholeRows(client: Client, hasAll: boolean): Promise<'done' | Refusal> {
  const { from, to } = wholeRowsMark
  return client.write(
    `INSERT INTO ${heightsTable} (from_height, to_height, row_count, version) ` +
      `SELECT toUInt32(${from}), toUInt32(${to}), toUInt64(${hasAll ? 1 : 0}), max(version) + 1 ` +
      `FROM ${heightsTable} WHERE from_height = ${from}`,
  )
}

/** Between which heights there are rows; undefined: there are none. */
async function allHeights(client: Client): Promise<StableHeights | undefined | Refusal> {
  const sql = 'SELECT min(height), max(height), toUInt64(count()) FROM transactions FORMAT RowBinary'
  const bytes = await client.ask(sql, boundsBytes)
  if (isRefusal(bytes)) return bytes
  try {
    const read = new RowBinaryReader(bytes)
    const [from, to, rows] = [read.u32(), read.u32(), read.u64()]
    return rows === 0 ? undefined : { from, to }
  } catch (error) {
    if (!(error instanceof RowBinaryFault) && !(error instanceof RangeError)) throw error
    return refuse('upstream', 'upstream', `ClickHouse gave no heights: ${error.message}`)
  }
}
