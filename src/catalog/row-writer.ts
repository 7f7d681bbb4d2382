import { VarWriter } from '../format/varbytes.js'
import { present } from '../store/lmdb.js'
import { Recent } from '../store/recent.js'
import type { RunWriter } from '../store/run-writer.js'
import { Dictionary, numberBytes, wordKind } from './dictionary.js'
import { DictionaryWriter } from './dictionary-writer.js'
import { IdWriter } from './ids.js'
import type { LeftInTables } from './index-flush.js'
import { type IndexTables, weaveKey } from './index-tables.js'
import { wordRole } from './pack.js'
import { packRows } from './pack-rows.js'
import type { PackedRows, PackedWord } from './packed-rows.js'
import { PostingWriter } from './posting-writer.js'
import { postingKind, postingPrefix, transactionsPrefix } from './postings.js'
import { decodeRow, encodeRow, type Row, type RowBody, type StoredRow } from './row.js'
import { compareRowKeys, heightOf, isItemKey, rowKeyBytes } from './row-key.js'
import { SegmentIds } from './segment-ids.js'
import { type FoundInSegment, rowOf } from './segment-rows.js'
import type { SpillLimits } from './spill.js'

/** A row and where it stands: in the tables, or in a segment. */
export type KeyedRow =
  | { readonly key: Buffer; readonly row: StoredRow; readonly place?: undefined }
  | { readonly key: Buffer; readonly row: Row; readonly place: FoundInSegment }

/** What of a standing row decides whether it gives way to another one of the same id. */
export interface Standing {
  readonly key: Buffer
  readonly row: Pick<Row, 'height' | 'isUnjudged'> & {
    readonly place: Pick<NonNullable<Row['place']>, 'rootItemOffset'> | undefined
  }
}

/** Is told what happens to the tables while a flush reads them (index-flush.ts). */
export interface RowWatch {
  put(key: Uint8Array): void
  removed(key: Uint8Array, id: Uint8Array): void
}

/** What became of a row that was put: new, at another place than before, there already, or refused. */
export type Put = 'added' | 'moved' | 'known' | 'skipped'

const ownersMax = 50_000
/** New ids or words that are collected at most: some 100 MB. */
const pendingMax = 2 ** 19

const roleKinds = {
  [wordRole.tag]: postingKind.tag,
  [wordRole.owner]: postingKind.owner,
  [wordRole.recipient]: postingKind.recipient,
  [wordRole.bundle]: postingKind.bundle,
} as const
const roleWords = {
  [wordRole.owner]: wordKind.address,
  [wordRole.recipient]: wordKind.address,
  [wordRole.bundle]: wordKind.bundle,
} as const

/** Every prefix under which a row is posted, each once. */
export function rowPrefixes(
  key: Uint8Array,
  row: Pick<StoredRow, 'tags' | 'owner' | 'recipient' | 'place'>,
): number[] {
  const prefixes: number[] = []
  for (const tag of row.tags) {
    const prefix = postingPrefix(postingKind.tag, tag)
    if (!prefixes.includes(prefix)) prefixes.push(prefix)
  }
  prefixes.push(postingPrefix(postingKind.owner, row.owner))
  if (row.recipient !== 0) prefixes.push(postingPrefix(postingKind.recipient, row.recipient))
  if (row.place !== undefined) prefixes.push(postingPrefix(postingKind.bundle, row.place.parent))
  if (!isItemKey(key)) prefixes.push(transactionsPrefix)
  return prefixes
}

/** Key of what is in no block yet, in the order in which it was first seen. */
export function pendingKey(seenSeconds: number, key: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(4 + key.length)
  bytes.writeUInt32BE(seenSeconds, 0)
  bytes.set(key, 4)
  return bytes
}

