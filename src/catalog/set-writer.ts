import { VarWriter } from '../format/varbytes.js'
import { present } from '../store/lmdb.js'
import { Recent } from '../store/recent.js'
import type { RunWriter } from '../store/run-writer.js'
import { Dictionary, numberBytes, wordKind } from './dictionary.js'
import { DictionaryWriter } from './dictionary-writer.js'
import { type FoundRow, IdWriter } from './ids.js'
import { wordRole } from './pack.js'
import type { PackedRows, PackedWord } from './packed-rows.js'
import { PostingWriter } from './posting-writer.js'
import { postingKind, postingPrefix, transactionsPrefix } from './postings.js'
import { encodeRow, type RowBody, type StoredRow } from './row.js'
import { compareRowKeys, heightOf, isItemKey, rowKeyBytes } from './row-key.js'
import type { RowTables } from './row-tables.js'
import type { SpillLimits } from './spill.js'
import type { KeySpan } from './table-sets.js'

const ownersMax = 50_000
/** New ids or words that are collected at most: some 100 MB. */
const collectedMax = 2 ** 19
/** Words of a row beside its tags. */
const rowWords = 4

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

/** What a row has that its message does not say. */
export interface RowState {
  readonly seenSeconds: number
  /** See `Row`. */
  readonly isUnjudged: boolean
  /** Whether the place in the weave that it names is its own. */
  readonly isPlaced: boolean
}

/** How tables are emptied in small steps. */
export interface ClearLimits {
  /** Tables with so many entries are dropped at once. */
  readonly dropMax: number
  /** So many entries are taken out of a larger one at once. */
  readonly entriesEach: number
}

/** Words of a row: tags, addresses, bundle. */
export function wordsOf(tags: number): number {
  return rowWords + tags
}

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

/** Puts single rows into one set of tables, and takes them out again: only the keeper, inside its transaction. */
export class SetWriter {
  readonly #ids: IdWriter
  readonly #dictionary: DictionaryWriter
  readonly #postings: PostingWriter
  readonly #record = new VarWriter()
  #owners = new Recent<number, true>(ownersMax)
  /** Words of rows that are read back. */
  readonly words: Dictionary
  /** Words of the rows that are in no block, about: an older index does not have their number. */
  #pendingWords: number
  #writtenWords: number
  readonly #wordsKey: Buffer

  /** The last row key, as far as it was looked up in this transaction. */
  readonly #last = Buffer.alloc(rowKeyBytes)
  #isLastKnown = false

