import type { RunWriter } from '../store/run-writer.js'
import { type IndexTables, markTwoSets, weaveKey } from './index-tables.js'
import { packRows } from './pack-rows.js'
import type { PackedRows } from './packed-rows.js'
import { decodeRow, type Row, type StoredRow } from './row.js'
import { compareRowKeys, heightOf, isItemKey, rowKeyBytes } from './row-key.js'
import type { SegmentIds } from './segment-ids.js'
import { type FoundInSegment, rowOf } from './segment-rows.js'
import { type ClearLimits, SetWriter, wordsOf } from './set-writer.js'
import type { SpillLimits } from './spill.js'
import {
  type FrozenState,
  isInSpan,
  isNothing,
  type KeySpan,
  type SetsState,
  withoutFirst,
  withoutLast,
} from './table-sets.js'

/** A row and where it stands: in a set of tables, or in a segment. */
export type KeyedRow =
  | { readonly key: Buffer; readonly row: StoredRow; readonly set: SetWriter; readonly place?: undefined }
  | { readonly key: Buffer; readonly row: Row; readonly place: FoundInSegment }

/** What of a standing row decides whether it gives way to another one of the same id. */
export interface Standing {
  readonly key: Buffer
  readonly row: Pick<Row, 'height' | 'isUnjudged'> & {
    readonly place: Pick<NonNullable<Row['place']>, 'rootItemOffset'> | undefined
  }
}

/** What of a row that is put decides whether another one of the same id gives way to it. */
export interface PlacedRow {
  readonly place: { readonly rootItemOffset: number } | undefined
}

/** Hears of rows that are taken out of the frozen tables while a flush reads them (index-flush.ts). */
export interface RowWatch {
  removed(key: Uint8Array, id: Uint8Array): void
}

/** What became of a row that was put: new, at another place than before, there already, or refused. */
export type Put = 'added' | 'moved' | 'known' | 'skipped'

/** What moved from the frozen tables into the current ones. */
export interface MovedRows {
  readonly rows: number
  /** How many words these rows have. */
  readonly words: number
}

/** A set of tables whose rows count, with its writer. */
interface LiveSet {
  readonly set: SetWriter
  readonly span: KeySpan | undefined
}

/** Puts single rows into the index, and takes them out again: only the keeper, inside its transaction. */
export class RowWriter {
  readonly #sets: readonly [SetWriter, SetWriter]
  #state: SetsState
  #live: readonly LiveSet[] = []
  /** The flush that reads the frozen tables, if there is one. */
  watch: RowWatch | undefined

  constructor(
    private readonly tables: IndexTables,
    limits: SpillLimits,
    private readonly segmentIds: SegmentIds,
  ) {
    const { sets } = tables
    sets.isOwn = true
    const [one, other] = sets.sets
    this.#sets = [new SetWriter(one, limits), new SetWriter(other, limits)]
    this.#state = sets.state
    this.#live = sets.live().map(({ at, span }) => ({ set: this.#sets[at], span }))
  }

