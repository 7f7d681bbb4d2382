import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { type Environment, isDamage, openEnvironment, type Table } from '../lmdb.js'
import { databaseFault } from '../lmdb-check.js'
import { decodeNext, decodePlace, encodeNext, encodePlace, type SegmentPlace } from './place.js'
import type { SegmentMarks } from './segment-marks.js'

interface PlaceTables {
  readonly environment: Environment
  /** digest -> place. */
  readonly places: Table
  /** segment and slot, u32 big-endian each -> digest: the records of a segment. */
  readonly records: Table
  /** name -> number. */
  readonly meta: Table
}

function openTables(path: string): PlaceTables {
  const environment = openEnvironment(path, 4)
  return {
    environment,
    places: environment.table('places'),
    records: environment.table('records'),
    meta: environment.table('meta'),
  }
}

/** The tables, readable at their first look; or why they are not. */
function opened(path: string): PlaceTables | string {
  let tables: PlaceTables | undefined
  try {
    tables = openTables(path)
    segmentsIn(tables)
    return tables
  } catch (error) {
    void tables?.environment.close()
    return faultOf(error)
  }
}

function faultOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Segments with the slot of their last record, in order. */
function segmentsIn({ records }: PlaceTables): { segment: number; lastSlot: number }[] {
  const found: { segment: number; lastSlot: number }[] = []
  const end = Buffer.alloc(8, 0xff)
  for (let last = records.floor(end); last !== undefined; ) {
    const key = Buffer.from(last.key)
    const segment = key.readUInt32BE(0)
    found.push({ segment, lastSlot: key.readUInt32BE(4) })
    if (segment === 0) break
    last = records.floor(recordKey(segment - 1, 2 ** 32 - 1))
  }
  return found.reverse()
}

function recordKey(segment: number, slot: number): Buffer {
  const key = Buffer.allocUnsafe(8)
  key.writeUInt32BE(segment, 0)
  key.writeUInt32BE(slot, 4)
  return key
}

/** Pages of the index that are looked at before it is opened, within some milliseconds. */
const pagesMax = 1000

const nextKey = Buffer.from('next segment')

/** A record that a segment holds, as the index knows it. */
export interface HeldRecord {
  readonly slot: number
  readonly digest: Uint8Array
}

/** One change that the next commit makes. `place` absent: the digest is not held any more. */
export interface PlaceChange {
  readonly digest: Uint8Array
  readonly place: SegmentPlace | undefined
}

/** The index as any thread reads it. */
export class PlaceReader {
  readonly #tables: PlaceTables
  #seen = Number.NaN

  constructor(
    path: string,
    private readonly marks: SegmentMarks,
  ) {
    this.#tables = openTables(path)
  }

  /** Where the payload with this digest lies, by the last commit; undefined where it is not held. */
  find(digest: Uint8Array): SegmentPlace | undefined {
    const { commits } = this.marks
    if (commits !== this.#seen) {
      this.#tables.environment.refresh()
      this.#seen = commits
    }
    try {
      const found = this.#tables.places.view(digest)
      return found === undefined ? undefined : decodePlace(found, digest)
    } catch {
      // A page is damaged: the writer finds out, too, and tells. Until then what it led to is not here.
      this.#tables.environment.refresh()
      return undefined
    }
  }

  async close(): Promise<void> {
    await this.#tables.environment.close()
  }
}

/** The index as its one writer has it. */
export class PlaceWriter {
  readonly #tables: PlaceTables
  #isDamaged = false

  /**
   * An index that LMDB must not open, or cannot read, is begun anew: all that it costs is what was cached. `onBroken` hears why:
   * while it is read, too, and then it is begun anew at the next start.
   */
  constructor(
    private readonly path: string,
    private readonly onBroken: (fault: string) => void,
  ) {
    const known = existsSync(this.#mark) ? 'it could not be read before' : undefined
    const fault = known ?? (existsSync(path) ? databaseFault(path, pagesMax) : undefined)
    if (fault !== undefined) this.#drop(fault)
    let tables = opened(path)
    if (typeof tables === 'string') {
      this.#drop(tables)
      tables = openTables(path)
    }
    this.#tables = tables
  }

  /** A file that says that the index is damaged. */
  get #mark(): string {
    return `${this.path}/damaged`
  }

  #drop(fault: string): void {
    this.onBroken(fault)
    rmSync(this.path, { recursive: true, force: true })
  }

  find(digest: Uint8Array): SegmentPlace | undefined {
    try {
      const found = this.#tables.places.view(digest)
      return found === undefined ? undefined : decodePlace(found, digest)
    } catch (error) {
      this.#damaged(error)
      return undefined
    }
  }

  /** What a damaged page led to is not here; the rest stays until the next start. Logged once. */
  #damaged(error: unknown): void {
    this.#tables.environment.refresh()
    if (this.#isDamaged) return
    this.#isDamaged = true
    this.onBroken(faultOf(error))
    try {
      writeFileSync(this.#mark, '', { mode: 0o600 })
    } catch {
      // The disk refuses this, too: the next start sees for itself.
    }
  }

  /** A number that no segment has had; undefined where the index does not know any. */
  get nextSegment(): number | undefined {
    const found = this.#tables.meta.get(nextKey)
    return found === undefined ? undefined : decodeNext(found)
  }

  /**
   * Applies changes, and removes the rows of records that were looked at, in one transaction. Throws where the disk refuses.
   */
  commit(
    changes: readonly PlaceChange[],
    gone: readonly (readonly [number, number])[],
    nextSegment: number,
  ): void {
    try {
      this.#commit(changes, gone, encodeNext(nextSegment))
    } catch (error) {
      if (isDamage(error)) this.#damaged(error)
      throw error
    }
  }

  #commit(
    changes: readonly PlaceChange[],
    gone: readonly (readonly [number, number])[],
    next: Uint8Array,
  ): void {
    const { environment, places, records, meta } = this.#tables
    environment.write(() => {
      for (const { digest, place } of changes) {
        if (place === undefined) places.remove(digest)
        else {
          places.put(digest, encodePlace(place, digest))
          records.put(recordKey(place.segment, place.slot), digest)
        }
      }
      for (const [segment, slot] of gone) records.remove(recordKey(segment, slot))
      meta.put(nextKey, next)
    })
  }

  /** Records of a segment in order, from a slot on, at most `limit`. Some may lie elsewhere by now, or be gone. */
  recordsOf(segment: number, slot: number, limit: number): HeldRecord[] {
    const range = { start: recordKey(segment, slot), end: recordKey(segment + 1, 0), limit }
    const found: HeldRecord[] = []
    try {
      for (const { key, value } of this.#tables.records.span(range)) {
        found.push({ slot: Buffer.from(key).readUInt32BE(4), digest: new Uint8Array(value) })
      }
    } catch (error) {
      this.#damaged(error)
    }
    return found
  }

  /** Segments that the index knows records of, with the slot of the last one. */
  segments(): { segment: number; lastSlot: number }[] {
    return segmentsIn(this.#tables)
  }

  /** Number of payloads, and bytes of the index. */
  usage(): { readonly payloads: number; readonly bytes: number } {
    const bytes = this.#tables.environment.usage().reduce((sum, table) => sum + table.bytes, 0)
    return { payloads: this.#tables.places.count(), bytes }
  }

  async close(): Promise<void> {
    await this.#tables.environment.close()
  }
}
