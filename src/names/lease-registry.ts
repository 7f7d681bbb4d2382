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
import { isHeld, isNoSale, type Lease, type LeaseWish, leaseAfter, type NoSale } from './lease.js'
import { LocalRegistry } from './local-registry.js'
import { parseName } from './name.js'
import type { Name, NameRecord } from './protocol.js'

/** What was carried out under a nonce. */
export interface LeaseDone {
  /** Names the change: what others call the id of the message, or of the transaction. */
  readonly messageId: string
  readonly antId: string
}

/** A record of a name that somebody holds. */
export interface LeaseRecord extends RecordFacts {
  readonly undername: string
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
}

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
  ) {
    const environment = openEnvironment(paths.leases, 4)
    this.#leases = {
      environment,
      leases: environment.table('leases'),
      holders: environment.table('holders'),
      done: environment.table('done'),
      facts: environment.table('facts'),
    }
    this.#records = new LocalRegistry(paths.list)
  }

  find(name: string): Lease | undefined {
    return decoded<Lease>(this.#leases.leases.get(Buffer.from(name)))
  }

  /** The lease whose records `antId` holds. */
  heldBy(antId: string): Lease | undefined {
    const found = this.#leases.holders.get(Buffer.from(antId))
    return found === undefined ? undefined : this.find(Buffer.from(found).toString())
  }

  *ownedBy(owner: string): Iterable<Lease> {
    for (const { value } of this.#leases.leases.span({})) {
      const lease = decoded<Lease>(value)
      if (lease?.owner === owner && isHeld(lease, this.now())) yield lease
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

  /** All records of a name that somebody holds. */
  recordsOf({ name, antId }: Lease): LeaseRecord[] {
    return this.#namesOf(name).flatMap((one) => {
      const found = this.#records.get(one)
      if (found === undefined) return []
      const { id, ttlSeconds } = found
      return [{ undername: one.record, id, ttlSeconds, ...this.#factsOf(antId, one.record) }]
    })
  }

  /** Sells, once for a nonce: again, it says what it said the first time. */
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

  /** Changes a name or a record of it, once for a nonce: again, it says what it said the first time. `by`: who has asked. */
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
    // It may have changed hands since it was asked for.
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

  /** Takes the records of leases that are over off the list. Resolves with how many leases that were. */
  expire(): number {
    const over = [...this.#leases.leases.span({})].flatMap(({ value }) => decoded<Lease>(value) ?? [])
    const ended = over.filter((lease) => !isHeld(lease, this.now()))
    for (const { name, antId } of ended) {
      for (const one of this.#namesOf(name)) this.#records.remove(one)
      const facts = [...this.#leases.facts.keys(factsSpan(antId))]
      this.#leases.environment.write(() => {
        this.#leases.leases.remove(Buffer.from(name))
        this.#leases.holders.remove(Buffer.from(antId))
        for (const key of facts) this.#leases.facts.remove(key)
      })
    }
    return ended.length
  }

  async close(): Promise<void> {
    await this.#leases.environment.close()
    await this.#records.close()
  }

  #known(nonce: string): LeaseDone | NoSale | undefined {
    return decoded<LeaseDone | NoSale>(this.#leases.done.get(Buffer.from(nonce)))
  }

  /** Kept, too: what was refused is refunded, so it must not be carried out when it is asked for again. */
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
      this.#leases.leases.put(Buffer.from(name), encoded(lease))
      this.#leases.holders.put(Buffer.from(antId), Buffer.from(name))
      this.#leases.done.put(Buffer.from(nonce), encoded(done))
      if (facts === undefined) return
      const [undername, said] = facts
      const key = factsKey(antId, undername)
      if (Object.keys(said).length > 0) this.#leases.facts.put(key, encoded(said))
      else this.#leases.facts.remove(key)
    })
    return done
  }

  /** The operator has set the name, or undernames of it. */
  #isListed(base: string): boolean {
    return this.#namesOf(base).length > 0
  }

  #namesOf(base: string): Name[] {
    const all = [...this.#records.list()].flatMap(([full]) => parseName(full) ?? [])
    return all.filter(({ basename }) => basename === base)
  }

  #nextIndex(lease: Lease, name: Name): number {
    if (name.record === '@') return 0
    const taken = this.#namesOf(lease.name).map((one) => this.#records.get(one)?.recordIndex ?? 0)
    return Math.max(0, ...taken) + 1
  }

  /** Every record of a name says how many undernames are paid for. */
  #relimit({ name, undernameLimit }: Lease): void {
    const records = this.#namesOf(name).flatMap((one): (readonly [Name, NameRecord])[] => {
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
