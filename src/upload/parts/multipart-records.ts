import { type Clock, pause } from '../../actor/clock.js'
import { isDiskError } from '../../store/disk-error.js'
import { readJsonRow } from '../../store/json-row.js'
import type { Environment, Table } from '../../store/lmdb.js'
import { type DueKind, DueRecords } from './due-records.js'
import { dueKindOf, duePlaceOf, type MultipartRecord } from './multipart-record.js'
import type { Claimed, PartRecords } from './part-records.js'

/** Between two transactions: each costs the thread some milliseconds, and strangers may begin hundreds of uploads a second. */
const gatherMs = 50
/** Time until a write that the disk refused is repeated. */
const usualAgainMs = 1000

/**
 * Records of uploads in parts of this machine alone, also in the order in which they are due. A change is visible at once, and
 * is written soon together with others: wait for `written` before it is acknowledged.
 */
export class MultipartRecords implements PartRecords {
  readonly isShared = false
  readonly #table: Table
  readonly #due: DueRecords
  /** Not written yet; undefined: removed. */
  readonly #changes = new Map<string, MultipartRecord | undefined>()
  #writing: Promise<void> | undefined
  readonly #closing = new AbortController()
  #writtenMs = Number.NEGATIVE_INFINITY
  #failed = 0
  #newestMs = 0

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
      const record = read(value)
      const place = duePlaceOf(record)
      this.#newestMs = Math.max(this.#newestMs, record.changedMs)
      if (!this.#due.has(place)) return false
      if (place.kind === 'failed') this.#failed += 1
    }
    return true
  }

  #order(): void {
    const places = [...this.#table.span({})].map(({ value }) => duePlaceOf(read(value)))
    this.environment.write(() => {
      this.#due.clear()
      for (const place of places) this.#due.put(place)
    })
    this.#failed = places.filter(({ kind }) => kind === 'failed').length
  }

  readonly nowMs = undefined

  get newestMs(): number {
    return this.#newestMs
  }

  load(): undefined {
    return undefined
  }

  lookDue(): undefined {
    return undefined
  }

  listOpen(): undefined {
    return undefined
  }

  lookAround(): undefined {
    return undefined
  }

  /** Nobody else is there who could. */
  async claim(id: string): Promise<Claimed> {
    return this.find(id) === undefined ? 'over' : 'ours'
  }

  async confirm(): Promise<boolean> {
    return true
  }

  async release(_: string, record?: MultipartRecord): Promise<boolean> {
    if (record !== undefined) this.put(record)
    return true
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
      return record !== undefined && duePlaceOf(record).kind === kind ? [record] : []
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
    if (before !== undefined && dueKindOf(before) === 'failed') this.#failed -= 1
    if (record !== undefined && dueKindOf(record) === 'failed') this.#failed += 1
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
        if (before !== undefined) this.#due.remove(duePlaceOf(before))
        if (record === undefined) this.#table.remove(Buffer.from(id))
        else {
          this.#due.put(duePlaceOf(record))
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

function read(value: Uint8Array): MultipartRecord {
  return readJsonRow(value, 'uploads/data.mdb: a row about an upload in parts') as MultipartRecord
}
