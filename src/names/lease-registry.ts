import { createHash } from 'node:crypto'
import { parseId } from '../format/id.js'
import { type Environment, type KeyRange, openEnvironment, type Table } from '../store/lmdb.js'
import {
  type ChangeAction,
  type ChangeWish,
  factsChanged,
  type Holding,
  isOwnersOnly,
  leaseChanged,
  mayChange,
  type RecordFacts,
} from './change.js'
import { graceMs, isHeld, isNoSale, type Lease, type LeaseWish, leaseAfter, type NoSale } from './lease.js'
import { LocalRegistry } from './local-registry.js'
import { parseName } from './name.js'
import type { Name, NameRecord } from './names-port.js'

/** What was carried out under a nonce. */
export interface LeaseDone {
  /** Names the change: what others call the id of the message, or of the transaction. */
  readonly messageId: string
  readonly antId: string
}

/** A record of a name that somebody holds. */
export interface LeaseRecord extends RecordFacts {
  readonly undername: string
  /** With its base name, as the list has it. */
  readonly full: string
  readonly id: NameRecord['id']
  readonly ttlSeconds: number
}

interface Leases {
  readonly environment: Environment
  /** Base name to its lease, as JSON. */
  readonly leases: Table
  /** Ids of holders of records, to their names. */
  readonly holders: Table
  /** Nonces to what was carried out under them, or to why nothing was. */
  readonly done: Table
  /** Id of the holder, a line feed and an undername to facts of the record. */
  readonly facts: Table
  /** Owner, a line feed and the name: where the leases of one owner are. */
  readonly owners: Table
  /** When a lease ends (16 digits), a line feed and the name. */
  readonly ends: Table
}

const present = new Uint8Array(0)
const timeDigits = 16
const ownerKey = ({ owner, name }: Pick<Lease, 'owner' | 'name'>): Buffer => Buffer.from(`${owner}\n${name}`)
const endKey = ({ endMs, name }: Lease): Buffer =>
  Buffer.from(`${String(endMs).padStart(timeDigits, '0')}\n${name}`)
/** Leases whose time is over that are looked at in one go. */
const endedAtOnce = 500

const usualTtlSeconds = 3600

/**
 * Names that can be bought on this machine: who holds them and until when, beside the list that the gateway reads. One thread
 * writes it. What is carried out is named by a nonce and happens once.
 */
export class LeaseRegistry {
  readonly #leases: Leases
  readonly #records: LocalRegistry

  constructor(
    paths: {
      /** Folder of the local list. */
      readonly list: string
      /** Folder of who holds what of it. */
      readonly leases: string
    },
    private readonly now: () => number,
    open = openEnvironment,
  ) {
    const environment = open(paths.leases, 6)
    this.#leases = {
      environment,
      leases: environment.table('leases'),
      holders: environment.table('holders'),
      done: environment.table('done'),
      facts: environment.table('facts'),
      owners: environment.table('owners'),
      ends: environment.table('ends'),
    }
    // Where an earlier version wrote last, the lists are incomplete.
    if (this.#leases.owners.count() !== this.#leases.leases.count()) this.#list()
    this.#records = new LocalRegistry(paths.list, now, open)
  }