  get #current(): SetWriter {
    return this.#sets[this.#state.current]
  }

  /** The set that nothing is put into. */
  get #other(): SetWriter {
    return this.#sets[this.#state.current === 0 ? 1 : 0]
  }

  #put(state: SetsState): void {
    const { sets } = this.tables
    sets.put(state)
    this.#state = state
    this.#live = sets.live().map(({ at, span }) => ({ set: this.#sets[at], span }))
  }

  /** The row with this id (32 bytes). */
  find(id: Uint8Array): KeyedRow | undefined {
    for (const { set, span } of this.#live) {
      const found = set.find(id, span)
      if (found !== undefined) return { key: found.key, row: decodeRow(found.key, found.record), set }
    }
    const place = this.segmentIds.find(id)
    if (place === undefined) return undefined
    const row = rowOf(place.live, place.row)
    return { key: Buffer.from(row.key), row, place }
  }

  /** The row with this key. */
  at(key: Uint8Array): KeyedRow | undefined {
    for (const { set, span } of this.#live) {
      const record = isInSpan(span, key) ? set.tables.rows.get(key) : undefined
      if (record !== undefined) return { key: Buffer.from(key), row: decodeRow(key, record), set }
    }
    const place = this.tables.segments.at(key)
    if (place === undefined) return undefined
    return { key: Buffer.from(key), row: rowOf(place.live, place.row), place }
  }

  /** Rows of tables that are between two keys, the last exclusive: at most so many. */
  between(start: Buffer, end: Buffer, limit: number): KeyedRow[] {
    return this.#live.flatMap(({ set, span }) => {
      const first = span !== undefined && compareRowKeys(start, 0, span.first, 0) < 0 ? span.first : start
      const found = [...set.tables.rows.span({ start: first, end, limit })]
      return found
        .filter(({ key }) => isInSpan(span, key))
        .map(({ key, value }) => ({ key: Buffer.from(key), row: decodeRow(key, value), set }))
    })
  }

  /** Keys of what is in no block and was first seen before a second, in each set in the order in which it was. */
  *pendingBefore(seconds: number, portion: number): Generator<Buffer[]> {
    const end = Buffer.allocUnsafe(4)
    end.writeUInt32BE(seconds)
    for (const { set, span } of this.#live) {
      for (let start: Buffer | undefined = Buffer.alloc(1); start !== undefined; ) {
        const found: Buffer[] = [...set.tables.pending.span({ start, end, limit: portion })].map(({ key }) =>
          Buffer.from(key),
        )
        yield found.filter((key) => isInSpan(span, key.subarray(4)))
        const last = found.at(-1)
        // The next key in the order of bytes.
        start = last === undefined || found.length < portion ? undefined : Buffer.concat([last, Buffer.of(0)])
      }
    }
  }

  /** Puts a row at `key`, unless it is known at the same or an earlier place. `isUnjudged`: see `Row`. */
  put(packed: PackedRows, key: Buffer, nowSeconds: number, isUnjudged = false): Put {
    const standing = this.find(packed.id)
    // What is in no block keeps the place at which it arrived.
    if (standing !== undefined && heightOf(key) === undefined && standing.row.height === undefined) {
      if (isItemKey(key) === standing.row.isItem) standing.key.copy(key)
    }
    if (standing !== undefined && !givesWay(standing, key, packed, isUnjudged)) return 'known'
    // Another row of the same transaction has an id that starts alike (row-key.ts): what stands elsewhere stays there.
    if (standing?.key.equals(key) !== true && this.#isTaken(key, standing !== undefined)) return 'skipped'
    if (standing !== undefined) this.remove(standing)
    const seenSeconds = standing?.row.seenSeconds ?? nowSeconds
    if (!this.#insert(packed, key, seenSeconds, isUnjudged)) return 'skipped'
    return standing === undefined ? 'added' : 'moved'
  }

  /** Whether a row outside of the current tables has this key, or also one in them (which `#insert` finds out, too). */
  #isTaken(key: Buffer, alsoCurrent: boolean): boolean {
    const isInTables = this.#live.some(
      ({ set, span }) => (alsoCurrent || span !== undefined) && isInSpan(span, key) && set.has(key),
    )
    return isInTables || this.tables.segments.at(key) !== undefined
  }

  /** False where the key is taken. */
  #insert(packed: PackedRows, key: Buffer, seenSeconds: number, isUnjudged: boolean): boolean {
    const weaveEnd = packed.transfer?.weaveEnd ?? 0
    const isPlaced = this.#free(weaveEnd, key)
    if (!this.#current.insert(packed, key, { seenSeconds, isUnjudged, isPlaced })) return false
    if (isPlaced && weaveEnd > 0 && heightOf(key) !== undefined)
      this.tables.weave.put(weaveKey(weaveEnd), key)
    return true
  }

  /** Takes a row out of every table, or removes it from its segment. */
  remove(found: KeyedRow): void {
    const { key, row } = found
    if (found.place !== undefined) this.tables.segments.remove(found.place)
    else {
      if (found.set === this.#other) this.watch?.removed(key, row.id)
      found.set.remove(key, found.row)
    }
    if (row.height !== undefined) this.#unplace(key, row.transfer?.weaveEnd)
  }

  /** Says where a transaction's data ends in the weave; false where the row is no transaction in a block. */
  place(found: KeyedRow, weaveEnd: number): boolean {
    const { key, row } = found
    if (row.transfer === undefined || row.height === undefined || !this.#free(weaveEnd, key)) return false
    const transfer = { ...row.transfer, weaveEnd }
    // A segment does not change, and what a flush has read is not read again: the row is put anew.
    const whole = found.place === undefined ? found.set.words.whole(found.row) : found.row
    const packed = packRows([{ ...whole, transfer }], false)
    this.remove(found)
    packed.next()
    this.#restore(packed, key, row)
    return true
  }

  /** Puts a row that is nowhere, as it was. */
  #restore(packed: PackedRows, key: Buffer, { seenSeconds, isUnjudged }: Row | StoredRow): void {
    if (!this.#insert(packed, key, seenSeconds, isUnjudged === true)) {
      throw new Error('the place of a row of the index is taken')
    }
  }

  /** The highest key that a row of the tables has; undefined where there is none. */
  highest(end: Buffer): Buffer | undefined {
    const found = this.#live.flatMap(({ set, span }) => {
      const start = span !== undefined && compareRowKeys(span.last, 0, end, 0) < 0 ? span.last : end
      const [last] = [...set.tables.rows.keys({ start, backwards: true, limit: 1 })]
      return last !== undefined && isInSpan(span, last) ? [Buffer.from(last)] : []
    })
    return found.sort((one, other) => compareRowKeys(other, 0, one, 0))[0]
  }

  /** Rows and words in the current tables, and how many of them are in no block. */
  currentCounts(): { rows: number; pending: number; pendingWords: number } {
    const { tables, pendingWords } = this.#current
    return { rows: tables.rows.count(), pending: tables.pending.count(), pendingWords }
  }

  /** The current tables are frozen, and the other ones, which are empty, are current from now on. In a transaction of its own. */
  swap(): void {
    const { current, swaps, frozen } = this.#state
    if (frozen !== undefined) throw new Error('the tables that are to be current are not empty')
    this.#current.rest()
    markTwoSets(this.tables)
    const [last] = [...this.#current.tables.rows.keys({ backwards: true, limit: 1 })]
    const span = { first: Buffer.alloc(rowKeyBytes), last: Buffer.from(last ?? Buffer.alloc(rowKeyBytes)) }
    this.#put({
      current: current === 0 ? 1 : 0,
      swaps: (swaps + 1) % 2 ** 32,
      frozen: { ...span, hiddenRows: 0, hiddenPending: 0 },
    })
  }

  /** Rows of the frozen tables up to a key, so many, are in a segment from now on. Inside the transaction that lists it. */
  leave(key: Buffer, rows: number): void {
    this.#put({ ...this.#state, frozen: withoutFirst(this.#frozen(), key, rows) })
  }

  /**
   * Moves the last rows of the frozen tables into the current ones: one at least, and others while all have at most so many
   * words. In a transaction of its own.
   */
  moveLast(wordsMax: number): MovedRows {
    const frozen = this.#frozen()
    const set = this.#other
    const wanted = { start: frozen.last, backwards: true, limit: Math.ceil(wordsMax / wordsOf(0)) }
    const found: { key: Buffer; row: StoredRow }[] = []
    let [words, pending] = [0, 0]
    for (const { key, value } of set.tables.rows.span(wanted)) {
      if (!isInSpan(frozen, key)) break
      const row = decodeRow(Buffer.from(key), Buffer.from(value))
      const more = wordsOf(row.tags.length)
      if (found.length > 0 && words + more > wordsMax) break
      words += more
      if (row.height === undefined) pending += 1
      found.push({ key: Buffer.from(key), row })
    }
    const last = found.at(-1)
    const behind = last === undefined ? frozen.first : last.key
    this.#put({ ...this.#state, frozen: withoutLast(frozen, behind, found.length, pending) })
    for (const areItems of [false, true]) {
      // Ascending, as lists are written.
      const some = found.filter(({ row }) => row.isItem === areItems).reverse()
      const packed = packRows(
        some.map(({ row }) => set.words.whole(row)),
        areItems,
      )
      for (const { key, row } of some) {
        packed.next()
        this.#restore(packed, key, row)
      }
    }
    this.settle()
    return { rows: found.length, words }
  }

  /** Empties some of the frozen tables, whose rows do not count any more. True where they are empty. In its own transaction. */
  clearSome(limits: ClearLimits): boolean {
    if (!isNothing(this.#frozen())) throw new Error('tables whose rows count are not emptied')
    if (!this.#other.clearSome(limits)) return false
    this.#put({ ...this.#state, frozen: undefined })
    return true
  }

  #frozen(): FrozenState {
    const { frozen } = this.#state
    if (frozen === undefined) throw new Error('no tables of the index are frozen')
    return frozen
  }

  /** Keeps the public key of an address (one character per byte), whether or not a row of it is there yet. */
  keepOwner(address: string, key: Uint8Array): void {
    this.#current.keepOwner(address, key)
  }

  /** Between messages: a transaction may hold more than should lie in memory, or be sorted at once. */
  relieve(): void {
    this.#current.relieve()
  }

  /** Writes what was collected: before every commit. */
  settle(): void {
    for (const set of this.#sets) set.settle()
  }

  /** The files of the index that are merged now and then. */
  get runs(): readonly RunWriter[] {
    return this.#current.runs
  }

  /** Paths of files of runs that no list names any more, each stated once. */
  takeRetired(): string[] {
    return this.#sets.flatMap(({ runs }) => runs.flatMap((run) => run.takeRetired()))
  }

  /** Drops what is half done. */
  close(): void {
    for (const { runs } of this.#sets) for (const run of runs) run.close()
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
}

/**
 * Whether the standing row is replaced: by one whose signature was checked where its own was not, else by the earlier place. One
 * in a block stays, where the other is in none: it may never come into a block.
 */
export function givesWay(standing: Standing, key: Buffer, packed: PlacedRow, isUnjudged: boolean): boolean {
  const isStandingUnjudged = standing.row.isUnjudged === true
  const isInBlocks = standing.row.height !== undefined && heightOf(key) !== undefined
  if (isStandingUnjudged === isUnjudged || !isInBlocks) return comesBefore(key, packed, standing)
  return isStandingUnjudged
}

/**
 * Does the row belong at `key` rather than where it is known? Of items that stand several times in one
 * transaction the one with the lowest offset counts, so that the order in which they are stated does not
 * matter.
 */
function comesBefore(key: Buffer, packed: PlacedRow, known: Standing): boolean {
  const order = compareRowKeys(key, 0, known.key, 0)
  if (order !== 0 || known.row.place === undefined) return order < 0
  return packed.place !== undefined && packed.place.rootItemOffset < known.row.place.rootItemOffset
}
