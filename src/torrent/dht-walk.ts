import { sourceOf } from './address-source.js'
import { addressBytes, isNearAddress, type PeerAddress } from './compact-peers.js'
import type { DhtContact } from './krpc.js'

interface Candidate {
  readonly contact: DhtContact
  state: 'new' | 'queried' | 'answered'
  token: Buffer | undefined
}

/** Nodes that store the announces of a torrent: those nearest to its infohash. */
export const nearestCount = 8
/** Candidates kept in one lookup; the ones farthest from the infohash are dropped. */
const candidatesMax = 128
/** Ports below are those of other services: to send to them on the word of a node could be an attack on somebody else. */
const portMin = 1024
/** Queries in one lookup. In a table of millions of nodes a lookup takes some 40. */
const queriesMax = 120

/**
 * One iterative lookup of an infohash: which node to query next, given the answers so far. The number of queries is
 * bounded, so false answers cannot make it run on.
 */
export class Walk {
  /** Nearest first. */
  #candidates: Candidate[] = []
  readonly #seen = new Set<string>()
  #queries = 0

  constructor(
    private readonly target: Buffer,
    private readonly ownId: Buffer,
    /** True: nodes may be in networks of our own, and several at one address. */
    private readonly isNear: boolean,
  ) {}

  /** Nodes that an answer named; of one address only the first. */
  add(contacts: readonly DhtContact[]): void {
    for (const contact of contacts) {
      const key = this.isNear ? addressKey(contact) : sourceOf(contact.host)
      if (this.#seen.has(key) || contact.id.equals(this.ownId)) continue
      if (!this.isNear && (isNearAddress(contact.host) || contact.port < portMin)) continue
      this.#seen.add(key)
      this.#candidates.push({ contact, state: 'new', token: undefined })
    }
    this.#candidates.sort((one, other) => compare(this.target, one.contact.id, other.contact.id))
    this.#candidates.splice(candidatesMax)
  }

  /** The node to query next; undefined where none is left, or none until another answer comes. */
  next(): DhtContact | undefined {
    if (this.#queries >= queriesMax) return undefined
    const found = this.#candidates.slice(0, nearestCount).find(({ state }) => state === 'new')
    if (found === undefined) return undefined
    found.state = 'queried'
    this.#queries += 1
    return found.contact
  }

  /** The node answered, and may have given a token. */
  answered(contact: DhtContact, token: Buffer | undefined): void {
    const found = this.#candidates.find((candidate) => candidate.contact === contact)
    if (found === undefined) return
    found.state = 'answered'
    found.token = token
  }

  /** It did not answer in time, or not by the protocol. */
  silent(contact: DhtContact): void {
    this.#candidates = this.#candidates.filter((candidate) => candidate.contact !== contact)
  }

  /** Those that answered, nearest first, with their tokens. */
  nearest(): readonly { readonly contact: DhtContact; readonly token: Buffer }[] {
    const found = this.#candidates.flatMap(({ contact, state, token }) => {
      return state === 'answered' && token !== undefined ? [{ contact, token }] : []
    })
    return found.slice(0, nearestCount)
  }
}

/** The nodes that are nearest to an id. */
export function nearestTo(target: Buffer, contacts: Iterable<DhtContact>, count: number): DhtContact[] {
  const sorted = [...contacts].sort((one, other) => compare(target, one.id, other.id))
  return sorted.slice(0, count)
}

/** Which of two ids is nearer to a third: negative, the first. */
function compare(target: Buffer, one: Buffer, other: Buffer): number {
  for (let at = 0; at < target.length; at += 1) {
    const difference = (one[at]! ^ target[at]!) - (other[at]! ^ target[at]!)
    if (difference !== 0) return difference
  }
  return 0
}

/** One text for each address, however it is spelt. */
export function addressKey({ host, port }: PeerAddress): string {
  return `${addressBytes(host)?.toString('hex')} ${port}`
}
