import { join } from 'node:path'
import { type Clock, systemClock, type Timer } from '../actor/clock.js'
import type { Cell } from '../actor/shared.js'
import { fieldsOf } from '../chain/json-fields.js'
import { FileChanges, hearWrites } from '../store/file-changes.js'
import { type Environment, openEnvironment, type Table } from '../store/lmdb.js'
import { parseName } from './name.js'
import { readRecord } from './name-record.js'
import type { Name, NameRecord, Resolver, ResolverVerdict } from './names-port.js'

/** Interval at which readers look for changes that the system did not tell them of. */
const lookMs = 1000

const versionKey = Buffer.from('version')
/** The version at which `bases` was written last: a program that knows no such table changes the other one alone. */
const basesVersionKey = Buffer.from('bases-version')

interface Tables {
  readonly environment: Environment
  /** Full name to its record as JSON. */
  readonly records: Table
  /** How often names changed. */
  readonly state: Table
  /** Keys alone: a name, or `*` for any, a line feed and the address of a wallet that may set it. */
  readonly grants: Table
  /** Full name to the time (u64, milliseconds) of its last change: what was signed before that is not carried out. */
  readonly changed: Table
  /** Base name, a line feed and the full name: where the undernames of one name are. */
  readonly bases: Table
}

const present = new Uint8Array(0)

/** The key of a full name in `bases`. */
function baseKey(full: string): Buffer {
  return Buffer.from(`${parseName(full)?.basename ?? full}\n${full}`)
}

function openTables(path: string, open = openEnvironment): Tables {
  const environment = open(path, 5)
  const table = (name: string): Table => environment.table(name)
  return {
    environment,
    records: table('records'),
    state: table('state'),
    grants: table('grants'),
    changed: table('changed'),
    bases: table('bases'),
  }
}

/** A right of a wallet, given by the operator. */
export interface NameGrant {
  /** A full name, a base name with all of its undernames, or `*`. */
  readonly name: string
  readonly address: string
}

/** What a wallet has signed: what a name means from then on. */
export interface SignedName {
  readonly name: Name
  readonly record: Pick<NameRecord, 'id' | 'ttlSeconds'>
  /** When it was signed, by the wallet's clock. */
  readonly signedMs: number
}

/** Names that wallets may set in all; the operator may set more. */
const signedNamesMax = 100_000
/** Of them below one base name, which one wallet may have the right to. */
const undernamesMax = 1000

/** Why a signed order was not carried out. */
export type OrderFault = 'older' | 'held' | 'crowded' | 'full'

/** Addresses in hexadecimal digits mean the same in any case of letters. */
function grantKey(name: string, address: string): Buffer {
  const spelled = /^0x/i.test(address) ? address.toLowerCase() : address
  return Buffer.from(`${name}\n${spelled}`)
}