  find(name: string): Lease | undefined {
    return decoded<Lease>(this.#leases.leases.get(Buffer.from(name)))
  }

  /** The lease whose records `antId` holds. */
  heldBy(antId: string): Lease | undefined {
    const found = this.#leases.holders.get(Buffer.from(antId))
    return found === undefined ? undefined : this.find(Buffer.from(found).toString())
  }

  /** Names of an owner that are held, in their order, behind `after`; so many at most. */
  *ownedBy(owner: string, after: string, limit: number): Iterable<Lease> {
    const start = Buffer.concat([ownerKey({ owner, name: after }), Buffer.alloc(after === '' ? 0 : 1)])
    const end = Buffer.from(`${owner}\v`)
    let given = 0
    for (const key of this.#leases.owners.keys({ start, end })) {
      if (given >= limit) return
      const lease = this.find(
        Buffer.from(key)
          .toString()
          .slice(owner.length + 1),
      )
      // Those that are over leave the list with the next `expire`.
      if (lease?.owner !== owner || !isHeld(lease, this.now())) continue
      given += 1
      yield lease
    }
  }

  /** What the wish would lead to; nothing is written. */
  after(wish: LeaseWish, owner: string, nonce: string): Lease | NoSale {
    const antId = createHash('sha256').update(`${wish.name}\n${nonce}`).digest('base64url')
    const before = this.find(wish.name)
    const isTaken = before === undefined && this.#isListed(wish.name)
    return leaseAfter(wish, before, { owner, antId, isTaken, nowMs: this.now() })
  }

  /** Who may change the records of `antId`; undefined: nobody holds any. */
  holding(antId: string, undername: string): Holding | undefined {
    const lease = this.heldBy(antId)
    if (lease === undefined || !isHeld(lease, this.now())) return undefined
    const { owner: recordOwner } = this.#factsOf(antId, undername)
    return { ...lease, ...(recordOwner === undefined ? {} : { recordOwner }) }
  }

  /** Records of a name that somebody holds, in the order of their full names, behind `after`; so many at most. */
  recordsOf({ name, antId }: Lease, after: string, limit: number): LeaseRecord[] {
    return this.#records.under(name, after, limit).flatMap((one) => {
      const found = this.#records.get(one)
      if (found === undefined) return []
      const { id, ttlSeconds } = found
      return [{ undername: one.record, full: one.full, id, ttlSeconds, ...this.#factsOf(antId, one.record) }]
    })
  }

  /** Sells, once for a nonce: a repeated call gets the first result. */
  async sell(nonce: string, owner: string, wish: LeaseWish): Promise<LeaseDone | NoSale> {
    const known = this.#known(nonce)
    if (known !== undefined && isNoSale(known)) return known
    const lease = known === undefined ? this.after(wish, owner, nonce) : this.find(wish.name)
    if (lease === undefined) return known ?? this.#refuse(nonce, { noSale: 'The name is gone' })
    if (isNoSale(lease)) return this.#refuse(nonce, lease)
    // The lease first: records that nobody holds would keep the name from everybody.
    const done = known ?? this.#write(nonce, lease)
    const name = parseName(lease.name)
    const target = wish.processId === undefined ? undefined : parseId(wish.processId)
    if (name !== undefined && target !== undefined && this.#records.get(name) === undefined)
      this.#records.set([[name, recordOf(lease, target, 0, usualTtlSeconds)]])
    if (wish.intent !== 'buy-name') this.#relimit(lease)
    await this.#leases.environment.flushed()
    return done
  }

  /** Changes a name or a record of it, once for a nonce: a repeated call gets the first result. `by`: the requester. */
  async change(
    nonce: string,
    by: string,
    action: ChangeAction,
    wish: ChangeWish,
  ): Promise<LeaseDone | NoSale> {
    const known = this.#known(nonce)
    if (known !== undefined) return known
    const done = this.#changed(nonce, by, action, wish)
    if (isNoSale(done)) return this.#refuse(nonce, done)
    await this.#leases.environment.flushed()
    return done
  }

  #changed(nonce: string, by: string, action: ChangeAction, wish: ChangeWish): LeaseDone | NoSale {
    const { antId, undername } = wish
    const lease = this.heldBy(antId)
    const holding = this.holding(antId, undername)
    if (lease === undefined || holding === undefined) return { noSale: 'No name is held by this antId' }
    // Its holder may have changed since the order.
    if (!mayChange(action, by, holding)) return { noSale: 'The name or the record is held by somebody else' }
    if (isOwnersOnly(action)) {
      const next = leaseChanged(action, lease, wish)
      return isNoSale(next) ? next : this.#write(nonce, next)
    }
    const name = parseName(undername === '@' ? lease.name : `${undername}_${lease.name}`)
    if (name?.basename !== lease.name) return { noSale: `Invalid undername: '${undername}'` }
    if (action === 'set-record') return this.#pointed(nonce, lease, name, wish)
    if (this.#records.get(name) === undefined) return { noSale: `There is no record '${undername}'` }
    if (action === 'remove-record') {
      this.#records.remove(name)
      return this.#write(nonce, lease, [undername, {}])
    }
    const facts = factsChanged(action, this.#factsOf(antId, undername), wish)
    return isNoSale(facts) ? facts : this.#write(nonce, lease, [undername, facts])
  }

  #pointed(
    nonce: string,
    lease: Lease,
    name: Name,
    { target, ttlSeconds = usualTtlSeconds }: ChangeWish,
  ): LeaseDone | NoSale {
    if (target === undefined) return { noSale: 'The record has no target' }
    const index = this.#records.get(name)?.recordIndex ?? this.#nextIndex(lease, name)
    if (index > lease.undernameLimit)
      return { noSale: `The name has ${lease.undernameLimit} undernames at most` }
    this.#records.set([[name, recordOf(lease, target, index, ttlSeconds)]])
    return this.#write(nonce, lease)
  }

  /** Takes the records of leases that are over at a time off the list. Returns how many leases that were. */
  expire(atMs: number): number {
    const last = String(Math.max(0, atMs - graceMs)).padStart(timeDigits, '0')
    const due = [...this.#leases.ends.keys({ end: Buffer.from(`${last}\v`), limit: endedAtOnce })]
    let ended = 0
    for (const key of due) {
      const lease = this.find(
        Buffer.from(key)
          .toString()
          .slice(timeDigits + 1),
      )
      if (lease === undefined || !endKey(lease).equals(key)) {
        // An earlier version has changed the lease: its outdated entry in the list must not keep others from their turn.
        this.#leases.environment.write(() => this.#leases.ends.remove(key))
        continue
      }
      const { name, antId } = lease
      ended += 1
      for (const one of this.#records.under(name)) this.#records.remove(one)
      const facts = [...this.#leases.facts.keys(factsSpan(antId))]
      this.#leases.environment.write(() => {
        this.#unlist(lease)
        this.#leases.leases.remove(Buffer.from(name))
        this.#leases.holders.remove(Buffer.from(antId))
        for (const key of facts) this.#leases.facts.remove(key)
      })
    }
    return ended
  }

  async close(): Promise<void> {
    await this.#leases.environment.close()
    await this.#records.close()
  }

  /** Writes the lists anew. */
  #list(): void {
    const { environment, leases, owners, ends } = this.#leases
    environment.write(() => {
      for (const table of [owners, ends]) for (const key of [...table.keys({})]) table.remove(key)
      for (const { value } of [...leases.span({})]) {
        const lease = decoded<Lease>(value)
        if (lease !== undefined) this.#enlist(lease)
      }
    })
  }

  #enlist(lease: Lease): void {
    this.#leases.owners.put(ownerKey(lease), present)
    if (lease.endMs !== 0) this.#leases.ends.put(endKey(lease), present)
  }

  #unlist(lease: Lease): void {
    this.#leases.owners.remove(ownerKey(lease))
    if (lease.endMs !== 0) this.#leases.ends.remove(endKey(lease))
  }

