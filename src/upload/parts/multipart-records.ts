import { type Clock, pause } from '../../actor/clock.js'
import type { Id } from '../../format/id.js'
import { isDiskError } from '../../store/disk-error.js'
import { readJsonRow } from '../../store/json-row.js'
import type { Environment, Table } from '../../store/lmdb.js'
import type { UploadAnswer } from '../calls/upload-answers.js'
import type { Uploader } from '../calls/uploader.js'
import type { PaidFacts } from '../selling/sales.js'
import { type DueKind, type DuePlace, DueRecords } from './due-records.js'

/** What only uploads have whose bytes come one request behind the other (IETF draft of resumable uploads). */
export interface AppendedTerms {
  /** Bytes of the whole item, where the client announced them. */
  readonly lengthBytes?: number
  /** SHA-256 (base64) of the whole item, where the client stated it. */
  readonly digest?: string
}

/**
 * An upload in parts:
 *
 *     open --> asked --> finalized
 *       |        |
 *       +--------+-----> underfunded --> finalized
 *       |        |
 *       +--------+-----> invalid, approval_failed, revoke_failed
 *
 * `asked`: a client ordered its end and does not wait for it. A restart continues with it.
 */
export interface MultipartRecord {
  readonly id: string
  /** Parts begin at multiples of it; 0: parts of any size lie one behind the other. */
  readonly chunkBytes: number
  readonly createdMs: number
  readonly changedMs: number
  /** Whose share of the disk it takes: an address range. */
  readonly client?: string
  /** Absent: parts come in any order. */
  readonly appended?: AppendedTerms
  /** It is paid for at its beginning. */
  readonly paid?: PaidUpload
  readonly state:
    | 'open'
    | 'asked'
    | 'finalized'
    | 'underfunded'
    | 'invalid'
    | 'approval_failed'
    | 'revoke_failed'
  /** Who ordered its end. */
  readonly uploader?: Uploader
  /** What became of it, where `finalized`. */
  readonly itemId?: Id
  /** Why not, where it is over otherwise, or `underfunded`. */
  readonly answer?: UploadAnswer
  /** When it is looked at next, if not when it expires. */
  readonly dueMs?: number
}

/** An upload that is paid for in USDC at its beginning. */
export interface PaidUpload {
  /** Name of the payment. */
  readonly payment: string
  /** Of the whole item, as they were announced. */
  readonly bytes: number
  /** Absent: the money may not have moved. */
  readonly facts?: PaidFacts
  /** What is to become of the money: the item had so many bytes, or nothing was used of it. */
  readonly owes?: 'refund' | { readonly spent: number }
  /** That has happened. */
  readonly endedMs?: number
}

/** From its first request on; then it is gone, whole or not. */
export const uploadLivesMs = 24 * 3600_000

/** Between two transactions: each costs the thread some milliseconds, and strangers may begin hundreds of uploads a second. */
const gatherMs = 50
/** Time until a write that the disk refused is repeated. */
const usualAgainMs = 1000

/**
 * Records of uploads in parts, also in the order in which they are due. A change is visible at once, and is written soon together
 * with others: wait for `written` before it is acknowledged.
 */
export class MultipartRecords {
  readonly #table: Table
  readonly #due: DueRecords
  /** Not written yet; undefined: removed. */
  readonly #changes = new Map<string, MultipartRecord | undefined>()
  #writing: Promise<void> | undefined
  readonly #closing = new AbortController()
  #writtenMs = Number.NEGATIVE_INFINITY
  #failed = 0

