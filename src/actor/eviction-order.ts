import { type Parties, partiesOf } from '../format/ip.js'
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

/** The address range is the last of a client's parties. */
const addressLevel = 2

/** What one party holds: of an address range its holders, else narrower parties. */
class Share<One> {
  places = 0
  weight = 0
  readonly byPlaces = new Ranked<Share<One>>()
  readonly byWeight = new Ranked<Share<One>>()
  /** The holders of an address range. The emptiest is the lowest. */
  readonly holders = new Ranked<One>()
  /** Holders with bytes; the one that has not grown for the longest time is first. */
  readonly stale = new Set<One>()

  constructor(
    readonly name: string,
    /** Undefined: it is all. */
    readonly within: Share<One> | undefined,
  ) {}
}

/**
 * Finds the holder to evict, in constant time: of the provider that holds most, there of the network that holds most, and
 * there of the address range that holds most. So a client with many addresses or networks loses its own room first.
 */
export class EvictionOrder<One extends Evictable> {
  readonly #all = new Share<One>('', undefined)
  /** Providers, networks and address ranges, by their names with the level in front. */
  readonly #shares = new Map<string, Share<One>>()
  /** What was counted for each. */
  readonly #counted = new Map<One, Pick<Evictable, 'places' | 'weight'>>()

  /** Counts it, or what has changed of it since. */
  put(one: One): void {
    const { client, places, weight } = one
    const before = this.#counted.get(one) ?? { places: 0, weight: 0 }
    const address = this.#addressOf(client)
    this.#counted.set(one, { places, weight })
    address.holders.set(one, rankOfBytes(weight))
    if (weight !== before.weight) address.stale.delete(one)
    if (weight > 0) address.stale.add(one)
    this.#change(address, places - before.places, weight - before.weight)
  }

  remove(one: One): void {
    const before = this.#counted.get(one)
    if (before === undefined) return
    this.#counted.delete(one)
    const address = this.#addressOf(one.client)
    address.holders.delete(one)
    address.stale.delete(one)
    this.#change(address, -before.places, -before.weight)
  }

  /**
   * What two clients hold that could be given up, of the widest parties in which they differ. Two addresses of one network are
   * compared by what each of them holds, two networks of one provider by what each network holds. Undefined: it is one client.
   */
  compared(one: Parties, other: Parties): readonly [weight: number, otherWeight: number] | undefined {
    const level = one.findIndex((name, at) => name !== other[at])
    if (level < 0) return undefined
    const weightOf = (parties: Parties): number =>
      this.#shares.get(keyOf(level, parties[level] ?? ''))?.weight ?? 0
    return [weightOf(one), weightOf(other)]
  }

  /**
   * Whose place a newcomer gets: the emptiest and oldest of who has most places (of several, who holds least), at the widest
   * level at which that is more than the newcomer has. Otherwise the newcomer's own. What holds bytes goes for another network
   * only where its own has as many places all the same then. `parties`: the newcomer's. `ownPlaces`: those at each level, with
   * those that cannot be given up. Undefined: nobody has to give one up.
   */
  forPlaceOf(parties: Parties, ownPlaces: readonly number[]): One | undefined {
    let share = this.#all
    for (const [level, name] of parties.entries()) {
      const most = byPlaces(share)
      const own = this.#shares.get(keyOf(level, name))
      if (most !== undefined && most !== own) {
        const victim = (narrowest(most, byPlaces) ?? most).holders.lowest
        const ahead = level < addressLevel && (victim?.weight ?? 0) > 0 ? 1 : 0
        if (most.places > (ownPlaces[level] ?? 0) + ahead) return victim
      }
      if (own === undefined) return undefined
      share = own
    }
    return share.holders.lowest
  }

  /** Who holds most bytes; of several, who has not grown for the longest time. Undefined: nobody can give any up. */
  forBytes(): One | undefined {
    const [first] = narrowest(this.#all, ({ byWeight }) => byWeight.highest)?.stale ?? []
    return first
  }

  #addressOf(client: string | undefined): Share<One> {
    let share = this.#all
    for (const [level, name] of partiesOf(client ?? '').entries()) {
      const key = keyOf(level, name)
      const known = this.#shares.get(key) ?? new Share<One>(key, share)
      this.#shares.set(key, known)
      share = known
    }
    return share
  }

  #change(address: Share<One>, places: number, weight: number): void {
    let share = address
    for (let within = share.within; within !== undefined; within = share.within) {
      share.places += places
      share.weight += weight
      const weightRank = rankOfBytes(share.weight)
      rank(within.byPlaces, share, share.places, weightRank)
      rank(within.byWeight, share, weightRank)
      if (share.places === 0 && share.weight === 0) this.#shares.delete(share.name)
      share = within
    }
  }
}

function keyOf(level: number, name: string): string {
  return `${level} ${name}`
}

function byPlaces<One>(share: Share<One>): Share<One> | undefined {
  return share.byPlaces.highest
}

/** The address range that is reached from the widest share on; undefined: nobody holds anything. */
function narrowest<One>(
  all: Share<One>,
  next: (share: Share<One>) => Share<One> | undefined,
): Share<One> | undefined {
  let found = next(all)
  for (let narrower = found && next(found); narrower !== undefined; narrower = next(narrower))
    found = narrower
  return found
}

/** Who holds nothing of it has no rank. */
function rank<Member>(ranked: Ranked<Member>, member: Member, value: number, second = 0): void {
  if (value > 0) ranked.set(member, value, second)
  else ranked.delete(member)
}