  #known(nonce: string): LeaseDone | NoSale | undefined {
    return decoded<LeaseDone | NoSale>(this.#leases.done.get(Buffer.from(nonce)))
  }

  /** Kept, too: what was refused is refunded, so it must not be carried out when the order is repeated. */
  async #refuse(nonce: string, refused: NoSale): Promise<NoSale> {
    const { environment, done } = this.#leases
    environment.write(() => done.put(Buffer.from(nonce), encoded(refused)))
    await environment.flushed()
    return refused
  }

  #factsOf(antId: string, undername: string): RecordFacts {
    return decoded<RecordFacts>(this.#leases.facts.get(factsKey(antId, undername))) ?? {}
  }

  /** `facts`: of one record, as they are from now on. */
  #write(nonce: string, lease: Lease, facts?: readonly [undername: string, RecordFacts]): LeaseDone {
    const { name, antId } = lease
    const messageId = createHash('sha256').update(`message\n${nonce}`).digest('base64url')
    const done: LeaseDone = { messageId, antId }
    this.#leases.environment.write(() => {
      const before = this.find(name)
      if (before !== undefined) this.#unlist(before)
      this.#enlist(lease)
      this.#leases.leases.put(Buffer.from(name), encoded(lease))
      this.#leases.holders.put(Buffer.from(antId), Buffer.from(name))
      this.#leases.done.put(Buffer.from(nonce), encoded(done))
      if (facts === undefined) return
      const [undername, recordFacts] = facts
      const key = factsKey(antId, undername)
      if (Object.keys(recordFacts).length > 0) this.#leases.facts.put(key, encoded(recordFacts))
      else this.#leases.facts.remove(key)
    })
    return done
  }

  /** The operator has set the name, or undernames of it. */
  #isListed(base: string): boolean {
    return this.#records.under(base, '', 1).length > 0
  }

  #nextIndex(lease: Lease, name: Name): number {
    if (name.record === '@') return 0
    const taken = this.#records.under(lease.name).map((one) => this.#records.get(one)?.recordIndex ?? 0)
    return Math.max(0, ...taken) + 1
  }

  /** Every record of a name has the number of undernames that are paid for. */
  #relimit({ name, undernameLimit }: Lease): void {
    const records = this.#records.under(name).flatMap((one): (readonly [Name, NameRecord])[] => {
      const record = this.#records.get(one)
      return record === undefined ? [] : [[one, { ...record, undernameLimit }]]
    })
    if (records.length > 0) this.#records.set(records)
  }
}

function recordOf(
  { antId, undernameLimit }: Lease,
  id: NameRecord['id'],
  recordIndex: number,
  ttlSeconds: number,
): NameRecord {
  return { id, ttlSeconds, antId, undernameLimit, recordIndex }
}

function factsKey(antId: string, undername: string): Buffer {
  return Buffer.from(`${antId}\n${undername}`)
}

/** All keys of facts of one holder. */
function factsSpan(antId: string): KeyRange {
  return { start: factsKey(antId, ''), end: Buffer.from(`${antId}\v`) }
}

function encoded(value: object): Buffer {
  return Buffer.from(JSON.stringify(value))
}

function decoded<Value>(bytes: Uint8Array | undefined): Value | undefined {
  return bytes === undefined ? undefined : (JSON.parse(Buffer.from(bytes).toString()) as Value)
}