/** Puts single rows into all tables, and takes them out again: only the keeper, inside its transaction. */
export class RowWriter {
  readonly #ids: IdWriter
  readonly #dictionary: DictionaryWriter
  readonly #postings: PostingWriter
  readonly #record = new VarWriter()
  #owners = new Recent<number, true>(ownersMax)
  readonly segmentIds: SegmentIds
  /** Words of rows that are read back. */
  readonly #words: Dictionary
  /** The flush that reads the tables, if there is one. */
  watch: RowWatch | undefined

  /** The last row key, as far as it was looked up in this transaction. */
  readonly #last = Buffer.alloc(rowKeyBytes)
  #isLastKnown = false

  constructor(
    private readonly tables: IndexTables,
    limits: SpillLimits,
  ) {
    this.#ids = new IdWriter(tables, limits)
    this.#dictionary = new DictionaryWriter(tables, limits)
    this.#postings = new PostingWriter(tables.postings)
    this.segmentIds = new SegmentIds(tables.segments)
    this.#words = new Dictionary(tables)
  }

  /** The row with this id (32 bytes). */
  find(id: Uint8Array): KeyedRow | undefined {
    const found = this.#ids.find(id)
    if (found !== undefined) return { key: found.key, row: decodeRow(found.key, found.record) }
    const place = this.segmentIds.find(id)
    if (place === undefined) return undefined
    const row = rowOf(place.live, place.row)
    return { key: Buffer.from(row.key), row, place }
  }

  /** The row of a segment with this key. */
  findInSegments(key: Uint8Array): KeyedRow | undefined {
    const place = this.tables.segments.at(key)
    if (place === undefined) return undefined
    return { key: Buffer.from(key), row: rowOf(place.live, place.row), place }
  }

