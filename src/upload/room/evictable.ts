import { networkOfAddress } from '../../format/ip.js'
import { Ranked, rankOfBytes } from './ranked.js'

/** A holder of places and bytes that can be made to release them. */
export interface Evictable {
  /** Address range of who holds it; undefined: this machine itself. */
  readonly client: string | undefined
  /** Places for open uploads: 1, or 0 where it takes none. */
  readonly places: number
  /** Bytes on disk, with what each file takes besides. */
  readonly weight: number
}

/** Who goes first, and the weights that its network and its address hold. */
export interface Victim<One> {
  readonly one: One
  readonly network: string
  readonly networkWeight: number
  readonly addressWeight: number
}

class AddressShare<One> {
  places = 0
  weight = 0
  /** The emptiest is the lowest. */
  readonly byWeight = new Ranked<One>()
  /** Those that hold bytes; the one that has not grown for the longest time is first. */
  readonly stale = new Set<One>()

  constructor(readonly network: NetworkShare<One>) {}
}

class NetworkShare<One> {
  places = 0
  weight = 0
  readonly byPlaces = new Ranked<AddressShare<One>>()
  readonly byWeight = new Ranked<AddressShare<One>>()

  constructor(readonly name: string) {}
}

/**
 * Finds the holder to evict, in constant time: of the network that holds most, and there of the address that holds most. So a
 * client with many addresses or networks loses its own room first.
 */
export class EvictionOrder<One extends Evictable> {
  readonly #networks = new Map<string, NetworkShare<One>>()
  readonly #addresses = new Map<string, AddressShare<One>>()
  readonly #byPlaces = new Ranked<NetworkShare<One>>()
  readonly #byWeight = new Ranked<NetworkShare<One>>()
  /** What was counted for each. */
  readonly #counted = new Map<One, Pick<Evictable, 'places' | 'weight'>>()

  /** Counts it, or what has changed of it since. */
  put(one: One): void {
    const { client, places, weight } = one
    const before = this.#counted.get(one) ?? { places: 0, weight: 0 }
    const address = this.#addressOf(client)
    this.#counted.set(one, { places, weight })
    address.byWeight.set(one, rankOfBytes(weight))
    if (weight !== before.weight) address.stale.delete(one)
    if (weight > 0) address.stale.add(one)
    this.#change(client, address, places - before.places, weight - before.weight)
  }

  remove(one: One): void {
    const before = this.#counted.get(one)
    if (before === undefined) return
    this.#counted.delete(one)
    const address = this.#addressOf(one.client)
    address.byWeight.delete(one)
    address.stale.delete(one)
    this.#change(one.client, address, -before.places, -before.weight)
  }

  /** What this network and this address hold that could be given up. */
  weightsOf(client = ''): Pick<Victim<One>, 'networkWeight' | 'addressWeight'> {
    const networkWeight = this.#networks.get(networkOfAddress(client))?.weight ?? 0
    return { networkWeight, addressWeight: this.#addresses.get(client)?.weight ?? 0 }
  }

  /** The emptiest and oldest of who has most places (of several, who holds least). Undefined: nobody can give one up. */
  forPlace(): Victim<One> | undefined {
    const address = this.#byPlaces.highest?.byPlaces.highest
    return victim(address, address?.byWeight.lowest)
  }

  /** Of who holds most bytes the one that has not grown for the longest time. Undefined: nobody can give any up. */
  forBytes(): Victim<One> | undefined {
    const address = this.#byWeight.highest?.byWeight.highest
    const [first] = address?.stale ?? []
    return victim(address, first)
  }

  #addressOf(client = ''): AddressShare<One> {
    const known = this.#addresses.get(client)
    if (known !== undefined) return known
    const name = networkOfAddress(client)
    const network = this.#networks.get(name) ?? new NetworkShare<One>(name)
    const made = new AddressShare<One>(network)
    this.#networks.set(name, network)
    this.#addresses.set(client, made)
    return made
  }

  #change(client = '', address: AddressShare<One>, places: number, weight: number): void {
    const { network } = address
    for (const share of [address, network]) {
      share.places += places
      share.weight += weight
    }
    const [addressRank, networkRank] = [rankOfBytes(address.weight), rankOfBytes(network.weight)]
    rank(network.byPlaces, address, address.places, addressRank)
    rank(network.byWeight, address, addressRank)
    rank(this.#byPlaces, network, network.places, networkRank)
    rank(this.#byWeight, network, networkRank)
    if (isNothing(address)) this.#addresses.delete(client)
    if (isNothing(network)) this.#networks.delete(network.name)
  }
}

/** Who holds nothing of it has no rank. */
function rank<Member>(ranked: Ranked<Member>, member: Member, value: number, second = 0): void {
  if (value > 0) ranked.set(member, value, second)
  else ranked.delete(member)
}

function isNothing({ places, weight }: Pick<Evictable, 'places' | 'weight'>): boolean {
  return places === 0 && weight === 0
}

function victim<One>(address: AddressShare<One> | undefined, one: One | undefined): Victim<One> | undefined {
  if (address === undefined || one === undefined) return undefined
  const { network, weight: addressWeight } = address
  return { one, network: network.name, networkWeight: network.weight, addressWeight }
}