function readVersion({ state }: Tables, key = versionKey): number {
  const bytes = state.get(key)
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
  readonly #hearing: Timer
  /** In shared memory, for code that is not JavaScript. */
  readonly #version = new Int32Array(new SharedArrayBuffer(4))

  /** `path`: folder of the registry, made where it is missing. */
  constructor(path: string, clock: Clock, open = openEnvironment) {
    this.#tables = openTables(path, open)
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
    return decode(this.#tables.records.get(Buffer.from(name.full)))
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

/** The same names, for writers. May be used in another process while the program runs. */
export class LocalRegistry {
  readonly #tables: Tables

  constructor(
    path: string,
    private readonly now: () => number = systemClock.now,
    open = openEnvironment,
  ) {
    this.#tables = openTables(path, open)
    const { environment, records, bases } = this.#tables
    // Where an earlier version wrote last, the list of bases is incomplete.
    if (readVersion(this.#tables) === readVersion(this.#tables, basesVersionKey)) return
    environment.write(() => {
      for (const key of [...bases.keys({})]) bases.remove(key)
      for (const key of [...records.keys({})]) bases.put(baseKey(Buffer.from(key).toString()), present)
      this.#bump()
    })
  }

  /** The names that lie under a base name, itself among them, behind the full name `after`; so many at most. */
  under(base: string, after = '', limit = Number.MAX_SAFE_INTEGER): Name[] {
    this.#tables.environment.refresh()
    const start = Buffer.from(`${base}\n${after}${after === '' ? '' : '\0'}`)
    return [...this.#tables.bases.keys({ start, end: Buffer.from(`${base}\v`), limit })].flatMap(
      (key) =>
        parseName(
          Buffer.from(key)
            .toString()
            .slice(base.length + 1),
        ) ?? [],
    )
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
      for (const [name, record] of records) this.#put(name, record, this.now())
    })
  }

  /**
   * Carries out what a wallet has signed, which is on the disk when this resolves. `older`: the name was changed since, so that a
   * request can be sent twice without effect. `held`: somebody has bought the name, and sets it where it was sold.
   * `crowded`: the base name has as many undernames as wallets may set.
   */
  async setSigned({ name, record, signedMs }: SignedName): Promise<'set' | OrderFault> {
    const { records, changed, environment } = this.#tables
    const outcome = environment.write(() => {
      const key = Buffer.from(name.full)
      const last = changed.get(key)
      if (last !== undefined && BigInt(signedMs) <= Buffer.from(last).readBigUInt64BE()) return 'older'
      const before = decode(records.get(key))
      if (before?.antId !== undefined) return 'held'
      if (before === undefined && records.count() >= signedNamesMax) return 'full'
      if (before === undefined && this.#isCrowded(name.basename)) return 'crowded'
      this.#put(name, { ...before, ...record }, signedMs)
      this.#bump()
      return 'set'
    })
    await environment.flushed()
    return outcome
  }

  /** Part of a transaction that writes. */
  #isCrowded(base: string): boolean {
    const [start, end] = [Buffer.from(`${base}\n`), Buffer.from(`${base}\v`)]
    return [...this.#tables.bases.keys({ start, end, limit: undernamesMax })].length >= undernamesMax
  }

  /** Lets a wallet set a name. False: it may already. */
  grant({ name, address }: NameGrant): boolean {
    const { grants, environment } = this.#tables
    const key = grantKey(name, address)
    return environment.write(() => {
      const isNew = grants.get(key) === undefined
      if (isNew) grants.put(key, Buffer.from(address))
      return isNew
    })
  }

  /** False: there was no such right. */
  revoke({ name, address }: NameGrant): boolean {
    const { grants, environment } = this.#tables
    const key = grantKey(name, address)
    return environment.write(() => {
      const isThere = grants.get(key) !== undefined
      if (isThere) grants.remove(key)
      return isThere
    })
  }

  /** Every right, by name. */
  *grants(): Iterable<NameGrant> {
    this.#tables.environment.refresh()
    for (const { key, value } of this.#tables.grants.span({})) {
      const [name = ''] = Buffer.from(key).toString('utf8').split('\n')
      yield { name, address: Buffer.from(value).toString('utf8') }
    }
  }

  /** Whether a wallet may set a name. `addresses`: all ways to write its address. */
  maySet({ full, basename }: Name, addresses: readonly string[]): boolean {
    this.#tables.environment.refresh()
    return [full, basename, '*'].some((name) =>
      addresses.some((address) => this.#tables.grants.get(grantKey(name, address)) !== undefined),
    )
  }

  /** False where there is no such name. */
  remove(name: Name): boolean {
    const key = Buffer.from(name.full)
    return this.#change(() => {
      const isThere = this.#tables.records.get(key) !== undefined
      if (isThere) this.#tables.records.remove(key)
      this.#tables.bases.remove(baseKey(name.full))
      if (isThere) this.#changedAt(key, this.now())
      return isThere
    })
  }

  async close(): Promise<void> {
    await this.#tables.environment.close()
  }

  #change<T>(act: () => T): T {
    return this.#tables.environment.write(() => {
      const outcome = act()
      this.#bump()
      return outcome
    })
  }

  #bump(): void {
    const next = Buffer.alloc(4)
    next.writeUInt32BE((readVersion(this.#tables) + 1) >>> 0)
    this.#tables.state.put(versionKey, next)
    this.#tables.state.put(basesVersionKey, next)
  }

  #put({ full }: Name, record: NameRecord, changedMs: number): void {
    const key = Buffer.from(full)
    this.#tables.records.put(key, Buffer.from(JSON.stringify(record)))
    this.#tables.bases.put(baseKey(full), present)
    this.#changedAt(key, changedMs)
  }

  /** The time never goes back: clocks differ, and what was carried out once would be again. */
  #changedAt(key: Uint8Array, ms: number): void {
    const last = this.#tables.changed.get(key)
    const lastMs = last === undefined ? 0n : Buffer.from(last).readBigUInt64BE()
    const time = Buffer.alloc(8)
    time.writeBigUInt64BE(BigInt(ms) > lastMs ? BigInt(ms) : lastMs)
    this.#tables.changed.put(key, time)
  }
}
