import { type Clock, type Timer, withinTime } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { EngineAway, Overtaken } from '../../cluster/engine-away.js'
import type { PostgresUploads } from '../../cluster/postgres-uploads.js'
import type { UploadFacts, UploadRow } from '../../cluster/upload-rows.js'
import type { Uploader } from '../requests/uploader.js'
import { type DueKind, kindNumbers } from './due-records.js'
import { duePlaceOf, isOver, type MultipartRecord, type Stage } from './multipart-record.js'
import type { Claimed, LeftUploads, OpenElsewhere, PartRecords, SeenUpload } from './part-records.js'

/** What this process knows of one upload. */
interface Entry {
  readonly id: string
  record: MultipartRecord | undefined
  /** Version of the row that `record` goes by; 0: there is none yet. */
  version: number
  writer: number
  /** The number under which this process puts it together; undefined: it does not. */
  claim: number | undefined
  chunks: Map<number, number>
  cut: number
  seq: number
  /** `record` is not written yet. */
  isDirty: boolean
  writing: Promise<void> | undefined
  usedMs: number
}

/** A process that puts items together says so this often; it loses them after ten seconds. */
const stayMs = 3000
/** What was refused by an engine that is away is tried again after this. */
const againMs = 1000
/** What is known of an upload that nobody asks for is forgotten after this. */
const usedMaxMs = 600_000
const pruneMs = 60_000
/** Uploads that others have left, and those that are due, which are looked at in one turn. */
const [leftMax, dueMax] = [64, 100] as const
/** Ids are made here, or by a digest of a payment: no other is looked for. */
const idShape = /^[\w-]{1,64}$/
/** At its end this process does not wait longer for the database. */
const closeMs = 5000

/**
 * Records of uploads in parts that all machines of a cluster have. What is known of one is read anew with each request
 * (`load`). A change goes by the state that it was made of: where that is not the state any more it does not count (`Overtaken`).
 */
export class SharedRecords implements PartRecords {
  readonly isShared = true
  readonly newestMs = undefined
  readonly #entries = new Map<string, Entry>()
  readonly #timers: readonly Timer[]
  #failed = 0
  /** The last ids of the last look at what others have left: the next one goes on behind them. */
  #leftAfter = ''
  #owingAfter = ''
  /** Time of the database less the monotonic clock: this machine's time of day may be set meanwhile. */
  #aheadMs: number
  #isClosed = false

  /** `leads`: whether this machine is the one that removes what is over. Rejects where that cannot be decided. */
  constructor(
    private readonly uploads: PostgresUploads,
    private readonly leads: () => Promise<boolean>,
    private readonly clock: Clock,
    private readonly log: Pick<Log, 'warn'>,
  ) {
    this.#aheadMs = clock.now() - clock.monotonic()
    this.#timers = [clock.every(stayMs, () => void this.#stay()), clock.every(pruneMs, () => this.#prune())]
  }

  get failed(): number {
    return this.#failed
  }

  /** Time of the database, milliseconds since 1970. */
  get nowMs(): number {
    return this.clock.monotonic() + this.#aheadMs
  }

  /** Who this process is, where it adds parts of an upload; undefined: it is not known here. */
  writerOf(id: string): number | undefined {
    return this.#entries.get(id)?.writer
  }

  async load(id: string, takesOver = false): Promise<SeenUpload> {
    if (!idShape.test(id)) return nothing
    let row = await this.#look(id)
    // Strangers name ids that there are not: nothing is written for them.
    const writer = takesOver && row !== undefined ? await this.#takeOver(row) : undefined
    // What others have added until then.
    if (writer !== undefined) row = await this.#look(id)
    if (row === undefined) {
      const known = this.#entries.get(id)
      if (known !== undefined && !known.isDirty && known.version > 0) this.#entries.delete(id)
      return known?.isDirty === true && known.record !== undefined ? seenOf(known, undefined) : nothing
    }
    const entry = this.#takeUp(row)
    if (writer !== undefined) entry.writer = writer
    return seenOf(entry, row.claimedBy === this.uploads.process ? undefined : row)
  }

