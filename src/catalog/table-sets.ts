import type { Table } from '../store/lmdb.js'
import { compareRowKeys, rowKeyBytes } from './row-key.js'
import type { RowTables } from './row-tables.js'
import { beside } from './scan.js'

/** Two row keys, both inclusive. */
export interface KeySpan {
  readonly first: Buffer
  readonly last: Buffer
}

/** The frozen tables: only rows between two keys count, the others are in segments or in the current tables by now. */
export interface FrozenState extends KeySpan {
  /** Rows of the tables that do not count, and how many of these are in no block. */
  readonly hiddenRows: number
  readonly hiddenPending: number
}

/** Which tables have which role. */
export interface SetsState {
  /** The set that rows are put into. */
  readonly current: 0 | 1
  /** How often the sets changed roles, modulo 2^32. */
  readonly swaps: number
  /** State of the other set; undefined: it is empty. */
  readonly frozen: FrozenState | undefined
}

/** Tables whose rows count. */
export interface LiveTables {
  readonly at: 0 | 1
  readonly tables: RowTables
  /** Between which keys they do; undefined: all. */
  readonly span: KeySpan | undefined
}

const stateKey = Buffer.from('row tables')
const shortBytes = 6
const longBytes = shortBytes + 2 * rowKeyBytes + 16

/**
 * The state in the table of names, integers little-endian:
 *
 *     current u8 (0 or 1), whether the other set is frozen u8, swaps u32; where it is: first key (16), last key (16),
 *     hidden rows f64, hidden rows in no block f64
 */
function encodeSets({ current, swaps, frozen }: SetsState): Buffer {
  const record = Buffer.alloc(frozen === undefined ? shortBytes : longBytes)
  record[0] = current
  record[1] = frozen === undefined ? 0 : 1
  record.writeUInt32LE(swaps, 2)
  if (frozen === undefined) return record
  frozen.first.copy(record, shortBytes)
  frozen.last.copy(record, shortBytes + rowKeyBytes)
  record.writeDoubleLE(frozen.hiddenRows, shortBytes + 2 * rowKeyBytes)
  record.writeDoubleLE(frozen.hiddenPending, shortBytes + 2 * rowKeyBytes + 8)
  return record
}

function decodeSets(record: Buffer | undefined): SetsState {
  if (record === undefined) return { current: 0, swaps: 0, frozen: undefined }
  const current = record[0] === 1 ? 1 : 0
  const swaps = record.readUInt32LE(2)
  if (record[1] !== 1) return { current, swaps, frozen: undefined }
  const keys = shortBytes + rowKeyBytes
  return {
    current,
    swaps,
    frozen: {
      first: record.subarray(shortBytes, keys),
      last: record.subarray(keys, keys + rowKeyBytes),
      hiddenRows: record.readDoubleLE(keys + rowKeyBytes),
      hiddenPending: record.readDoubleLE(keys + rowKeyBytes + 8),
    },
  }
}

/** Whether a key lies in a span; all do where there is none. */
export function isInSpan(span: KeySpan | undefined, key: Uint8Array): boolean {
  return (
    span === undefined ||
    (compareRowKeys(span.first, 0, key, 0) <= 0 && compareRowKeys(key, 0, span.last, 0) <= 0)
  )
}

/** Whether no key lies in a span. */
export function isNothing(span: KeySpan): boolean {
  return compareRowKeys(span.first, 0, span.last, 0) > 0
}

/**
 * The two sets of tables that rows are in before they are in segments, as one thread reads them. Rows are put into the current
 * one. When it has enough of them the sets change roles: it is frozen, and its rows leave it, some at a time, for segments or for
 * the other one. Asks LMDB with each look which set has which role, so that this and what the tables have are of one state.
 */
export class TableSets {
  #record: Buffer | undefined
  #state: SetsState = decodeSets(undefined)
  #live: readonly LiveTables[]
  #isKnown = false
  /** Only this thread changes them, by `put`: it need not ask. */
  isOwn = false

  constructor(
    readonly sets: readonly [RowTables, RowTables],
    private readonly meta: Table,
  ) {
    this.#live = this.#liveTables()
  }

  get state(): SetsState {
    if (this.isOwn && this.#isKnown) return this.#state
    const found = this.meta.view(stateKey)
    const isSame =
      this.#record === undefined ? found === undefined : found !== undefined && this.#record.equals(found)
    if (!isSame) this.#take(found === undefined ? undefined : Buffer.from(found))
    this.#isKnown = true
    return this.#state
  }

  #take(record: Buffer | undefined): void {
    this.#record = record
    this.#state = decodeSets(record)
    this.#live = this.#liveTables()
  }

  #liveTables(): readonly LiveTables[] {
    const { current, frozen } = this.#state
    const other = current === 0 ? 1 : 0
    const now: LiveTables = { at: current, tables: this.sets[current], span: undefined }
    if (frozen === undefined || isNothing(frozen)) return [now]
    return [now, { at: other, tables: this.sets[other], span: frozen }]
  }

  /** The state is read again. */
  forget(): void {
    this.#isKnown = false
  }

  /** Those whose rows count, the current ones first. */
  live(): readonly LiveTables[] {
    return this.state === undefined ? [] : this.#live
  }

  /** Number of rows, and of those that are in no block. */
  counts(): { rows: number; pending: number } {
    const { frozen } = this.state
    let [rows, pending] = [0, 0]
    for (const { tables, span } of this.#live) {
      rows += tables.rows.count() - (span === undefined ? 0 : (frozen?.hiddenRows ?? 0))
      pending += tables.pending.count() - (span === undefined ? 0 : (frozen?.hiddenPending ?? 0))
    }
    return { rows, pending }
  }

  /** Only the keeper, inside its transaction. */
  put(state: SetsState): void {
    const record = encodeSets(state)
    this.meta.put(stateKey, record)
    this.#take(record)
  }
}

/** The state without the rows up to a key. */
export function withoutFirst(frozen: FrozenState, key: Uint8Array, rows: number): FrozenState {
  const first = beside(key, false) ?? Buffer.alloc(rowKeyBytes, 0xff)
  const isLess = compareRowKeys(first, 0, frozen.first, 0) < 0
  return { ...frozen, first: isLess ? frozen.first : first, hiddenRows: frozen.hiddenRows + rows }
}

/** The state without the rows from a key on, of which so many are in no block. */
export function withoutLast(
  frozen: FrozenState,
  key: Uint8Array,
  rows: number,
  pending: number,
): FrozenState {
  const { hiddenRows, hiddenPending } = frozen
  const hidden = { hiddenRows: hiddenRows + rows, hiddenPending: hiddenPending + pending }
  const last = beside(key, true)
  // Before the lowest key there is none.
  if (last === undefined)
    return { ...hidden, first: Buffer.alloc(rowKeyBytes, 0xff), last: Buffer.alloc(rowKeyBytes) }
  return { ...hidden, first: frozen.first, last }
}
