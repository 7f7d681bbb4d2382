import { partiesOf } from '../format/ip.js'

/** Why there is no room: `client`: the client's share is used up; `all`: everything is taken. */
export type Full = 'client' | 'all'

/** How many jobs of a party are taken and not yet over. */
export interface LineParty {
  readonly level: 'provider' | 'network' | 'client'
  /** Its address, or the first of it. */
  readonly name: string
  readonly open: number
}

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
    readonly level: LineParty['level'],
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
  readonly #root = new Share('', undefined, 0, 'provider')
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

  /** The parties of a client that hold something, and what they hold. */
  *partiesIn(client: string): Generator<LineParty> {
    let share: Share | undefined = this.#root
    for (const name of partiesOf(client)) {
      share = share?.members.get(name)
      if (share === undefined) return
      yield share
    }
  }

  /** Takes the next job; the caller must call `over` for it. Jobs of a party that is `full` are passed over. */
  take(
    full: (party: LineParty) => boolean = noneFull,
  ): { readonly client: string; readonly job: Job } | undefined {
    const found = nextIn(this.#root, full)
    const known = found && this.#clients.get(found.name)
    const job = known?.jobs.shift()
    if (known === undefined || job === undefined) return undefined
    for (const share of known.path()) {
      if (share.parent !== undefined) share.parent.stand = Math.max(share.parent.stand, share.used)
      share.waiting -= 1
      share.open += 1
    }
    return { client: known.name, job }
  }

  /**
   * A job that was taken waits once more, before the others of its client: it is counted already, so there is room for it. It is
   * not open any more until it is taken again.
   */
  again(client: string, job: Job): void {
    const known = this.#clients.get(client)
    if (known === undefined || known.open === 0) throw new Error('only a job that was taken waits once more')
    known.jobs.unshift(job)
    for (const share of known.path()) {
      // As who comes: what was not used while the job was open is not saved up.
      if (share.waiting === 0) share.used = Math.max(share.used, share.parent?.stand ?? 0)
      share.open -= 1
      share.waiting += 1
    }
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
      const provider = memberOf(this.#root, providerName, 'provider')
      const network = memberOf(provider, networkName, 'network')
      known = new Client<Job>(client, network, network.stand, 'client')
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

function memberOf(share: Share, name: string, level: LineParty['level']): Share {
  const known = share.members.get(name)
  if (known !== undefined) return known
  const made = new Share(name, share, share.stand, level)
  share.members.set(name, made)
  return made
}

function noneFull(): boolean {
  return false
}

/** The client in there with a job that waits that is to be served next: by usage, without those that are full. */
function nextIn(share: Share, full: (party: LineParty) => boolean): Share | undefined {
  for (const member of byUsage(share)) {
    if (full(member)) continue
    const found = member.level === 'client' ? member : nextIn(member, full)
    if (found !== undefined) return found
  }
  return undefined
}

/** The members with jobs that wait, the one that has used least first. */
function* byUsage({ members }: Share): Generator<Share> {
  let first: Share | undefined
  for (const one of members.values())
    if (one.waiting > 0 && (first === undefined || one.used < first.used)) first = one
  if (first === undefined) return
  yield first
  // Most callers want the first alone, so the others are sorted only here.
  const others = [...members.values()].filter((one) => one.waiting > 0 && one !== first)
  yield* others.sort((one, other) => one.used - other.used)
}

/** The member with most jobs that wait, if it has at least `least`. */
function mostWaiting({ members }: Share, least: number): Share | undefined {
  let found: Share | undefined
  for (const one of members.values())
    if (one.waiting >= least && one.waiting > (found?.waiting ?? 0)) found = one
  return found
}
