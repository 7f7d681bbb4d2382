import type { Refusal } from '../../format/refusal.js'
import type { ChangeAction, ChangeWish, Holding } from '../../names/change.js'
import { isNoSale, type Lease, type LeaseWish, leasePrice, type NoSale } from '../../names/lease.js'
import { type LeaseDone, type LeaseRecord, LeaseRegistry } from '../../names/lease-registry.js'

export interface HeldName {
  readonly lease: Lease
  readonly records: readonly LeaseRecord[]
}

/** Where names are bought: a registry of the network, or the list of this machine. Nothing here rejects but for bugs. */
export interface NameRegistry {
  readonly label: string
  /** In millionths of ARIO. `NoSale`: why it cannot be had. */
  price(wish: LeaseWish): Promise<{ readonly mario: bigint } | NoSale | Refusal>
  /** Carries out what was paid, once for a nonce. After a refusal the outcome is unknown: the call is to be repeated. */
  sell(nonce: string, owner: string, wish: LeaseWish): Promise<LeaseDone | NoSale | Refusal>
  /** Changes a name or a record of it, once for a nonce. `by`: the address that requested it. */
  change(
    nonce: string,
    by: string,
    action: ChangeAction,
    wish: ChangeWish,
  ): Promise<LeaseDone | NoSale | Refusal>
  /** Who may change records; undefined: nobody holds them. */
  holding(antId: string, undername: string): Promise<Holding | undefined | Refusal>
  /** A name with records of it behind the full name `after`, so many at most; undefined: nobody holds it. */
  held(antId: string, after: string, limit: number): Promise<HeldName | undefined | Refusal>
  /** Names of an owner, in their order, behind `after`; so many at most. */
  owned(owner: string, after: string, limit: number): Promise<readonly Lease[] | Refusal>
  /** Called now and then, for what has ended at a time (`ConfirmedTime.now`). */
  tend(atMs: number): Promise<void>
  close(): Promise<void>
}

/** The list of this machine: what is bought is served by the gateway within a second. For devnet. */
export class LocalNameRegistry implements NameRegistry {
  readonly label = 'local'
  readonly #leases: LeaseRegistry

  constructor(...given: ConstructorParameters<typeof LeaseRegistry>) {
    this.#leases = new LeaseRegistry(...given)
  }

  async price(wish: LeaseWish): Promise<{ readonly mario: bigint } | NoSale> {
    const after = this.#leases.after(wish, '', '')
    return isNoSale(after) ? after : { mario: leasePrice(wish) }
  }

  sell(nonce: string, owner: string, wish: LeaseWish): Promise<LeaseDone | NoSale> {
    return this.#leases.sell(nonce, owner, wish)
  }

  change(nonce: string, by: string, action: ChangeAction, wish: ChangeWish): Promise<LeaseDone | NoSale> {
    return this.#leases.change(nonce, by, action, wish)
  }

  async holding(antId: string, undername: string): Promise<Holding | undefined> {
    return this.#leases.holding(antId, undername)
  }

  async held(antId: string, after: string, limit: number): Promise<HeldName | undefined> {
    const lease = this.#leases.heldBy(antId)
    return lease && { lease, records: this.#leases.recordsOf(lease, after, limit) }
  }

  async owned(owner: string, after: string, limit: number): Promise<readonly Lease[]> {
    return [...this.#leases.ownedBy(owner, after, limit)]
  }

  async tend(atMs: number): Promise<void> {
    this.#leases.expire(atMs)
  }

  close(): Promise<void> {
    return this.#leases.close()
  }
}
