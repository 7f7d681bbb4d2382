import type { AskDatabase } from './postgres-session.js'
import { RecordSum } from './record-sum.js'
import { decodeTransfer, type Transfer } from './transfer.js'

/** Rows as the client gives them: numbers of 64 bits are decimal text. */
export interface StateRow {
  readonly sequence: string
  readonly version: string
  readonly head: Uint8Array
  readonly time_ms: string
  /** Sum of all records (`RecordSum`), and the version that it belongs to. */
  readonly records: Uint8Array | null
  readonly records_version: string | null
}

export interface TransferRow {
  readonly sequence: string
  readonly body: string
}

export interface AccountRow {
  readonly name: string
  readonly body: string
}

interface RecordRow {
  readonly kind: string
  readonly key: string
  readonly version: string
  readonly value: string
}

const readAtOnce = 5000

/** Reads a transfer out of its row. */
export function transferOf({ sequence, body }: TransferRow): Transfer {
  return decodeTransfer(Number(sequence), body)
}

/** The sum of all records as it is stored; undefined where a service of an older version has changed records since. */
export function recordSumOf({ records, records_version, version }: StateRow): RecordSum | undefined {
  if (records === null || records_version !== version) return undefined
  return new RecordSum(Buffer.from(records).toString('hex'))
}

/**
 * The rows of a query page by page. `page` has a condition for what lies behind $1 …, and a limit behind these; `placeOf` says
 * where a row stands.
 */
export async function* rowsOf<Row extends object>(
  ask: AskDatabase,
  page: string,
  first: readonly unknown[],
  placeOf: (row: Row) => readonly unknown[],
): AsyncIterable<Row> {
  for (let place = first, isMore = true; isMore; ) {
    const rows = await ask<Row>(page, [...place, readAtOnce])
    yield* rows
    const last = rows.at(-1)
    if (last !== undefined) place = placeOf(last)
    isMore = rows.length === readAtOnce
  }
}

/** Computes the sum of all records from them. */
export async function computedSum(ask: AskDatabase): Promise<RecordSum> {
  const page = `SELECT kind, key, version, value FROM ledger_records
    WHERE (kind, key) > ($1, $2) ORDER BY kind, key LIMIT $3`
  const sum = new RecordSum()
  for await (const { kind, key, version, value } of rowsOf<RecordRow>(ask, page, ['', ''], (row) => [
    row.kind,
    row.key,
  ]))
    sum.flip(kind, key, Number(version), value)
  return sum
}

/** Stores the sum of all records where none is known. Inside a transaction. */
export async function sumRecords(ask: AskDatabase): Promise<void> {
  const [state] = await ask<StateRow>('SELECT * FROM ledger_state FOR UPDATE')
  if (state === undefined || recordSumOf(state) !== undefined) return
  const sum = await computedSum(ask)
  await ask('UPDATE ledger_state SET records = $1, records_version = version', [Buffer.from(sum.text, 'hex')])
}
