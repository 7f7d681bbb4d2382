import type { Refusal } from '../format/refusal.js'
import {
  isNoSale,
  type Lease,
  type LeaseWish,
  leasePrice,
  type NoSale,
  type RecordWish,
} from '../names/lease.js'
import { type LeaseDone, LeaseRegistry } from '../names/lease-registry.js'

/** Where names are bought: a registry of the network, or the list of this machine. Nothing here rejects but for bugs. */
export interface NameRegistry {
  readonly label: string
  /** In millionths of ARIO. `NoSale`: why it cannot be had. */
  price(wish: LeaseWish): Promise<{ readonly mario: bigint } | NoSale | Refusal>
  /** Carries out what was paid, once for a nonce. A refusal says that it is not known whether it happened: ask again. */
  sell(nonce: string, owner: string, wish: LeaseWish): Promise<LeaseDone | NoSale | Refusal>
  /** Changes where a name points, once for a nonce. */
  point(nonce: string, wish: RecordWish): Promise<LeaseDone | NoSale | Refusal>
  /** Who holds records; undefined: nobody. */
  holder(antId: string): Promise<Pick<Lease, 'owner' | 'name'> | undefined | Refusal>
  owned(owner: string): Promise<readonly Lease[] | Refusal>
  /** Called now and then, for what ends with time. */
  tend(): Promise<void>
  close(): Promise<void>
}

/** The list of this machine: what is bought is served by the gateway within a second. For devnet. */
export class LocalNameRegistry implements NameRegistry {
  readonly label = 'local'
  readonly #leases: LeaseRegistry

  constructor(paths: ConstructorParameters<typeof LeaseRegistry>[0], now: () => number) {
    this.#leases = new LeaseRegistry(paths, now)
  }

  async price(wish: LeaseWish): Promise<{ readonly mario: bigint } | NoSale> {
    const after = this.#leases.after(wish, '', '')
    return isNoSale(after) ? after : { mario: leasePrice(wish) }
  }

  sell(nonce: string, owner: string, wish: LeaseWish): Promise<LeaseDone | NoSale> {
    return this.#leases.sell(nonce, owner, wish)
  }

  point(nonce: string, wish: RecordWish): Promise<LeaseDone | NoSale> {
    return this.#leases.point(nonce, wish)
  }

  async holder(antId: string): Promise<Pick<Lease, 'owner' | 'name'> | undefined> {
    return this.#leases.heldBy(antId)
  }

  async owned(owner: string): Promise<readonly Lease[]> {
    return [...this.#leases.ownedBy(owner)]
  }

  async tend(): Promise<void> {
    this.#leases.expire()
  }

  close(): Promise<void> {
    return this.#leases.close()
  }
}
