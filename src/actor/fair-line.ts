import { partiesOf } from '../format/ip.js'

/** Why there is no room: `client`: the client's share is used up; `all`: everything is taken. */
export type Full = 'client' | 'all'

/** Somebody has to have so many jobs more than another that one of the jobs makes room for one of the other's. */
const lead = 2

/** What is compared with its siblings: a provider, a network of it, a client in that. */
class Share {
  waiting = 0
  /** Taken and not yet over. */
  open = 0
  /** The usage of the member that was served last. */
  stand = 0
  readonly members = new Map<string, Share>()

  /** `used`: what it has used of the shared resource, in the unit of `charge`. */
  constructor(
    readonly name: string,
    readonly parent: Share | undefined,
    public used: number,
  ) {}

  /** Itself, and what it is a member of, without the root. */
  *path(): Generator<Share> {
    for (let share: Share = this; share.parent !== undefined; share = share.parent) yield share
  }
}

class Client<Job> extends Share {
  readonly jobs: Job[] = []
}

/**
 * A fair queue: jobs of many clients that wait for a scarce resource. The next job is from the client that has used
 * least, so a client with few jobs does not wait behind all the jobs of another. A client that returns starts with
 * the usage of the client that was served last, so that nobody can save up turns by being idle. The number of jobs is
 * bounded, in all and for each client; where the line is full, the client that has most waiting gives up its last job for
 * one of a client that has fewer.
 *
 * Clients are named by their addresses. One person can have thousands of them: so first providers (IPv4 /16, IPv6 /32) are
 * compared by all of this, then the networks of one (/24, /48), then the clients of one.
 */
export class FairLine<Job> {
  readonly #clients = new Map<string, Client<Job>>()
  readonly #root = new Share('', undefined, 0)
  #size = 0

  /** `onDropped` hears of jobs that had to make room; absent: none has to. */
  constructor(
    private readonly max: number,
    private readonly clientMax: number,
    private readonly onDropped?: (job: Job) => void,
  ) {}

  /** Jobs that wait or are open. */
  get size(): number {
    return this.#size
  }

  /** Why one more job of this client would be refused; undefined: it would not. */
  full(client: string): Full | undefined {
    const known = this.#clients.get(client)
    if (known !== undefined && known.waiting + known.open >= this.clientMax) return 'client'
    return this.#size >= this.max ? 'all' : undefined
  }

  /** Adds a job. Returns why there is no room for it, or undefined. */
  add(client: string, job: Job): Full | undefined {
    const full = this.full(client)
    if (full === 'client' || (full === 'all' && !this.#makeRoom(client))) return full
    const known = this.#come(client)
    known.jobs.push(job)
    for (const share of known.path()) share.waiting += 1
    return undefined
  }

  /** Whether one more job of this client would find room, or another's would make room for it. */
  hasRoom(client: string): boolean {
    const full = this.full(client)
    return full === undefined || (full === 'all' && this.#greedyFor(client) !== undefined)
  }

  #makeRoom(client: string): boolean {
    const greedy = this.#greedyFor(client)
    return greedy !== undefined && this.onDropped !== undefined && this.#drop(greedy, this.onDropped)
  }

  /** The widest party that has so much more waiting than this client's that a job of it makes room. */
  #greedyFor(client: string): Share | undefined {
    if (this.onDropped === undefined) return undefined
    let among: Share | undefined = this.#root
    for (const name of partiesOf(client)) {
      const own: Share | undefined = among?.members.get(name)
      const few = own === undefined ? 0 : own.waiting + own.open
      const greedy = among && mostWaiting(among, few + lead)
      if (greedy !== undefined) return greedy
      among = own
    }
    return undefined
  }

  /** Drops the last job of who has most in there. */
  #drop(greedy: Share, onDropped: (job: Job) => void): boolean {
    let found = greedy
    for (let next = mostWaiting(found, 1); next !== undefined; next = mostWaiting(found, 1)) found = next
    const known = this.#clients.get(found.name)
    const job = known?.jobs.pop()
    if (known === undefined || job === undefined) return false
    for (const share of known.path()) share.waiting -= 1
    this.#leave(known)
    onDropped(job)
    return true
  }

  /**
   * Counts a job of this client that runs without having waited, even beyond the bounds. The caller must call `over`
   * for it.
   */
  open(client: string): void {
    for (const share of this.#come(client).path()) share.open += 1
  }

  /** Takes the next job; the caller must call `over` for it. */
  take(): { readonly client: string; readonly job: Job } | undefined {
    let found = this.#root
    for (let next = leastUsed(found); next !== undefined; next = leastUsed(found)) {
      found.stand = next.used
      found = next
    }
    const known = this.#clients.get(found.name)
    const job = known?.jobs.shift()
    if (known === undefined || job === undefined) return undefined
    for (const share of known.path()) {
      share.waiting -= 1
      share.open += 1
    }
    return { client: known.name, job }
  }

  /** Removes a job that waits. False: it does not wait. */
  remove(client: string, job: Job): boolean {
    const known = this.#clients.get(client)
    const at = known?.jobs.indexOf(job) ?? -1
    if (known === undefined || at < 0) return false
    known.jobs.splice(at, 1)
    for (const share of known.path()) share.waiting -= 1
    this.#leave(known)
    return true
  }

  /** Adds to the usage of this client. */
  charge(client: string, used: number): void {
    for (const share of this.#clients.get(client)?.path() ?? []) share.used += used
  }

  /** A job that was taken is over. */
  over(client: string): void {
    const known = this.#clients.get(client)
    if (known === undefined) return
    for (const share of known.path()) share.open -= 1
    this.#leave(known)
  }

  /** Counts one more job of this client. Who comes without jobs starts with the usage of the one that was served last. */
  #come(client: string): Client<Job> {
    this.#size += 1
    let known = this.#clients.get(client)
    if (known === undefined) {
      const [providerName, networkName] = partiesOf(client)
      const network = memberOf(memberOf(this.#root, providerName), networkName)
      known = new Client<Job>(client, network, network.stand)
      network.members.set(client, known)
      this.#clients.set(client, known)
    }
    for (const share of known.path())
      if (share.waiting === 0) share.used = Math.max(share.used, share.parent?.stand ?? 0)
    return known
  }

  #leave(known: Client<Job>): void {
    this.#size -= 1
    if (known.open === 0 && known.waiting === 0) this.#clients.delete(known.name)
    for (const { open, waiting, parent, name } of known.path())
      if (open === 0 && waiting === 0) parent?.members.delete(name)
  }
}

function memberOf(share: Share, name: string): Share {
  const known = share.members.get(name)
  if (known !== undefined) return known
  const made = new Share(name, share, share.stand)
  share.members.set(name, made)
  return made
}

/** Of the members with a job that waits the one that has used least. */
function leastUsed({ members }: Share): Share | undefined {
  let found: Share | undefined
  for (const one of members.values())
    if (one.waiting > 0 && (found === undefined || one.used < found.used)) found = one
  return found
}

/** Of the members the one with most jobs that wait, of at least so many. */
function mostWaiting({ members }: Share, least: number): Share | undefined {
  let found: Share | undefined
  for (const one of members.values())
    if (one.waiting >= least && one.waiting > (found?.waiting ?? 0)) found = one
  return found
}
