import type { Table } from '../store/lmdb.js'

/** Rows of which one entry of the table says whether they are removed. */
const pageRows = 4096
const pageBytes = pageRows / 8
const keyBytes = 8

function pageKey(segment: number, page: number): Buffer {
  const key = Buffer.allocUnsafe(keyBytes)
  key.writeUInt32BE(segment, 0)
  key.writeUInt32BE(page, 4)
  return key
}

/** Which rows of one segment were removed at some moment: 512 bytes for each 4096 rows that have one. */
export class RemovedMarks {
  constructor(private readonly pages: ReadonlyMap<number, Uint8Array>) {}

  has(row: number): boolean {
    const bits = this.pages.get(Math.floor(row / pageRows))
    const at = row % pageRows
    return bits !== undefined && (((bits[at >> 3] as number) >> (at & 7)) & 1) === 1
  }

  get isEmpty(): boolean {
    return this.pages.size === 0
  }

  /** Their numbers, ascending. */
  *rows(): Generator<number> {
    for (const [page, bits] of this.pages) {
      for (let at = 0; at < pageRows; at += 1) {
        if ((((bits[at >> 3] as number) >> (at & 7)) & 1) === 1) yield page * pageRows + at
      }
    }
  }
}

/**
 * Which rows of segments were removed: a bit for each row. Table: number of the segment and of a page of 4096 rows (each u32,
 * big-endian) -> 512 bytes, the lowest bit of the first byte for the first row. Pages without removed rows are not there.
 */
export class RemovedRows {
  #pages = new Map<number, Map<number, Uint8Array | undefined>>()

  constructor(private readonly table: Table) {}

  /** Forgets what was read: the table may have changed. */
  refresh(): void {
    this.#pages = new Map()
  }

  /** Whether any row of a segment is removed. */
  hasAny(segment: number): boolean {
    const first = this.table.ceiling(pageKey(segment, 0))
    return first !== undefined && Buffer.from(first.key).readUInt32BE(0) === segment
  }

  has(segment: number, row: number): boolean {
    const pages = this.#pages.get(segment) ?? new Map<number, Uint8Array | undefined>()
    this.#pages.set(segment, pages)
    const page = Math.floor(row / pageRows)
    let bits = pages.get(page)
    if (bits === undefined && !pages.has(page)) {
      bits = this.table.get(pageKey(segment, page))
      pages.set(page, bits)
    }
    const at = row % pageRows
    return bits !== undefined && (((bits[at >> 3] as number) >> (at & 7)) & 1) === 1
  }

  /** Removes a row; false where it was removed already. Only the keeper, inside its transaction. */
  add(segment: number, row: number): boolean {
    return this.addAll(segment, [row]) === 1
  }

  /** Removes rows: how many were not removed already. Only the keeper, inside its transaction. */
  addAll(segment: number, rows: Iterable<number>): number {
    const byPage = new Map<number, number[]>()
    for (const row of rows) {
      const page = Math.floor(row / pageRows)
      const places = byPage.get(page) ?? []
      byPage.set(page, places)
      places.push(row % pageRows)
    }
    let added = 0
    for (const [page, places] of byPage) added += this.#addToPage(segment, page, places)
    return added
  }

  #addToPage(segment: number, page: number, places: readonly number[]): number {
    const key = pageKey(segment, page)
    const before = this.table.get(key)
    const bits = before === undefined ? new Uint8Array(pageBytes) : Uint8Array.from(before)
    let added = 0
    for (const at of places) {
      const byte = bits[at >> 3] as number
      if (((byte >> (at & 7)) & 1) === 0) added += 1
      bits[at >> 3] = byte | (1 << (at & 7))
    }
    if (added === 0) return 0
    this.table.put(key, bits)
    const pages = this.#pages.get(segment) ?? new Map<number, Uint8Array | undefined>()
    this.#pages.set(segment, pages.set(page, bits))
    return added
  }

  /** Removes rows in a row, up to before `end`: how many were not removed already. Only the keeper, inside its transaction. */
  addRange(segment: number, first: number, end: number): number {
    let added = 0
    for (let from = first; from < end; ) {
      const page = Math.floor(from / pageRows)
      const next = Math.min(end, (page + 1) * pageRows)
      const places = Array.from({ length: next - from }, (_, at) => (from % pageRows) + at)
      added += this.#addToPage(segment, page, places)
      from = next
    }
    return added
  }

  /** Which rows of a segment are removed now. */
  marks(segment: number): RemovedMarks {
    const pages = new Map<number, Uint8Array>()
    const span = { start: pageKey(segment, 0), end: pageKey(segment + 1, 0) }
    for (const { key, value } of this.table.span(span)) {
      pages.set(Buffer.from(key).readUInt32BE(4), Uint8Array.from(value))
    }
    return new RemovedMarks(pages)
  }

  /** Forgets a segment that is not listed any more. Only the keeper, inside its transaction. */
  drop(segment: number): void {
    const span = { start: pageKey(segment, 0), end: pageKey(segment + 1, 0) }
    for (const key of [...this.table.keys(span)].map((one) => Buffer.from(one))) this.table.remove(key)
    this.#pages.delete(segment)
  }
}
