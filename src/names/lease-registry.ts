import { createHash } from 'node:crypto'
import { parseId } from '../format/id.js'
import { type Environment, openEnvironment, type Table } from '../store/lmdb.js'
import {
  isHeld,
  isNoSale,
  type Lease,
  type LeaseWish,
  leaseAfter,
  type NoSale,
  type RecordWish,
} from './lease.js'
import { LocalRegistry } from './local-registry.js'
import { parseName } from './name.js'
import type { Name, NameRecord } from './protocol.js'

/** What was carried out under a nonce. */
export interface LeaseDone {
  /** Names the change: what others call the id of the message, or of the transaction. */
  readonly messageId: string
  readonly antId: string
}

interface Leases {
  readonly environment: Environment
  /** Base name to its lease, as JSON. */
  readonly leases: Table
  /** Ids of holders of records, to their names. */
  readonly holders: Table
  /** Nonces to what was carried out under them. */
  readonly done: Table
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
    const environment = openEnvironment(paths.leases, 3)
    this.#leases = {
      environment,
      leases: environment.table('leases'),
      holders: environment.table('holders'),
      done: environment.table('done'),
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

  /** Sells, once for a nonce: again, it says what it said the first time. */
  async sell(nonce: string, owner: string, wish: LeaseWish): Promise<LeaseDone | NoSale> {
    const known = this.#known(nonce)
    const lease = known === undefined ? this.after(wish, owner, nonce) : this.find(wish.name)
    if (lease === undefined || isNoSale(lease)) return known ?? lease ?? { noSale: 'The name is gone' }
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

  /** Sets or removes a record, once for a nonce. */
  async point(
    nonce: string,
    { antId, undername, target, ttlSeconds }: RecordWish,
  ): Promise<LeaseDone | NoSale> {
    const lease = this.heldBy(antId)
    if (lease === undefined || !isHeld(lease, this.now())) return { noSale: 'No name is held by this antId' }
    const name = parseName(undername === '@' ? lease.name : `${undername}_${lease.name}`)
    if (name?.basename !== lease.name) return { noSale: `Invalid undername: '${undername}'` }
    const known = this.#known(nonce)
    if (known !== undefined) return known
    if (target === undefined) {
      if (!this.#records.remove(name)) return { noSale: `There is no record '${undername}'` }
    } else {
      const index = this.#records.get(name)?.recordIndex ?? this.#nextIndex(lease, name)
      if (index > lease.undernameLimit)
        return { noSale: `The name has ${lease.undernameLimit} undernames at most` }
      this.#records.set([[name, recordOf(lease, target, index, ttlSeconds ?? usualTtlSeconds)]])
    }
    const done = this.#write(nonce, lease)
    await this.#leases.environment.flushed()
    return done
  }

  /** Takes the records of leases that are over off the list. Resolves with how many leases that were. */
  expire(): number {
    const over = [...this.#leases.leases.span({})].flatMap(({ value }) => decoded<Lease>(value) ?? [])
    const ended = over.filter((lease) => !isHeld(lease, this.now()))
    for (const { name, antId } of ended) {
      for (const one of this.#namesOf(name)) this.#records.remove(one)
      this.#leases.environment.write(() => {
        this.#leases.leases.remove(Buffer.from(name))
        this.#leases.holders.remove(Buffer.from(antId))
      })
    }
    return ended.length
  }

  async close(): Promise<void> {
    await this.#leases.environment.close()
    await this.#records.close()
  }

  #known(nonce: string): LeaseDone | undefined {
    return decoded<LeaseDone>(this.#leases.done.get(Buffer.from(nonce)))
  }

  #write(nonce: string, lease: Lease): LeaseDone {
    const { name, antId } = lease
    const messageId = createHash('sha256').update(`message\n${nonce}`).digest('base64url')
    const done: LeaseDone = { messageId, antId }
    this.#leases.environment.write(() => {
      this.#leases.leases.put(Buffer.from(name), encoded(lease))
      this.#leases.holders.put(Buffer.from(antId), Buffer.from(name))
      this.#leases.done.put(Buffer.from(nonce), encoded(done))
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

function encoded(value: object): Buffer {
  return Buffer.from(JSON.stringify(value))
}

function decoded<Value>(bytes: Uint8Array | undefined): Value | undefined {
  return bytes === undefined ? undefined : (JSON.parse(Buffer.from(bytes).toString()) as Value)
}
