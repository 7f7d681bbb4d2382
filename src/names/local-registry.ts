import type { Clock, Timer } from '../actor/clock.js'
import type { Cell } from '../actor/shared.js'
import { fieldsOf } from '../chain/shape.js'
import { type Environment, openEnvironment, type Table } from '../store/lmdb.js'
import type { Name, NameRecord, Resolver, ResolverVerdict } from './protocol.js'
import { readRecord } from './record.js'

/** Interval at which readers look for changes, so that they take effect on all threads within a quarter of a second. */
const lookMs = 250

const versionKey = Buffer.from('version')

interface Tables {
  readonly environment: Environment
  /** Full name to its record as JSON. */
  readonly records: Table
  /** How often names changed. */
  readonly state: Table
}

function openTables(path: string): Tables {
  const environment = openEnvironment(path, 2)
  return { environment, records: environment.table('records'), state: environment.table('state') }
}

function readVersion({ state }: Tables): number {
  const bytes = state.get(versionKey)
  return bytes === undefined ? 0 : Buffer.from(bytes).readUInt32BE()
}

function decode(bytes: Uint8Array | undefined): NameRecord | undefined {
  const fields = bytes === undefined ? undefined : fieldsOf(Buffer.from(bytes).toString('utf8'))
  return fields === undefined ? undefined : readRecord(fields)
}

/** The names that the operator set on this machine, for readers: synchronous, from the memory map. */
export class LocalNames implements Resolver {
  readonly label = 'local'
  readonly remote = false
  readonly #tables: Tables
  readonly #timer: Timer
  /** In shared memory, for code that is not JavaScript. */
  readonly #version = new Int32Array(new SharedArrayBuffer(4))

  /** `path`: folder of the registry, made where it is missing. */
  constructor(path: string, clock: Clock) {
    this.#tables = openTables(path)
    this.#version[0] = readVersion(this.#tables)
    this.#timer = clock.every(lookMs, () => {
      this.#tables.environment.refresh()
      this.#version[0] = readVersion(this.#tables)
    })
  }

  /** Changes as soon as any name may have changed. */
  get version(): number {
    return this.#version[0] ?? 0
  }

  get versionCell(): Cell {
    return { cells: this.#version, at: 0 }
  }

  find(name: Name): NameRecord | undefined {
    return decode(this.#tables.records.get(Buffer.from(name.full)))
  }

  async resolve(name: Name): Promise<ResolverVerdict> {
    return this.find(name) ?? 'absent'
  }

  async close(): Promise<void> {
    this.#timer.cancel()
    await this.#tables.environment.close()
  }
}

/** The same names, for writers. May be used in another process while the program runs. */
export class LocalRegistry {
  readonly #tables: Tables

  constructor(path: string) {
    this.#tables = openTables(path)
  }

  /** Every name with its record, in byte order. */
  *list(): Iterable<readonly [full: string, record: NameRecord]> {
    this.#tables.environment.refresh()
    for (const { key, value } of this.#tables.records.span({})) {
      const record = decode(value)
      if (record !== undefined) yield [Buffer.from(key).toString('utf8'), record]
    }
  }

  get(name: Name): NameRecord | undefined {
    // Others may have written since.
    this.#tables.environment.refresh()
    return decode(this.#tables.records.get(Buffer.from(name.full)))
  }

  /** Writes all of these names, or none. A name that was there points elsewhere from then on. */
  set(records: Iterable<readonly [Name, NameRecord]>): void {
    this.#change(() => {
      for (const [name, record] of records) {
        this.#tables.records.put(Buffer.from(name.full), Buffer.from(JSON.stringify(record)))
      }
    })
  }

  /** False where there is no such name. */
  remove(name: Name): boolean {
    const key = Buffer.from(name.full)
    return this.#change(() => {
      const isThere = this.#tables.records.get(key) !== undefined
      if (isThere) this.#tables.records.remove(key)
      return isThere
    })
  }

  async close(): Promise<void> {
    await this.#tables.environment.close()
  }

  #change<T>(act: () => T): T {
    return this.#tables.environment.write(() => {
      const outcome = act()
      const next = Buffer.alloc(4)
      next.writeUInt32BE((readVersion(this.#tables) + 1) >>> 0)
      this.#tables.state.put(versionKey, next)
      return outcome
    })
  }
}
