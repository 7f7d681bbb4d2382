import { existsSync, rmSync } from 'node:fs'
import { type Environment, openEnvironment, type Table } from '../lmdb.js'
import { databaseFault } from '../lmdb-check.js'
import type { SegmentMarks } from './marks.js'
import { decodePlace, encodePlace, type SegmentPlace } from './place.js'

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
    const found = this.#tables.places.view(digest)
    return found === undefined ? undefined : decodePlace(found)
  }

  async close(): Promise<void> {
    await this.#tables.environment.close()
  }
}

/** The index as its one writer has it. */
export class PlaceWriter {
  readonly #tables: PlaceTables

  /** An index that LMDB must not open is begun anew: all that it costs is what was cached. `onBroken` hears why. */
  constructor(path: string, onBroken: (fault: string) => void) {
    const fault = existsSync(path) ? databaseFault(path, pagesMax) : undefined
    if (fault !== undefined) {
      onBroken(fault)
      rmSync(path, { recursive: true, force: true })
    }
    this.#tables = openTables(path)
  }

  find(digest: Uint8Array): SegmentPlace | undefined {
    const found = this.#tables.places.view(digest)
    return found === undefined ? undefined : decodePlace(found)
  }

  /** A number that no segment has had, as far as the index knows. */
  get nextSegment(): number {
    const found = this.#tables.meta.get(nextKey)
    return found === undefined ? 1 : Buffer.from(found).readUInt32LE(0)
  }

  /**
   * Applies changes, and removes the rows of records that were looked at, in one transaction. Throws where the disk refuses.
   */
  commit(
    changes: readonly PlaceChange[],
    gone: readonly (readonly [number, number])[],
    nextSegment: number,
  ): void {
    const next = Buffer.allocUnsafe(4)
    next.writeUInt32LE(nextSegment)
    const { environment, places, records, meta } = this.#tables
    environment.write(() => {
      for (const { digest, place } of changes) {
        if (place === undefined) places.remove(digest)
        else {
          places.put(digest, encodePlace(place))
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
    for (const { key, value } of this.#tables.records.span(range)) {
      found.push({ slot: Buffer.from(key).readUInt32BE(4), digest: new Uint8Array(value) })
    }
    return found
  }

  /** Segments that the index knows records of, with the slot of the last one. */
  segments(): { segment: number; lastSlot: number }[] {
    const found: { segment: number; lastSlot: number }[] = []
    const end = Buffer.alloc(8, 0xff)
    for (let last = this.#tables.records.floor(end); last !== undefined; ) {
      const key = Buffer.from(last.key)
      const segment = key.readUInt32BE(0)
      found.push({ segment, lastSlot: key.readUInt32BE(4) })
      if (segment === 0) break
      last = this.#tables.records.floor(recordKey(segment - 1, 2 ** 32 - 1))
    }
    return found.reverse()
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
