import { join } from 'node:path'
import { VarReader, VarWriter } from '../format/varbytes.js'
import { DamagedSegment } from './checked-file.js'
import { Segment } from './segment.js'

/** A segment of the list. */
export interface ListedSegment {
  /** No other file of the folder ever has this number. */
  readonly number: number
  /** How often its rows were merged. */
  readonly level: number
  readonly rows: number
  /** Size of the file. */
  readonly bytes: number
}

/** Which segments are the index, and the number that the next one has. */
export interface SegmentList {
  readonly next: number
  readonly segments: readonly ListedSegment[]
}

const version = 1

/**
 * The list as LMDB has it; integers are LEB128 but for the version:
 *
 *     version u8, next number, and for each segment: number, level, rows, bytes of the file
 */
export function encodeSegmentList({ next, segments }: SegmentList): Uint8Array {
  const out = new VarWriter()
  out.u8(version)
  out.uint(next)
  for (const { number, level, rows, bytes } of segments) {
    out.uint(number)
    out.uint(level)
    out.uint(rows)
    out.uint(bytes)
  }
  return out.copy()
}

/** What `encodeSegmentList` made; an empty list where there is none yet. Throws a RangeError on bytes of another version. */
export function decodeSegmentList(bytes: Uint8Array | undefined): SegmentList {
  if (bytes === undefined) return { next: 1, segments: [] }
  const read = new VarReader(bytes)
  const found = read.u8()
  if (found !== version) throw new RangeError(`a list of segments of version ${found}`)
  const next = read.uint()
  const segments: ListedSegment[] = []
  while (read.more) {
    segments.push({ number: read.uint(), level: read.uint(), rows: read.uint(), bytes: read.uint() })
  }
  return { next, segments }
}

/** The file of a segment. */
export function segmentPath(folder: string, number: number): string {
  return join(folder, `segment-${number}`)
}

/** The segments of the list, as one thread reads them. */
export class Segments {
  #open = new Map<number, Segment>()
  #list: Buffer | undefined
  #isKnown = false

  /** `list` reads the list in LMDB: a view. */
  constructor(
    readonly folder: string,
    private readonly list: () => Uint8Array | undefined,
  ) {}

  /** A commit may have changed the list: it is read again before the next look. */
  refresh(): void {
    this.#isKnown = false
  }

  /** The list as LMDB has it now. */
  read(): SegmentList {
    return decodeSegmentList(this.list())
  }

  /**
   * All segments, in the order of the list: valid until the next call after a `refresh`. Throws where one is missing or damaged
   * (DamagedSegment), or has another size.
   */
  all(): readonly Segment[] {
    this.follow()
    return [...this.#open.values()]
  }

  /** The same, each with its number. */
  listed(): readonly { readonly number: number; readonly segment: Segment }[] {
    this.follow()
    return [...this.#open].map(([number, segment]) => ({ number, segment }))
  }

  /** Opens what the list has now. True where it changed since the last look. Throws as `all` does. */
  follow(): boolean {
    if (this.#isKnown) return false
    const found = this.list()
    const isSame =
      this.#list === undefined ? found === undefined : found !== undefined && this.#list.equals(found)
    if (isSame) {
      this.#isKnown = true
      return false
    }
    const list = found === undefined ? undefined : Buffer.from(found)
    const open = new Map<number, Segment>()
    try {
      for (const listed of decodeSegmentList(list).segments) {
        open.set(listed.number, this.#open.get(listed.number) ?? this.#opened(listed))
      }
    } catch (error) {
      // The list is not taken over without its files: whoever asks next tries again, and nothing is called absent meanwhile.
      for (const [number, segment] of open) if (!this.#open.has(number)) segment.close()
      throw error
    }
    for (const [number, segment] of this.#open) if (!open.has(number)) segment.close()
    this.#open = open
    this.#list = list
    this.#isKnown = true
    return true
  }

  #opened({ number, rows, bytes }: ListedSegment): Segment {
    const path = segmentPath(this.folder, number)
    const segment = Segment.open(path)
    // As with a damaged page: what it had is not answered, and the rest is.
    if (segment === undefined) throw new DamagedSegment(path, 0, 'is missing, with its file')
    if (segment.file.sizeBytes === bytes && segment.count === rows) return segment
    segment.close()
    throw new DamagedSegment(path, 0, 'is of another segment than the list says')
  }

  close(): void {
    for (const segment of this.#open.values()) segment.close()
    this.#open.clear()
    this.#list = undefined
    this.#isKnown = false
  }
}
