import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { FileChanges, hearWrites } from '../store/file-changes.js'
import { type Environment, openEnvironment, type Table } from '../store/lmdb.js'
import { joining, type SharedPosition, type Unshared, UnsharedKeys } from '../store/unshared-keys.js'
import {
  type Blocked,
  type Ground,
  type Subject,
  type SubjectKind,
  subjectKinds,
} from './moderation-messages.js'
import { subjectKey, subjectOf } from './subject.js'

/** Lines of the audit that are kept; older ones are removed. At some 200 bytes each that is 20 MB. */
const auditMax = 100_000

/** Entries that are listed for the cluster in one transaction. */
const sharedAtOnce = 5000

/** Record of an entry: number of its source (u32), time (u32, seconds), sequence (f64), notes (UTF-8). */
const recordHead = 16

/** A line of the audit: who did what, when. */
export interface AuditLine {
  readonly atSeconds: number
  readonly by: string
  readonly action: 'block' | 'release' | 'import'
  readonly what: string
  readonly source?: string
  readonly notes?: string
}

/** An entry in the order of blocking. */
export interface Ordered {
  readonly sequence: number
  readonly kind: SubjectKind
  readonly key: Uint8Array
}

/** The state of a subject in the cluster. */
export interface SharedBlock {
  readonly subject: Subject
  /** Undefined: it is released. */
  readonly blocked: (Ground & Pick<Blocked, 'blockedAtSeconds'>) | undefined
}

/**
 * The list on disk. Tables by subject: `ids` and `hashes` (raw 32 bytes), `names`. `hash sizes` has the size of the content with
 * a hash (f64), `order` kind and key by sequence. `sources` is by number, `source numbers` by name. The others are `audit` and
 * `numbers` (the last sequence). Any process and thread reads and writes: LMDB lets one writer in at a time. What is written is
 * on the disk when a call returns.
 */
export class ModerationStore {
  readonly #environment: Environment
  readonly #entries: Readonly<Record<SubjectKind, Table>>
  readonly #sizes: Table
  readonly #order: Table
  readonly #sources: Table
  readonly #sourceNumbers: Table
  readonly #audit: Table
  readonly #numbers: Table
  /** Subjects that the cluster does not know yet, by `sharedKey`. */
  readonly unsharedKeys: UnsharedKeys

  readonly #file: string
  readonly #changes: FileChanges

  /** `path` is the folder; made where it is missing. Throws where it cannot be read. */
  constructor(path: string) {
    this.#file = join(path, 'data.mdb')
    this.#changes = new FileChanges(this.#file)
    this.#environment = openEnvironment(path, 16, true)
    const table = (name: string): Table => this.#environment.table(name)
    this.#entries = { id: table('ids'), hash: table('hashes'), name: table('names') }
    this.#sizes = table('hash sizes')
    this.#order = table('order')
    this.#sources = table('sources')
    this.#sourceNumbers = table('source numbers')
    this.#audit = table('audit')
    this.#numbers = table('numbers')
    this.unsharedKeys = new UnsharedKeys(this.#environment)
  }

  /** Whether anybody may have changed the list since the last question. */
  mayHaveChanged(nowMs: number): boolean {
    return this.#changes.mayHaveChanged(nowMs)
  }

  /** Calls `act` soon after anybody changed the list, where the system reports it. */
  hearWrites(act: () => void): { cancel(): void } {
    return hearWrites(this.#file, act)
  }

  /** Is this key blocked now, whoever blocked it? */
  has(kind: SubjectKind, key: Uint8Array): boolean {
    this.#environment.refresh()
    return this.#entries[kind].view(key) !== undefined
  }

  find(subject: Subject): Blocked | undefined {
    this.#environment.refresh()
    return this.#read(subject)
  }

  /** Number of entries of each kind. */
  counts(): Readonly<Record<SubjectKind, number>> {
    this.#environment.refresh()
    const { id, hash, name } = this.#entries
    return { id: id.count(), hash: hash.count(), name: name.count() }
  }

  /** Entries whose sequence is below `before`, the newest first. Of `source` alone where that is given. */
  newest(before: number, limit: number, source?: string): Blocked[] {
    this.#environment.refresh()
    const found: Blocked[] = []
    const start = Math.max(0, Math.min(before - 1, Number.MAX_SAFE_INTEGER))
    for (const entry of this.#order.span({ start: numberKey(start), backwards: true })) {
      if (found.length === limit) break
      const { kind, key } = orderedOf(entry.key, entry.value)
      const blocked = this.#read(subjectOf(kind, key))
      if (blocked !== undefined && (source === undefined || blocked.source === source)) found.push(blocked)
    }
    return found
  }

  /** Entries with a sequence above `after`, the oldest first. */
  since(after: number, limit: number): Ordered[] {
    this.#environment.refresh()
    const found: Ordered[] = []
    for (const { key, value } of this.#order.span({ start: numberKey(after + 1), limit })) {
      found.push(orderedOf(key, value))
    }
    return found
  }

  /** The newest lines of the audit first. */
  audit(limit: number): AuditLine[] {
    this.#environment.refresh()
    const lines: AuditLine[] = []
    for (const { value } of this.#audit.span({ backwards: true, limit })) {
      lines.push(JSON.parse(Buffer.from(value).toString('utf8')) as AuditLine)
    }
    return lines
  }

  /**
   * Blocks subjects, in one transaction. What is blocked already is left as it is, or gets the new ground where `renew` is set.
   * Returns those that were not blocked before.
   */
  block(subjects: readonly Subject[], ground: Ground, nowSeconds: number, renew = false): Subject[] {
    return this.#environment.write(() => {
      const source = this.#sourceOf(ground.source, nowSeconds)
      const fresh: Subject[] = []
      for (const subject of subjects) {
        const isThere = this.#entries[subject.kind].get(subjectKey(subject)) !== undefined
        if (isThere && !renew) continue
        if (!isThere) fresh.push(subject)
        this.#put(subject, source, nowSeconds, ground.notes)
        this.unsharedKeys.note(sharedKey(subject))
      }
      return fresh
    })
  }

