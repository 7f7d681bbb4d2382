import { type CheckedFile, type MappedPart, unlessDamaged } from './checked-file.js'
import { entryBytes, fewEntries, IdShape, idPrefix, valueAt, wordAt } from './id-table.js'
import type { Segment } from './segment.js'

const pageShift = 12

/** The ids of one segment, as they lie in memory. */
interface Ids {
  readonly file: CheckedFile
  /** Where the table of buckets and the entries begin in the file. */
  readonly bucketsStart: number
  readonly entriesStart: number
  readonly buckets: MappedPart
  readonly entries: MappedPart
  readonly shape: IdShape
  /** Bits of the first 32 of an id that are not those of its bucket. */
  readonly shift: number
}

/**
 * Looks for one id in all segments at once. The processor waits some 100 ns for each byte that it has not read lately, and an id
 * needs two such in each segment. So the first of all segments are read before the second ones, and it waits for many together.
 */
export class IdSearch {
  readonly #ids: readonly (Ids | undefined)[]
  /** First entry of the bucket of the id, and how many it has; below zero: the segment itself must be searched. */
  readonly #starts: Int32Array
  readonly #counts: Int32Array
  #prefix = 0
  /** Only written: bytes are read early. */
  touched = 0

  constructor(segments: readonly Segment[]) {
    this.#ids = segments.map(idsOf)
    this.#starts = new Int32Array(segments.length)
    this.#counts = new Int32Array(segments.length)
  }

  /** Begins the search of an id (32 bytes). */
  begin(id: Uint8Array): void {
    const [all, starts, counts] = [this.#ids, this.#starts, this.#counts]
    const prefix = idPrefix(id)
    const first = Math.floor(prefix / 4096) | 0
    if (!this.#readBuckets(first)) {
      this.#bringIn(first)
      this.#readBuckets(first)
    }
    let touched = 0
    for (let at = 0; at < all.length; at += 1) {
      const start = starts[at] as number
      counts[at] = -1
      if (start < 0) continue
      const { buckets, entries, shift } = all[at] as Ids
      const cell = buckets.at + (first >>> shift) * 4 + 4
      if (!isSound(buckets, cell, cell + 3)) continue
      const count = wordAt(buckets.bytes, cell) - start
      const from = entries.at + start * entryBytes
      // Somebody has chosen ids that begin alike.
      if (count > fewEntries || (count > 0 && !isSound(entries, from, from + count * entryBytes - 1)))
        continue
      counts[at] = count
      // Without entries, `from` is a byte of whichever page comes next.
      if (count > 0) touched ^= entries.bytes[from] as number
    }
    this.#prefix = prefix
    this.touched = touched
  }

  /** False where a page of the tables was not compared with its checksum: what of them is known is read. */
  #readBuckets(first: number): boolean {
    const [all, starts] = [this.#ids, this.#starts]
    let areKnown = true
    for (let at = 0; at < all.length; at += 1) {
      const ids = all[at]
      starts[at] = -1
      if (ids === undefined) continue
      const { buckets, shift } = ids
      const cell = buckets.at + (first >>> shift) * 4
      if (isSound(buckets, cell, cell + 3)) starts[at] = wordAt(buckets.bytes, cell)
      else areKnown = false
    }
    return areKnown
  }

  /** Reads what the disk may have to bring: of all segments at once, and then compares it with its checksums. */
  #bringIn(first: number): void {
    const there = this.#ids.flatMap((ids) => (ids === undefined ? [] : [ids]))
    const cellOf = ({ bucketsStart, shift }: Ids): number => bucketsStart + (first >>> shift) * 4
    for (const ids of there) ids.file.want(cellOf(ids), cellOf(ids) + 8)
    const buckets = there.flatMap((ids) => {
      const { file, entriesStart } = ids
      // What is damaged is left to who looks into the segment.
      const at = unlessDamaged(() => file.at(cellOf(ids), cellOf(ids) + 8))
      if (at === undefined) return []
      const [start, end] = [wordAt(file.bytes, at), wordAt(file.bytes, at + 4)]
      if (start === end || end - start > fewEntries) return []
      const bucket = { file, from: entriesStart + start * entryBytes, to: entriesStart + end * entryBytes }
      file.want(bucket.from, bucket.to)
      return [bucket]
    })
    for (const { file, from, to } of buckets) unlessDamaged(() => file.at(from, to))
  }

  /** Whether the segment at this place of the list has to be looked into: false where it does not have the id. */
  mayHave(at: number): boolean {
    const count = this.#counts[at] as number
    if (count < 0) return true
    const { entries, shape } = this.#ids[at] as Ids
    const { bytes } = entries
    const wanted = (this.#prefix % shape.prints) * shape.rows
    let entry = entries.at + (this.#starts[at] as number) * entryBytes
    for (let left = count; left > 0; left -= 1) {
      const value = valueAt(bytes, entry)
      if (value >= wanted) return value < wanted + shape.rows
      entry += entryBytes
    }
    return false
  }
}

/** Undefined where they do not lie in one piece, or are few. */
function idsOf({ file, footer }: Segment): Ids | undefined {
  const shape = new IdShape(footer.rowCount)
  if (shape.bucketBits === 0) return undefined
  const entries = file.part(footer.ids, footer.buckets)
  const buckets = file.part(footer.buckets, footer.forms)
  if (entries === undefined || buckets === undefined) return undefined
  const places = { bucketsStart: footer.buckets, entriesStart: footer.ids }
  return { file, ...places, entries, buckets, shape, shift: 32 - shape.bucketBits }
}

/** Whether the pages of these bytes (the last one included) were compared with their checksums. */
function isSound({ sound, page }: MappedPart, first: number, last: number): boolean {
  return sound[page + (first >>> pageShift)] === 1 && sound[page + (last >>> pageShift)] === 1
}
