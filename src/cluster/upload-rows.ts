/** What the database decides by, beside the record itself. */
export interface UploadFacts {
  /** The record, JSON. */
  readonly body: string
  /** 0: not over; 1: money is under way; 2: finalized; 3: over otherwise. */
  readonly kind: number
  readonly dueMs: number
  /** Parts are taken for it. */
  readonly takes: boolean
  /** A client has ordered its end and does not wait. */
  readonly ordered: boolean
  /** Its money is to be spent or given back. */
  readonly owes: boolean
  readonly client: string | undefined
  readonly paid: boolean
}

/** A part: where it begins, its bytes, its object in the store. */
export interface UploadPart {
  readonly start: number
  readonly size: number
  readonly object: string
}

/** An upload as the database has it. */
export interface UploadRow {
  readonly id: string
  readonly body: string
  readonly version: number
  readonly bytes: number
  readonly files: number
  /** Grows where the parts that were known may be gone: all are read anew then. */
  readonly cut: number
  /** Number of its newest part. */
  readonly seq: number
  /** Only who has this number adds parts. */
  readonly writer: number
  /** The process that puts it together. */
  readonly claimedBy: string | undefined
  readonly stage: string | undefined
  /** Parts that are new since the requested one: start, bytes. */
  readonly parts: readonly (readonly [start: number, size: number])[]
  /** Time of the database. */
  readonly nowMs: number
}

/** What of an upload is counted against the bounds. */
export interface UploadCounts {
  readonly id: string
  readonly client: string | undefined
  readonly paid: boolean
  readonly bytes: number
  readonly files: number
}

/** As the client of the database gives it. */
export interface DatabaseRow {
  readonly [name: string]: unknown
}

/** What `uploadRowOf` reads of `cluster_uploads u`. */
export const uploadColumns = `u.id, body, version, bytes, files, cut, seq, writer, claimed_by, stage,
  extract(epoch FROM clock_timestamp()) * 1000 AS now_ms`

/** Reads a row of the table of uploads in parts. */
export function uploadRowOf(row: DatabaseRow): UploadRow {
  const number = (name: string): number => Number(row[name])
  const text = (name: string): string | undefined => (row[name] === null ? undefined : String(row[name]))
  return {
    id: String(row.id),
    body: String(row.body),
    version: number('version'),
    bytes: number('bytes'),
    files: number('files'),
    cut: number('cut'),
    seq: number('seq'),
    writer: number('writer'),
    claimedBy: text('claimed_by'),
    stage: text('stage'),
    parts: (row.parts as [number, number][] | undefined) ?? [],
    nowMs: number('now_ms'),
  }
}