  /** Puts a row at `key`, unless it is known at the same or an earlier place. `isUnjudged`: see `Row`. */
  put(packed: PackedRows, key: Buffer, nowSeconds: number, isUnjudged = false): Put {
    const standing = this.find(packed.id)
    // What is in no block keeps the place at which it arrived.
    if (standing !== undefined && heightOf(key) === undefined && standing.row.height === undefined) {
      if (isItemKey(key) === standing.row.isItem) standing.key.copy(key)
    }
    if (standing !== undefined && !givesWay(standing, key, packed, isUnjudged)) return 'known'
    if (standing !== undefined) this.remove(standing)
    // False where another row of the same transaction has an id that starts alike: see row-key.ts.
    const seenSeconds = standing?.row.seenSeconds ?? nowSeconds
    const row = this.#row(packed, key, seenSeconds)
    if (!this.#insert(key, isUnjudged ? { ...row, isUnjudged } : row, packed)) return 'skipped'
    this.#ids.add(packed.id, key)
    return standing === undefined ? 'added' : 'moved'
  }

  /** Takes a row out of every table, or removes it from its segment. */
  remove(found: KeyedRow): void {
    const { key } = found
    if (found.place !== undefined) {
      this.tables.segments.remove(found.place)
      this.#unplace(key, found.row.transfer?.weaveEnd)
      return
    }
    const { row } = found
    this.watch?.removed(key, row.id)
    for (const prefix of rowPrefixes(key, row)) this.#postings.remove(prefix, key)
    this.tables.rows.remove(key)
    this.#isLastKnown = false
    this.#ids.remove(row.id)
    if (row.height === undefined) this.tables.pending.remove(pendingKey(row.seenSeconds, key))
    else this.#unplace(key, row.transfer?.weaveEnd)
  }

  /** Says where a transaction's data ends in the weave; false where the row is no transaction in a block. */
  place(found: KeyedRow, weaveEnd: number): boolean {
    const { key, row } = found
    if (row.transfer === undefined || row.height === undefined || !this.#free(weaveEnd, key)) return false
    const transfer = { ...row.transfer, weaveEnd }
    // A segment does not change, and what a flush has read is not read again: the row is put anew.
    const whole = found.place === undefined ? this.#words.whole(found.row) : found.row
    const packed = packRows([{ ...whole, transfer }], false)
    this.remove(found)
    packed.next()
    this.restore(packed, key, row.seenSeconds, row.isUnjudged === true)
    return true
  }

  /** Puts a row that is nowhere, as it was. Throws where its key is taken. */
  restore(packed: PackedRows, key: Buffer, seenSeconds: number, isUnjudged: boolean): void {
    const row = this.#row(packed, key, seenSeconds)
    if (!this.#insert(key, isUnjudged ? { ...row, isUnjudged } : row, packed)) {
      throw new Error('the place of a row of the index is taken')
    }
    this.#ids.add(packed.id, key)
  }

  /** Drops all rows, words and lists of the tables, and puts what is left. Inside a transaction. */
  rebuild({ rows, owners }: LeftInTables): void {
    const { tables } = this
    this.settle()
    this.#postings.clear()
    this.#ids.clear()
    this.#dictionary.clear()
    tables.rows.clear()
    tables.owners.clear()
    tables.pending.clear()
    this.#owners = new Recent<number, true>(ownersMax)
    for (const { packed, told } of rows) {
      for (const { key, seenSeconds, isUnjudged } of told) {
        packed.next()
        this.restore(packed, key, seenSeconds, isUnjudged)
      }
      this.relieve()
    }
    for (const { address, key } of owners) this.keepOwner(address.toString('latin1'), key)
    this.settle()
  }

  /** Keeps the public key of an address (one character per byte), whether or not a row of it is there yet. */
  keepOwner(address: string, key: Uint8Array): void {
    this.#keepOwner(this.#dictionary.give(wordKind.address, address), key)
  }

  /** Between messages: a transaction may hold more than should lie in memory, or be sorted at once. */
  relieve(): void {
    if (Math.max(this.#ids.runs.pending, this.#dictionary.pending) >= pendingMax) this.settle()
  }

  /** Writes what was collected: before every commit. */
  settle(): void {
    this.#postings.flush()
    this.#dictionary.settle()
    this.#ids.settle()
    this.#isLastKnown = false
  }

  /** The files of the index that are merged now and then. */
  get runs(): readonly RunWriter[] {
    return [this.#ids.runs, ...this.#dictionary.runs]
  }

  /** Two transactions cannot end at the same place: the first statement counts. */
  #free(weaveEnd: number, key: Uint8Array): boolean {
    const there = weaveEnd === 0 ? undefined : this.tables.weave.view(weaveKey(weaveEnd))
    return there === undefined || Buffer.compare(there, key) === 0
  }

  #unplace(key: Uint8Array, weaveEnd = 0): void {
    if (weaveEnd === 0) return
    const at = weaveKey(weaveEnd)
    const there = this.tables.weave.view(at)
    if (there !== undefined && Buffer.compare(there, key) === 0) this.tables.weave.remove(at)
  }

  /** Most rows come behind all others, which is cheaper to write and fills pages to the brim. False where the key is taken. */
  #putRow(key: Buffer, record: Buffer): boolean {
    if (!this.#isLastKnown) this.#readLast()
    if (compareRowKeys(key, 0, this.#last, 0) <= 0) return this.tables.rows.add(key, record)
    this.tables.rows.append(key, record)
    key.copy(this.#last)
    return true
  }

  /** The last key of all rows; one before all keys where there are none. */
  #readLast(): void {
    this.#last.fill(0)
    for (const key of this.tables.rows.keys({ backwards: true, limit: 1 })) this.#last.set(key)
    this.#isLastKnown = true
  }

  /** False where the key is taken. */
  #insert(key: Buffer, row: RowBody, packed: PackedRows): boolean {
    if (this.tables.segments.at(key) !== undefined) return false
    if (!this.#putRow(key, encodeRow(this.#record, row))) return false
    this.watch?.put(key)
    const at = this.#postings.key(key)
    for (let tag = 0; tag < packed.tagCount; tag += 1) this.#post(packed.tags[tag] as PackedWord, at)
    this.#post(packed.owner, at)
    if (packed.recipient !== undefined) this.#post(packed.recipient, at)
    if (packed.place !== undefined) this.#post(packed.place.parent, at)
    if (!isItemKey(key)) this.#postings.add(this.#postings.list(transactionsPrefix, false), at)
    if (heightOf(key) === undefined) this.tables.pending.put(pendingKey(row.seenSeconds, key), present)
    else if (row.transfer !== undefined && row.transfer.weaveEnd > 0) {
      this.tables.weave.put(weaveKey(row.transfer.weaveEnd), key)
    }
    return true
  }

  #post(word: PackedWord, key: number): void {
    // What was collected before a row was taken out is written.
    if (word.list?.round !== this.#postings.round) {
      word.list = this.#postings.list(postingPrefix(roleKinds[word.role], word.number), false)
    }
    this.#postings.add(word.list, key)
  }

  #row(packed: PackedRows, key: Buffer, seenSeconds: number): RowBody {
    const owner = this.#number(packed.owner)
    const tags = new Array<number>(packed.tagCount)
    for (let at = 0; at < tags.length; at += 1) tags[at] = this.#number(packed.tags[at] as PackedWord)
    const { place, transfer } = packed
    return {
      id: packed.id,
      seenSeconds,
      size: packed.size,
      owner,
      recipient: packed.recipient === undefined ? 0 : this.#number(packed.recipient),
      anchor: packed.anchor,
      tags,
      signatureType: packed.signatureType,
      place:
        place === undefined
          ? undefined
          : {
              parent: this.#number(place.parent),
              rootItemOffset: place.rootItemOffset,
              parentItemOffset: place.parentItemOffset,
              headerSize: place.headerSize,
            },
      transfer:
        transfer === undefined || this.#free(transfer.weaveEnd, key)
          ? transfer
          : { ...transfer, weaveEnd: 0 },
      signature: packed.signature,
    }
  }

  /** The number of a word: looked up once for a message. */
  #number(word: PackedWord): number {
    if (word.number !== 0) return word.number
    const { role } = word
    word.number =
      role === wordRole.tag
        ? this.#dictionary.tag(word.text)
        : this.#dictionary.give(roleWords[role], word.text)
    // Under a new word nothing was ever posted.
    if (this.#dictionary.isNew) {
      word.list = this.#postings.list(postingPrefix(roleKinds[role], word.number), true)
    }
    if (word.key.length > 0) this.#keepOwner(word.number, word.key)
    return word.number
  }

  #keepOwner(number: number, owner: Uint8Array): void {
    if (this.#owners.get(number) !== undefined) return
    this.#owners.set(number, true)
    const key = numberBytes(number)
    if (this.tables.owners.view(key) === undefined) this.tables.owners.put(key, owner)
  }
}

/**
 * Whether the standing row is replaced: by one whose signature was checked where its own was not, else by the earlier place. One
 * in a block stays, where the other is in none: it may never come into a block.
 */
export function givesWay(
  standing: Standing,
  key: Buffer,
  packed: Pick<PackedRows, 'place'>,
  isUnjudged: boolean,
): boolean {
  const isStandingUnjudged = standing.row.isUnjudged === true
  const isInBlocks = standing.row.height !== undefined && heightOf(key) !== undefined
  if (isStandingUnjudged === isUnjudged || !isInBlocks) return comesBefore(key, packed, standing)
  return isStandingUnjudged
}

/**
 * Does the row belong at `key` rather than where it is known? Of items that stand several times in one
 * transaction the one with the lowest offset counts, so that the order in which they are told does not
 * matter.
 */
function comesBefore(key: Buffer, packed: Pick<PackedRows, 'place'>, known: Standing): boolean {
  const order = compareRowKeys(key, 0, known.key, 0)
  if (order !== 0 || known.row.place === undefined) return order < 0
  return packed.place !== undefined && packed.place.rootItemOffset < known.row.place.rootItemOffset
}
