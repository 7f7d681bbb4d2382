import { setImmediate as turn } from 'node:timers/promises'
import { systemClock } from '../actor/clock.js'
import { openEnvironment, present, type Table } from '../store/lmdb.js'
import { joining, type SharedPosition, type Unshared, UnsharedKeys } from '../store/unshared-keys.js'
import { parseName } from './name.js'
import {
  baseKey,
  basesVersionKey,
  decodeRecord,
  grantKey,
  type NameTables,
  openNameTables,
  readVersion,
  versionKey,
} from './name-tables.js'
import type { Name, NameRecord } from './names-port.js'

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

/** The state of a name in the cluster. */
export interface SharedName {
  readonly name: Name
  /** Undefined: it was removed. */
  readonly record: NameRecord | undefined
  /** When it was changed: the later change of two counts. */
  readonly changedMs: number
}

/** The state of a right in the cluster. */
export interface SharedGrant extends NameGrant {
  readonly isGranted: boolean
}

/** Keys of `unsharedKeys`: of a name, and of a right. */
const [nameMark, grantMark] = ['name ', 'grant '] as const
/** Names and rights that are listed for the cluster in one transaction. */
const sharedAtOnce = 5000

/** Names that wallets may set in all; the operator may set more. */
const signedNamesMax = 100_000
/** Names below one base name that one wallet may have the right to. */
const undernamesMax = 1000

/** Why a signed order was not carried out. */
export type OrderFault = 'older' | 'held' | 'crowded' | 'full'

/** The names that the operator set on this machine, for writers. May be used in another process while the program runs. */
export class LocalRegistry {
  readonly #tables: NameTables
  /** Names and rights that the cluster does not know yet. */
  readonly unsharedKeys: UnsharedKeys

