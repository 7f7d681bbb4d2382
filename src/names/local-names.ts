import { join } from 'node:path'
import type { Clock, Timer } from '../actor/clock.js'
import type { Cell } from '../actor/shared.js'
import { FileChanges, hearWrites } from '../store/file-changes.js'
import { openEnvironment } from '../store/lmdb.js'
import { decodeRecord, type NameTables, openNameTables, readVersion } from './name-tables.js'
import type { Name, NameRecord, Resolver, ResolverVerdict } from './names-port.js'

/** Interval at which readers look for changes that the system did not tell them of. */
const lookMs = 1000

/** The names that the operator set on this machine, for readers: synchronous, from the memory map. */
export class LocalNames implements Resolver {
  readonly label = 'local'
  readonly remote = false
  readonly #tables: NameTables
  readonly #timer: Timer
  readonly #hearing: Timer
  /** In shared memory, for code that is not JavaScript. */
  readonly #version = new Int32Array(new SharedArrayBuffer(4))

  /** `path`: folder of the registry, made where it is missing. */
  constructor(path: string, clock: Clock, open = openEnvironment) {
    this.#tables = openNameTables(path, open)
    this.#version[0] = readVersion(this.#tables)
    const file = join(path, 'data.mdb')
    const changes = new FileChanges(file)
    const look = (): void => {
      if (!changes.mayHaveChanged(clock.now())) return
      this.#tables.environment.refresh()
      this.#version[0] = readVersion(this.#tables)
    }
    this.#timer = clock.every(lookMs, look)
    this.#hearing = hearWrites(file, look)
  }

  /** Changes as soon as any name may have changed. */
  get version(): number {
    return this.#version[0] ?? 0
  }

  get versionCell(): Cell {
    return { cells: this.#version, at: 0 }
  }

  find(name: Name): NameRecord | undefined {
    return decodeRecord(this.#tables.records.get(Buffer.from(name.full)))
  }

  async resolve(name: Name): Promise<ResolverVerdict> {
    return this.find(name) ?? 'absent'
  }

  async close(): Promise<void> {
    this.#timer.cancel()
    this.#hearing.cancel()
    await this.#tables.environment.close()
  }
}