  /** Releases subjects, in one transaction. Returns those that were blocked. */
  release(subjects: readonly Subject[]): Subject[] {
    return this.#environment.write(() =>
      subjects.filter((subject) => {
        if (!this.#remove(subject)) return false
        this.unsharedKeys.note(sharedKey(subject))
        return true
      }),
    )
  }

  /**
   * Takes over what the cluster has, in one transaction with how far that goes. What changed here and is not given to the
   * cluster yet stays. Returns how many subjects are different now.
   */
  takeOver(changes: readonly SharedBlock[], nowSeconds: number, position?: SharedPosition): number {
    return this.#environment.write(() => {
      let count = 0
      for (const { subject, blocked } of changes) {
        if (this.unsharedKeys.has(sharedKey(subject))) continue
        if (blocked === undefined) {
          if (this.#remove(subject)) count += 1
          continue
        }
        const source = this.#sourceOf(blocked.source, nowSeconds)
        const before = this.#read(subject)
        const isSame = before?.source === blocked.source && before.notes === blocked.notes
        if (isSame && before.blockedAtSeconds === blocked.blockedAtSeconds) continue
        this.#put(subject, source, blocked.blockedAtSeconds, blocked.notes)
        count += 1
      }
      if (position !== undefined) this.unsharedKeys.setPosition(position)
      return count
    })
  }

  /** The cluster has these, or has others instead (`takeOver`). */
  settleShared(given: readonly Unshared[]): void {
    this.#environment.write(() => this.unsharedKeys.settle(given))
  }

  /**
   * Lists what is blocked already as unshared, some thousands in a turn of the event loop. `position`: where to follow from.
   * `isRestored`: it counts over what the cluster has, else only where the cluster knows nothing.
   */
  async shareAll(position: SharedPosition, isRestored: boolean): Promise<void> {
    // Who is interrupted begins again.
    this.#environment.write(() => this.unsharedKeys.setPosition({ ...position, version: joining }))
    for (let after = 0; ; ) {
      const page = this.since(after, sharedAtOnce)
      this.#environment.write(() => {
        for (const { kind, key } of page) this.unsharedKeys.note(sharedKey(subjectOf(kind, key)), !isRestored)
      })
      after = page.at(-1)?.sequence ?? after
      if (page.length < sharedAtOnce) break
      await turn()
    }
    this.#environment.write(() => this.unsharedKeys.setPosition(position))
  }

  /** Size of the content that has this hash; undefined where it is not known. */
  sizeOf(hash: Uint8Array): number | undefined {
    const bytes = this.#sizes.get(hash)
    return bytes === undefined ? undefined : Buffer.from(bytes).readDoubleBE(0)
  }

  /** Remembers sizes of content by its hash, in one transaction. */
  measure(sizes: readonly (readonly [hash: Uint8Array, sizeBytes: number])[]): void {
    this.#environment.write(() => {
      for (const [hash, sizeBytes] of sizes) this.#sizes.put(hash, numberKey(sizeBytes))
    })
  }

  /** Adds a line to the audit. */
  note(line: AuditLine): void {
    this.#environment.write(() => {
      const next = this.#number('audit') + 1
      this.#audit.put(numberKey(next), Buffer.from(JSON.stringify(line)))
      this.#audit.remove(numberKey(next - auditMax))
      this.#setNumber('audit', next)
    })
  }

  async close(): Promise<void> {
    await this.#environment.close()
  }

  #put(subject: Subject, source: number, seconds: number, notes: string): void {
    const key = subjectKey(subject)
    const table = this.#entries[subject.kind]
    const before = table.get(key)
    if (before !== undefined) this.#order.remove(numberKey(sequenceOf(before)))
    const sequence = this.#number('sequence') + 1
    table.put(key, recordOf(source, seconds, sequence, notes))
    this.#order.put(numberKey(sequence), Buffer.concat([Buffer.of(subjectKinds.indexOf(subject.kind)), key]))
    this.#setNumber('sequence', sequence)
  }

  #remove(subject: Subject): boolean {
    const key = subjectKey(subject)
    const before = this.#entries[subject.kind].get(key)
    if (before === undefined) return false
    this.#entries[subject.kind].remove(key)
    if (subject.kind === 'hash') this.#sizes.remove(key)
    this.#order.remove(numberKey(sequenceOf(before)))
    return true
  }

  #read(subject: Subject): Blocked | undefined {
    const record = this.#entries[subject.kind].get(subjectKey(subject))
    if (record === undefined) return undefined
    const bytes = Buffer.from(record)
    return {
      ...subject,
      source: this.#nameOf(bytes.subarray(0, 4)),
      notes: bytes.toString('utf8', recordHead),
      blockedAtSeconds: bytes.readUInt32BE(4),
      sequence: sequenceOf(bytes),
    }
  }

  #nameOf(number: Uint8Array): string {
    const source = this.#sources.get(number)
    return source === undefined ? '' : Buffer.from(source).toString('utf8', 4)
  }

  /** The number of a source, given when it is first named; the record is its time (u32, seconds) and its name. */
  #sourceOf(name: string, nowSeconds: number): number {
    const key = Buffer.from(name)
    const known = this.#sourceNumbers.get(key)
    if (known !== undefined) return Buffer.from(known).readUInt32BE(0)
    const number = Buffer.alloc(4)
    number.writeUInt32BE(this.#sources.count() + 1)
    const time = Buffer.alloc(4)
    time.writeUInt32BE(nowSeconds)
    this.#sources.put(number, Buffer.concat([time, key]))
    this.#sourceNumbers.put(key, number)
    return number.readUInt32BE(0)
  }

  #number(name: string): number {
    const bytes = this.#numbers.get(Buffer.from(name))
    return bytes === undefined ? 0 : Buffer.from(bytes).readDoubleBE(0)
  }

  #setNumber(name: string, value: number): void {
    this.#numbers.put(Buffer.from(name), numberKey(value))
  }
}

/** A subject as the cluster knows it. */
export function sharedKey({ kind, key }: Subject): string {
  return `${kind}:${key}`
}

/** Positive doubles sort like their bytes. */
function numberKey(value: number): Buffer {
  const key = Buffer.alloc(8)
  key.writeDoubleBE(Math.max(value, 0))
  return key
}

function recordOf(source: number, seconds: number, sequence: number, notes: string): Buffer {
  const text = Buffer.from(notes)
  const record = Buffer.alloc(recordHead + text.length)
  record.writeUInt32BE(source, 0)
  record.writeUInt32BE(seconds, 4)
  record.writeDoubleBE(sequence, 8)
  record.set(text, recordHead)
  return record
}

function sequenceOf(record: Uint8Array): number {
  return Buffer.from(record.buffer, record.byteOffset, record.byteLength).readDoubleBE(8)
}

function orderedOf(sequence: Uint8Array, value: Uint8Array): Ordered {
  const kind = subjectKinds[value[0] ?? 0]
  if (kind === undefined) throw new Error('an entry of the block list is of no known kind')
  return { sequence: Buffer.from(sequence).readDoubleBE(0), kind, key: Buffer.from(value.subarray(1)) }
}
