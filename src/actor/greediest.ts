import { partiesOf } from '../format/ip.js'

/** How places, bytes or turns are compared that clients hold, one thing after another. */
export interface Holdings<T> {
  /** Address of the client that holds it. */
  clientOf(one: T): string
  /** How much it is; absent: each is one. */
  readonly weightOf?: (one: T) => number
  /** A party makes room where it holds more than this beyond what the newcomer's holds. */
  readonly lead: number
  /** 3: providers, then networks, then clients are compared; 2: no clients. */
  readonly levels: 2 | 3
  /** True: networks of the newcomer's own provider only, and clients of its network. False: all networks, all clients. */
  readonly isNested: boolean
  /** What can make room; a party without any of it is passed over. Absent: all. */
  readonly mayGo?: (one: T) => boolean
}

/**
 * What the party holds that makes room for a newcomer, in the order of `all`: the provider with most, where it holds more than
 * the newcomer's; else the network with most; else the client. So one person with a thousand addresses cannot keep others out.
 * Undefined: nobody holds so much more. For some thousands of things: all are counted each time.
 */
export function greediest<T>(
  all: Iterable<T>,
  newcomer: string,
  { clientOf, weightOf = () => 1, lead, levels, isNested, mayGo }: Holdings<T>,
): readonly T[] | undefined {
  let among = all
  for (const [level, own] of partiesOf(newcomer).slice(0, levels).entries()) {
    const groups = groupsOf(among, weightOf, (one) => partiesOf(clientOf(one))[level] ?? '')
    const able = [...groups.values()].filter(({ held }) => mayGo === undefined || held.some(mayGo))
    const most = largest(able)
    if (most !== undefined && most.weight > (groups.get(own)?.weight ?? 0) + lead) return most.held
    if (isNested) among = groups.get(own)?.held ?? []
  }
  return undefined
}

/** The things of the one client that holds most of these, in their order. */
export function ofOneClient<T>(
  all: Iterable<T>,
  { clientOf, weightOf = () => 1 }: Pick<Holdings<T>, 'clientOf' | 'weightOf'>,
): readonly T[] {
  return largest(groupsOf(all, weightOf, clientOf).values())?.held ?? []
}

interface Group<T> {
  weight: number
  readonly held: T[]
}

function groupsOf<T>(
  all: Iterable<T>,
  weightOf: (one: T) => number,
  nameOf: (one: T) => string,
): ReadonlyMap<string, Group<T>> {
  const groups = new Map<string, Group<T>>()
  for (const one of all) {
    const name = nameOf(one)
    const group = groups.get(name) ?? { weight: 0, held: [] }
    group.weight += weightOf(one)
    group.held.push(one)
    groups.set(name, group)
  }
  return groups
}

/** The first of the largest ones. */
function largest<T>(groups: Iterable<Group<T>>): Group<T> | undefined {
  let found: Group<T> | undefined
  for (const group of groups) if (found === undefined || group.weight > found.weight) found = group
  return found
}
