import type { Cell } from '../../actor/shared.js'
import { recordSlotBytes } from './segment-record.js'

/** Numbers of the table's head: commits of the index, first segment of this run, bytes of all files in slots, withdrawals. */
const headCells = 4

/** Size of the table, and of the segments that it speaks of. */
export interface MarksShape {
  /** Segments that can be there at once. */
  readonly cells: number
  readonly segmentBytes: number
}

/** Data about the segments for a thread. */
export interface SharedSegments {
  readonly folder: string
  /** Bytes that they may take. */
  readonly maxBytes: number
  /** Bytes of the disk that they leave free. */
  readonly freeMinBytes: number
  readonly shape: MarksShape
  /** Memory of the `SegmentMarks`. */
  readonly memory: SharedArrayBuffer
}

/** Bits of a slot: requested, compared with its digest, requested again. */
const planes = 3

type Plane = 0 | 1 | 2

/** Words of 32 bits for one bit a slot. */
function wordsOf({ segmentBytes }: MarksShape): number {
  return Math.ceil(segmentBytes / recordSlotBytes / 32)
}

/** Bytes of shared memory for a table. Most of it is never touched, and then takes no memory. */
export function marksBytes(shape: MarksShape): number {
  return 4 * (headCells + shape.cells * (1 + planes * wordsOf(shape)))
}

/**
 * The state of the segments in shared memory: which exist, which records had requests since they were written, and which were
 * compared with their digest since the start.
 *
 * The rule for readers: a segment's file is written once, from start to end, under a number that is never reused, and is
 * removed as a whole. So a mapping always has the written bytes, also after the removal. No lock is needed, and no reader
 * delays the writer. By the number in a cell a thread knows when to release its mapping. The disk gets the room back when the
 * last thread has done so.
 *
 * Records of this run count as checked, because their bytes were hashed before they were written. A record of an earlier run is
 * compared with its digest once, by its first reader.
 */
export class SegmentMarks {
  readonly #cells: Int32Array
  readonly #words: number
  /** Slots of a segment that there are bits for. A segment of an earlier run may be larger: what lies behind is never marked. */
  readonly #slots: number

  /** `memory` as large as `marksBytes` states, the same on every thread. */
  constructor(
    readonly memory: SharedArrayBuffer,
    readonly shape: MarksShape,
  ) {
    this.#cells = new Int32Array(memory)
    this.#words = wordsOf(shape)
    this.#slots = this.#words * 32
  }

  /** Changes with each commit of the index. */
  get commits(): number {
    return Atomics.load(this.#cells, 0)
  }

  /** Writer only. */
  committed(fileBytes: number): void {
    Atomics.store(this.#cells, 2, Math.ceil(fileBytes / recordSlotBytes))
    Atomics.add(this.#cells, 0, 1)
  }

  /**
   * Changes with each payload that is taken out of a segment which stays. What was found before, in a segment that is still
   * there, is held as long as this does not change, whatever is committed besides.
   */
  get withdrawals(): number {
    return Atomics.load(this.#cells, 3)
  }

  /** Writer only, after the commit without the payload. */
  withdrew(): void {
    Atomics.add(this.#cells, 3, 1)
  }

  get withdrawalsCell(): Cell {
    return { cells: this.#cells, at: 3 }
  }

  /** Where the number of the segment in this cell stands. */
  segmentCell(cell: number): Cell {
    return { cells: this.#cells, at: headCells + cell }
  }

  /**
   * Where it stands whether the record was requested again: a bit of a number. For the response cache,
   * and of which `ask` hears no more.
   */
  againBit(cell: number, slot: number): Cell & { readonly bit: number } {
    const known = Math.min(slot, this.#slots - 1)
    return { cells: this.#cells, at: this.#wordOf(cell, 2, known), bit: known & 31 }
  }

  /** Bytes of all segments, as the last commit had them. */
  get fileBytes(): number {
    return (Atomics.load(this.#cells, 2) >>> 0) * recordSlotBytes
  }

  /** Whether the segment was written by this run. */
  isOwn(segment: number): boolean {
    const first = Atomics.load(this.#cells, 1)
    return first !== 0 && segment >= first
  }

  /** Writer only, before anything is written: segments from this one on are of this run. */
  begin(segment: number): void {
    Atomics.store(this.#cells, 1, segment)
  }

  /** The cell of a segment; undefined where it is not there (any more). */
  cellOf(segment: number): number | undefined {
    for (let cell = 0; cell < this.shape.cells; cell += 1) {
      if (this.isIn(cell, segment)) return cell
    }
    return undefined
  }

  isIn(cell: number, segment: number): boolean {
    return Atomics.load(this.#cells, headCells + cell) === segment
  }

  /** Writer only: the segment is there from now on. False: every cell is taken. */
  add(segment: number): boolean {
    const cell = this.cellOf(0)
    if (cell === undefined) return false
    const start = this.#wordOf(cell, 0, 0)
    this.#cells.fill(0, start, start + planes * this.#words)
    Atomics.store(this.#cells, headCells + cell, segment)
    return true
  }

  /** Writer only: the segment goes. */
  remove(segment: number): void {
    const cell = this.cellOf(segment)
    if (cell !== undefined) Atomics.store(this.#cells, headCells + cell, 0)
  }

  /** Whether the record was requested since it was written. */
  isRequested(cell: number, slot: number): boolean {
    return this.#has(cell, 0, slot)
  }

  /** The same, and once more at least. */
  isRequestedAgain(cell: number, slot: number): boolean {
    return this.#has(cell, 2, slot)
  }

  ask(cell: number, slot: number): void {
    this.#set(cell, this.#has(cell, 0, slot) ? 2 : 0, slot)
  }

  /** Whether the record was compared with its digest since the start. */
  isChecked(cell: number, slot: number): boolean {
    return this.#has(cell, 1, slot)
  }

  check(cell: number, slot: number): void {
    this.#set(cell, 1, slot)
  }

  #wordOf(cell: number, which: Plane, slot: number): number {
    return headCells + this.shape.cells + (cell * planes + which) * this.#words + (slot >>> 5)
  }

  #has(cell: number, which: Plane, slot: number): boolean {
    if (slot >= this.#slots) return false
    return (((this.#cells[this.#wordOf(cell, which, slot)] ?? 0) >>> (slot & 31)) & 1) === 1
  }

  /** Most are set already, and looking is cheaper than setting. */
  #set(cell: number, which: Plane, slot: number): void {
    if (slot < this.#slots && !this.#has(cell, which, slot))
      Atomics.or(this.#cells, this.#wordOf(cell, which, slot), 1 << (slot & 31))
  }
}