  #look(id: string): Promise<UploadRow | undefined> {
    const known = this.#entries.get(id)
    return this.uploads.load(id, known?.cut ?? 0, known?.seq ?? -1)
  }

  #takeOver({ id, body }: UploadRow): Promise<number | undefined> {
    return this.uploads.takeOver(id, (JSON.parse(body) as MultipartRecord).client)
  }

  /** What the database says, but for what is changed here and not written yet. */
  #takeUp(row: UploadRow): Entry {
    this.#aheadMs = row.nowMs - this.clock.monotonic()
    const entry = this.#entryOf(row.id)
    entry.usedMs = this.clock.monotonic()
    if (!entry.isDirty && row.version >= entry.version) {
      entry.record = JSON.parse(row.body) as MultipartRecord
      entry.version = row.version
    }
    entry.writer = Math.max(entry.writer, row.writer)
    this.#takeParts(entry, row)
    return entry
  }

  /** An answer may be older than what is known already. */
  #takeParts(entry: Entry, { parts, cut, seq }: UploadRow): void {
    if (cut < entry.cut) return
    if (cut > entry.cut) {
      entry.chunks.clear()
      entry.seq = -1
    }
    for (const [start, size] of parts) entry.chunks.set(start, size)
    entry.cut = cut
    // A list of records has no parts.
    if (parts.length > 0) entry.seq = Math.max(entry.seq, seq)
  }

  #entryOf(id: string): Entry {
    const known = this.#entries.get(id)
    if (known !== undefined) return known
    const state = { version: 0, writer: 0, cut: 0, seq: -1, isDirty: false, usedMs: this.clock.monotonic() }
    const open = { record: undefined, claim: undefined, writing: undefined }
    const entry: Entry = { id, ...open, ...state, chunks: new Map() }
    this.#entries.set(id, entry)
    return entry
  }

  find(id: string): MultipartRecord | undefined {
    return this.#entries.get(id)?.record
  }

  due(kind: DueKind, untilMs: number, limit: number): MultipartRecord[] {
    return [...this.#entries.values()]
      .flatMap(({ record, version }) => (record === undefined || version === 0 ? [] : [record]))
      .filter((record) => duePlaceOf(record).kind === kind && duePlaceOf(record).dueMs <= untilMs)
      .sort((one, other) => duePlaceOf(one).dueMs - duePlaceOf(other).dueMs)
      .slice(0, limit)
  }

  async lookDue(): Promise<boolean> {
    try {
      if (!(await this.leads())) return false
      this.#failed = await this.uploads.count(kindNumbers.failed)
      for (const kind of ['open', 'owed', 'finalized', 'failed'] as const)
        for (const row of await this.uploads.due(kindNumbers[kind], dueMax)) this.#takeUp(row)
      return true
    } catch (error) {
      return this.#away(error)
    }
  }

  async listOpen(): Promise<readonly OpenElsewhere[] | undefined> {
    try {
      return (await this.uploads.open()).map(({ paid, ...counts }) => ({ ...counts, isPaid: paid }))
    } catch (error) {
      this.#away(error)
      return undefined
    }
  }

  async lookAround(): Promise<LeftUploads | undefined> {
    try {
      const left = await this.uploads.left(leftMax, this.#leftAfter)
      this.#leftAfter = left.length < leftMax ? '' : (left.at(-1) ?? '')
      const owing = (await this.leads()) ? await this.uploads.owing(dueMax, this.#owingAfter) : []
      this.#owingAfter = owing.length < dueMax ? '' : (owing.at(-1)?.id ?? '')
      return { left, owing: owing.flatMap((row) => this.#takeUp(row).record ?? []) }
    } catch (error) {
      this.#away(error)
      return undefined
    }
  }

  /** A look that failed is repeated with the next one. */
  #away(error: unknown): false {
    if (!(error instanceof Error) || error instanceof TypeError) throw error
    this.log.warn({ reason: error.message }, 'uploads of other machines could not be looked at')
    return false
  }

  put(record: MultipartRecord): void {
    const entry = this.#entryOf(record.id)
    entry.record = record
    this.#changed(entry)
  }

  remove(ids: readonly string[]): void {
    for (const id of ids) {
      const entry = this.#entryOf(id)
      entry.record = undefined
      this.#changed(entry)
    }
  }

  #changed(entry: Entry): void {
    entry.isDirty = true
    entry.usedMs = this.clock.monotonic()
    this.#writeSoon(entry)
  }

  #writeSoon(entry: Entry): void {
    if (entry.writing !== undefined) return
    const writing = this.#write(entry).finally(() => {
      entry.writing = undefined
    })
    entry.writing = writing
    writing.catch((error: unknown) => {
      if (!(error instanceof EngineAway)) throw error
      if (entry.isDirty && !this.#isClosed) this.clock.after(againMs, () => this.#writeAgain(entry))
    })
  }

  #writeAgain(entry: Entry): void {
    if (entry.isDirty && !this.#isClosed && this.#entries.get(entry.id) === entry) this.#writeSoon(entry)
  }

  /** Until nothing is left to be written. */
  async #write(entry: Entry): Promise<void> {
    // What is changed in one turn is written in one go.
    await Promise.resolve()
    while (entry.isDirty) {
      entry.isDirty = false
      try {
        await this.#writeOne(entry)
      } catch (error) {
        if (error instanceof Overtaken) this.#forget(entry)
        else entry.isDirty = true
        throw error
      }
    }
  }

  /** What is known here does not hold any more. */
  #forget(entry: Entry): void {
    entry.isDirty = false
    entry.claim = undefined
    if (this.#entries.get(entry.id) === entry) this.#entries.delete(entry.id)
  }

  async #writeOne(entry: Entry): Promise<void> {
    const { id, record, claim, version } = entry
    if (record === undefined) {
      if (!(await this.uploads.remove(id, version))) throw new Overtaken()
      if (!entry.isDirty) this.#forget(entry)
      return
    }
    const facts = factsOf(record)
    const written =
      claim !== undefined
        ? await this.uploads.updateClaimed(id, claim, facts)
        : version > 0
          ? await this.uploads.update(id, version, facts)
          : (await this.uploads.insert(id, facts))
            ? 1
            : undefined
    if (written === undefined) throw new Overtaken()
    entry.version = written
  }

  async written(id: string): Promise<void> {
    const entry = this.#entries.get(id)
    if (entry === undefined) return
    if (entry.isDirty) this.#writeSoon(entry)
    await entry.writing
  }

  flushed(id: string): Promise<void> {
    return this.written(id)
  }

  async claim(id: string, uploader: Uploader): Promise<Claimed> {
    await this.written(id)
    const claim = await this.uploads.claim(id)
    await this.load(id)
    const entry = this.#entries.get(id)
    const { record } = entry ?? {}
    if (claim === undefined) return record === undefined || isOver(record) ? 'over' : 'elsewhere'
    if (entry === undefined || record === undefined) return 'over'
    entry.claim = claim
    // Whoever goes on after this process puts it together for the same one.
    this.put({ ...record, uploader })
    try {
      await this.written(id)
    } catch (error) {
      // Nobody goes on with it here, so it is not kept from others: the claim ends by itself.
      this.#forget(entry)
      throw error
    }
    return 'ours'
  }

  async confirm(id: string, stage: Stage): Promise<boolean> {
    const claim = this.#entries.get(id)?.claim
    return claim !== undefined && (await this.uploads.confirm(id, claim, stage))
  }

  async release(id: string, record?: MultipartRecord): Promise<boolean> {
    const entry = this.#entries.get(id)
    const claim = entry?.claim
    if (entry === undefined || claim === undefined) return false
    // Without an answer it is not known whether it is over: the claim ends by itself then, and another process looks.
    entry.claim = undefined
    await entry.writing?.catch(() => undefined)
    const isOurs = await this.uploads
      .release(id, claim, record && factsOf(record))
      .catch((error: unknown) => {
        this.#forget(entry)
        throw error
      })
    if (!isOurs) this.#forget(entry)
    else if (record !== undefined)
      Object.assign(entry, { record, isDirty: false, version: entry.version + 1 })
    return isOurs
  }

  /** Shows the others that this process goes on. */
  async #stay(): Promise<void> {
    const ids = [...this.#entries.values()].filter(({ claim }) => claim !== undefined).map(({ id }) => id)
    if (ids.length === 0) return
    await this.uploads.stay(ids).catch((error: unknown) => void this.#away(error))
  }

  #prune(): void {
    const oldMs = this.clock.monotonic() - usedMaxMs
    for (const [id, entry] of this.#entries) {
      const isUsed = entry.isDirty || entry.writing !== undefined || entry.claim !== undefined
      if (!isUsed && entry.usedMs < oldMs) this.#entries.delete(id)
    }
  }

  /** Writes down what is left. What the database does not take is over with this process: nobody was answered for it. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const timer of this.#timers) timer.cancel()
    const writing = [...this.#entries.keys()].map((id) => this.written(id))
    await withinTime(this.clock, closeMs, Promise.allSettled(writing), undefined)
    await this.uploads.close()
  }
}

const nothing: SeenUpload = { record: undefined, chunks: new Map(), isElsewhere: false, stage: 'ASSEMBLING' }

/** `row`: where another process may put it together. */
function seenOf({ record, chunks }: Entry, row: UploadRow | undefined): SeenUpload {
  const stage = row?.stage ?? 'ASSEMBLING'
  const isStage = stage === 'VALIDATING' || stage === 'FINALIZING'
  return { record, chunks, isElsewhere: row?.claimedBy !== undefined, stage: isStage ? stage : 'ASSEMBLING' }
}

function factsOf(record: MultipartRecord): UploadFacts {
  const { kind, dueMs } = duePlaceOf(record)
  const { state, client, paid } = record
  return {
    body: JSON.stringify(record),
    kind: kindNumbers[kind],
    dueMs,
    takes: state === 'open',
    ordered: state === 'asked',
    owes: paid?.owes !== undefined && paid.endedMs === undefined,
    client,
    paid: paid !== undefined,
  }
}