  constructor(
    path: string,
    private readonly now: () => number = systemClock.now,
    open = openEnvironment,
  ) {
    this.#tables = openNameTables(path, open)
    const { environment, records, bases } = this.#tables
    this.unsharedKeys = new UnsharedKeys(environment)
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
      const record = decodeRecord(value)
      if (record !== undefined) yield [Buffer.from(key).toString('utf8'), record]
    }
  }

  get(name: Name): NameRecord | undefined {
    // Others may have written since.
    this.#tables.environment.refresh()
    return decodeRecord(this.#tables.records.get(Buffer.from(name.full)))
  }

  /** Writes all of these names, or none. A name that was there points elsewhere from then on. */
  set(records: Iterable<readonly [Name, NameRecord]>): void {
    this.#change(() => {
      for (const [name, record] of records) this.#put(name, record, this.#nextTime(name))
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
      const before = decodeRecord(records.get(key))
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
      if (isNew) this.unsharedKeys.note(`${grantMark}${key}`)
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
      if (isThere) this.unsharedKeys.note(`${grantMark}${key}`)
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
    return this.#change(() => {
      const isThere = this.#drop(name)
      if (isThere) this.#changedAt(name, this.#nextTime(name))
      return isThere
    })
  }

  /** What the cluster does not know yet, as it is here. */
  unshared(limit: number): { readonly given: Unshared; readonly state: SharedName | SharedGrant }[] {
    return this.unsharedKeys.list(limit).flatMap((given) => {
      const state = given.key.startsWith(nameMark)
        ? this.#nameState(given.key.slice(nameMark.length))
        : this.#grantState(given.key.slice(grantMark.length))
      return state === undefined ? [] : [{ given, state }]
    })
  }

  /** Changes that the cluster has, or has others instead (`takeOver`). */
  settleShared(given: readonly Unshared[]): void {
    this.#tables.environment.write(() => this.unsharedKeys.settle(given))
  }

  /**
   * Takes over what the cluster has, in one transaction with how far that goes. What changed here and is not given to the
   * cluster yet stays.
   */
  takeOver(changes: readonly (SharedName | SharedGrant)[], position?: SharedPosition): void {
    this.#tables.environment.write(() => {
      for (const change of changes) {
        if ('isGranted' in change) this.#takeGrant(change)
        else this.#takeName(change)
      }
      if (position !== undefined) this.unsharedKeys.setPosition(position)
      if (changes.length > 0) this.#bump()
    })
  }

  /** Lists all names and rights as unshared, some thousands in a turn of the event loop. `position`: where to follow from. */
  async shareAll(position: SharedPosition): Promise<void> {
    const { environment, changed, records, grants } = this.#tables
    // Who is interrupted begins again.
    environment.write(() => this.unsharedKeys.setPosition({ ...position, version: joining }))
    // Names without a time are of early versions; removed ones have a time alone.
    await this.#shareKeys(changed, nameMark)
    await this.#shareKeys(records, nameMark)
    await this.#shareKeys(grants, grantMark)
    environment.write(() => this.unsharedKeys.setPosition(position))
  }

  async #shareKeys(table: Table, mark: string): Promise<void> {
    for (let start = Buffer.alloc(1); ; ) {
      const page = [...table.keys({ start, limit: sharedAtOnce })]
      this.#tables.environment.write(() => {
        for (const key of page) this.unsharedKeys.note(`${mark}${Buffer.from(key).toString()}`, true)
      })
      if (page.length < sharedAtOnce) return
      start = Buffer.concat([page.at(-1) ?? present, Buffer.of(0)])
      await turn()
    }
  }

  #takeGrant({ name, address, isGranted }: SharedGrant): void {
    const key = grantKey(name, address)
    if (this.unsharedKeys.has(`${grantMark}${key}`)) return
    if (isGranted) this.#tables.grants.put(key, Buffer.from(address))
    else this.#tables.grants.remove(key)
  }

  #takeName({ name, record, changedMs }: SharedName): void {
    if (this.unsharedKeys.has(`${nameMark}${name.full}`)) return
    if (record === undefined) this.#drop(name)
    else this.#record(name, record)
    this.#setTime(name, changedMs)
  }

  #nameState(full: string): SharedName | undefined {
    const name = parseName(full)
    return name && { name, record: this.get(name), changedMs: this.#lastTime(name) }
  }

  #grantState(key: string): SharedGrant {
    const [name = '', address = ''] = key.split('\n')
    const found = this.#tables.grants.get(Buffer.from(key))
    return {
      name,
      address: found === undefined ? address : Buffer.from(found).toString(),
      isGranted: found !== undefined,
    }
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

  #put(name: Name, record: NameRecord, changedMs: number): void {
    this.#record(name, record)
    this.#changedAt(name, changedMs)
  }

  #record({ full }: Name, record: NameRecord): void {
    this.#tables.records.put(Buffer.from(full), Buffer.from(JSON.stringify(record)))
    this.#tables.bases.put(baseKey(full), present)
  }

  /** False: there was no such name. */
  #drop({ full }: Name): boolean {
    const key = Buffer.from(full)
    const isThere = this.#tables.records.get(key) !== undefined
    if (isThere) this.#tables.records.remove(key)
    this.#tables.bases.remove(baseKey(full))
    return isThere
  }

  #changedAt(name: Name, ms: number): void {
    this.#setTime(name, ms)
    this.unsharedKeys.note(`${nameMark}${name.full}`)
  }

  /** The time of a change by the operator: behind the last one, whatever the clocks say, so that it counts. */
  #nextTime(name: Name): number {
    return Math.max(this.now(), this.#lastTime(name) + 1)
  }

  #lastTime({ full }: Name): number {
    const last = this.#tables.changed.get(Buffer.from(full))
    return last === undefined ? 0 : Number(Buffer.from(last).readBigUInt64BE())
  }

  /** The time never goes back: clocks differ, and what was carried out once would be again. */
  #setTime(name: Name, ms: number): void {
    const time = Buffer.alloc(8)
    time.writeBigUInt64BE(BigInt(Math.max(ms, this.#lastTime(name))))
    this.#tables.changed.put(Buffer.from(name.full), time)
  }
}