  constructor(
    readonly tables: RowTables,
    limits: SpillLimits,
  ) {
    this.#ids = new IdWriter(tables, limits)
    this.#dictionary = new DictionaryWriter(tables, limits)
    this.#postings = new PostingWriter(tables.postings)
    this.words = new Dictionary(tables)
    this.#wordsKey = Buffer.from(`pending words${tables.suffix}`)
    const known = tables.indexMeta.get(this.#wordsKey)
    this.#pendingWords =
      known === undefined ? tables.pending.count() * wordsOf(rowWords) : Buffer.from(known).readDoubleLE(0)
    this.#writtenWords = this.#pendingWords
  }

  /** The row with this id (32 bytes), where its key is in the span. */
  find(id: Uint8Array, span?: KeySpan): FoundRow | undefined {
    return this.#ids.find(id, span)
  }

  /** Whether a row has this key. */
  has(key: Buffer): boolean {
    return this.tables.rows.view(key) !== undefined
  }

  get pendingWords(): number {
    return Math.max(0, this.#pendingWords)
  }

  /** Puts a row that is nowhere. False where its key is taken. */
  insert(packed: PackedRows, key: Buffer, state: RowState): boolean {
    const row = this.#row(packed, state)
    const isPut = this.#putRow(
      key,
      encodeRow(this.#record, state.isUnjudged ? { ...row, isUnjudged: true } : row),
    )
    if (!isPut) return false
    const at = this.#postings.key(key)
    for (let tag = 0; tag < packed.tagCount; tag += 1) this.#post(packed.tags[tag] as PackedWord, at)
    this.#post(packed.owner, at)
    if (packed.recipient !== undefined) this.#post(packed.recipient, at)
    if (packed.place !== undefined) this.#post(packed.place.parent, at)
    if (!isItemKey(key)) this.#postings.add(this.#postings.list(transactionsPrefix, false), at)
    if (heightOf(key) === undefined) {
      this.tables.pending.put(pendingKey(row.seenSeconds, key), present)
      this.#pendingWords += wordsOf(packed.tagCount)
    }
    this.#ids.add(packed.id, key)
    return true
  }

  /** Takes a row out of every table. */
  remove(key: Buffer, row: StoredRow): void {
    for (const prefix of rowPrefixes(key, row)) this.#postings.remove(prefix, key)
    this.tables.rows.remove(key)
    this.#isLastKnown = false
    this.#ids.remove(row.id)
    if (row.height !== undefined) return
    this.tables.pending.remove(pendingKey(row.seenSeconds, key))
    this.#pendingWords -= wordsOf(row.tags.length)
  }

  /** Keeps the public key of an address (one character per byte), whether or not a row of it is there yet. */
  keepOwner(address: string, key: Uint8Array): void {
    this.#keepOwner(this.#dictionary.give(wordKind.address, address), key)
  }

  /** Between messages: a transaction may hold more than should lie in memory, or be sorted at once. */
  relieve(): void {
    if (Math.max(this.#ids.runs.pending, this.#dictionary.pending) >= collectedMax) this.settle()
  }

  /** Writes what was collected: before every commit. */
  settle(): void {
    this.#postings.flush()
    this.#dictionary.settle()
    this.#ids.settle()
    this.#isLastKnown = false
    if (this.#writtenWords !== this.#pendingWords) this.#writeWords()
  }

  #writeWords(): void {
    const record = Buffer.allocUnsafe(8)
    record.writeDoubleLE(this.#pendingWords)
    this.tables.indexMeta.put(this.#wordsKey, record)
    this.#writtenWords = this.#pendingWords
  }

  /**
   * Takes some of the entries out, whatever they belong to: of rows that do not count any more. True where nothing is left, also
   * not in files. Inside a transaction of its own.
   */
  clearSome({ dropMax, entriesEach }: ClearLimits): boolean {
    const { postings, rows, ids, words, numbers, owners, pending } = this.tables
    for (const table of [postings, rows, ids, words, numbers, owners, pending]) {
      const count = table.count()
      if (count === 0) continue
      if (count <= dropMax) table.clear()
      else for (const key of [...table.keys({ limit: entriesEach })]) table.remove(key)
      return false
    }
    this.#postings.clear()
    this.#ids.clear()
    this.#dictionary.clear()
    this.#owners = new Recent<number, true>(ownersMax)
    this.#pendingWords = 0
    this.#writeWords()
    return true
  }

  /** Nothing is put from here on: forgets what is only of use for that. */
  rest(): void {
    this.settle()
    this.#postings.forget()
    this.#dictionary.forget()
    this.#owners = new Recent<number, true>(ownersMax)
    for (const run of this.runs) run.close()
  }

  /** The files that are merged now and then. */
  get runs(): readonly RunWriter[] {
    return [this.#ids.runs, ...this.#dictionary.runs]
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

  #post(word: PackedWord, key: number): void {
    // What was collected before a row was taken out is written.
    if (word.list?.round !== this.#postings.round) {
      word.list = this.#postings.list(postingPrefix(roleKinds[word.role], word.number), false)
    }
    this.#postings.add(word.list, key)
  }

  #row(packed: PackedRows, { seenSeconds, isPlaced }: RowState): RowBody {
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
      transfer: transfer === undefined || isPlaced ? transfer : { ...transfer, weaveEnd: 0 },
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