  /** Makes the order anew where it does not fit the records: another release may have written them. */
  constructor(
    private readonly environment: Environment,
    private readonly clock: Pick<Clock, 'monotonic'>,
    private readonly againMs = usualAgainMs,
  ) {
    this.#table = environment.table('multipart')
    this.#due = new DueRecords(environment.table('multipart-due'))
    if (!this.#isInOrder()) this.#order()
  }

  #isInOrder(): boolean {
    if (this.#due.count !== this.#table.count()) return false
    this.#failed = 0
    for (const { value } of this.#table.span({})) {
      const place = placeOf(read(value))
      if (!this.#due.has(place)) return false
      if (place.kind === 'failed') this.#failed += 1
    }
    return true
  }

  #order(): void {
    const places = [...this.#table.span({})].map(({ value }) => placeOf(read(value)))
    this.environment.write(() => {
      this.#due.clear()
      for (const place of places) this.#due.put(place)
    })
    this.#failed = places.filter(({ kind }) => kind === 'failed').length
  }

  find(id: string): MultipartRecord | undefined {
    return this.#changes.has(id) ? this.#changes.get(id) : this.#stored(id)
  }

  #stored(id: string): MultipartRecord | undefined {
    const found = this.#table.get(Buffer.from(id))
    return found === undefined ? undefined : read(found)
  }

  /** Records of uploads that are over and came to nothing. */
  get failed(): number {
    return this.#failed
  }

  /** Those of a kind that are due until `untilMs`, the first due first, of the first `limit` that are written down as such. */
  due(kind: DueKind, untilMs: number, limit: number): MultipartRecord[] {
    return this.#due.until(kind, untilMs, limit).flatMap((id) => {
      const record = this.find(id)
      return record !== undefined && placeOf(record).kind === kind ? [record] : []
    })
  }

  put(record: MultipartRecord): void {
    this.#change(record.id, record)
  }

  remove(ids: readonly string[]): void {
    for (const id of ids) this.#change(id, undefined)
  }

  #change(id: string, record: MultipartRecord | undefined): void {
    const before = this.find(id)
    if (before !== undefined && kindOf(before) === 'failed') this.#failed -= 1
    if (record !== undefined && kindOf(record) === 'failed') this.#failed += 1
    this.#changes.set(id, record)
    this.#writeSoon(0)
  }

  /** Resolves when all that was changed so far is written down; rejects where the disk refuses, and it is tried again later. */
  async written(): Promise<void> {
    if (this.#changes.size > 0) await this.#writing
  }

  #writeSoon(waitMs: number): void {
    const { signal } = this.#closing
    if (this.#writing !== undefined || signal.aborted) return
    const pauseMs = Math.max(waitMs, this.#writtenMs + gatherMs - this.clock.monotonic())
    const writing = pause(pauseMs, signal).then(() => {
      this.#writing = undefined
      this.#write()
    })
    this.#writing = writing
    writing.catch((error: unknown) => {
      if (!isDiskError(error)) throw error
      this.#writeSoon(this.againMs)
    })
  }

  /** Throws where the disk refuses: then nothing was written. */
  #write(): void {
    this.environment.write(() => {
      for (const [id, record] of this.#changes) {
        const before = this.#stored(id)
        if (before !== undefined) this.#due.remove(placeOf(before))
        if (record === undefined) this.#table.remove(Buffer.from(id))
        else {
          this.#due.put(placeOf(record))
          this.#table.put(Buffer.from(id), Buffer.from(JSON.stringify(record)))
        }
      }
    })
    this.#changes.clear()
    this.#writtenMs = this.clock.monotonic()
  }

  /** Writes down what is left, at once. What the disk does not take is found again by the next process. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.written().catch((error: unknown) => {
      if (!isDiskError(error)) throw error
    })
  }

  /** Resolves when all that was changed so far outlives a power cut. Rejects as `written`. */
  async flushed(): Promise<void> {
    await this.written()
    await this.environment.flushed()
  }
}

/** No more parts are taken for it. */
export function isOver({ state }: MultipartRecord): boolean {
  return state !== 'open' && state !== 'asked' && state !== 'underfunded'
}

function placeOf(record: MultipartRecord): DuePlace {
  const { id, createdMs, dueMs = createdMs + uploadLivesMs } = record
  return { kind: kindOf(record), dueMs, id }
}

function kindOf(record: MultipartRecord): DueKind {
  const { paid, state } = record
  if (!isOver(record)) return 'open'
  if (paid !== undefined && paid.endedMs === undefined) return 'owed'
  return state === 'finalized' ? 'finalized' : 'failed'
}

function read(value: Uint8Array): MultipartRecord {
  return readJsonRow(value, 'uploads/data.mdb: a row about an upload in parts') as MultipartRecord
}
