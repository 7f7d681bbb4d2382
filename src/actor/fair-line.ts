interface Client<Job> {
  readonly waiting: Job[]
  /** Taken and not yet over. */
  open: number
  /** What it has used of the shared resource, in the unit of `charge`; compared with other clients. */
  used: number
}

/** Why there is no room: `client`: the client's share is used up; `all`: everything is taken. */
export type Full = 'client' | 'all'

/** A client has to have so many jobs more than another that one of its jobs makes room for one of the other's. */
const lead = 2

/**
 * A fair queue: jobs of many clients that wait for a scarce resource. The next job is from the client that has used
 * least, so a client with few jobs does not wait behind all the jobs of another. A client that returns starts with
 * the usage of the client that was served last, so that nobody can save up turns by being idle. The number of jobs is
 * bounded, in all and for each client; where the line is full, the client that has most waiting gives up its last job for
 * one of a client that has fewer.
 */
export class FairLine<Job> {
  readonly #clients = new Map<string, Client<Job>>()
  #size = 0
  /** The usage of the client whose job was taken last. */
  #stand = 0

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
    if (known !== undefined && known.waiting.length + known.open >= this.clientMax) return 'client'
    return this.#size >= this.max ? 'all' : undefined
  }

  /** Adds a job. Returns why there is no room for it, or undefined. */
  add(client: string, job: Job): Full | undefined {
    const full = this.full(client)
    if (full === 'client' || (full === 'all' && !this.#makeRoom(client))) return full
    const known = this.#come(client)
    known.waiting.push(job)
    return undefined
  }

  #makeRoom(client: string): boolean {
    if (this.onDropped === undefined) return false
    const own = this.#clients.get(client)
    let most = (own === undefined ? 0 : own.waiting.length + own.open) + lead - 1
    let greedy: string | undefined
    for (const [name, { waiting }] of this.#clients) {
      if (waiting.length <= most) continue
      most = waiting.length
      greedy = name
    }
    const found = greedy === undefined ? undefined : this.#clients.get(greedy)
    const job = found?.waiting.pop()
    if (greedy === undefined || found === undefined || job === undefined) return false
    this.#leave(greedy, found)
    this.onDropped(job)
    return true
  }

  /**
   * Counts a job of this client that runs without having waited, even beyond the bounds. The caller must call `over`
   * for it.
   */
  open(client: string): void {
    this.#come(client).open += 1
  }

  /** Takes the next job; the caller must call `over` for it. */
  take(): { readonly client: string; readonly job: Job } | undefined {
    let next: string | undefined
    let least = Number.POSITIVE_INFINITY
    for (const [name, { waiting, used }] of this.#clients) {
      if (waiting.length === 0 || used >= least) continue
      next = name
      least = used
    }
    if (next === undefined) return undefined
    const client = this.#clients.get(next)
    const job = client?.waiting.shift()
    if (client === undefined || job === undefined) return undefined
    client.open += 1
    this.#stand = least
    return { client: next, job }
  }

  /** Removes a job that waits. False: it does not wait. */
  remove(client: string, job: Job): boolean {
    const known = this.#clients.get(client)
    const at = known?.waiting.indexOf(job) ?? -1
    if (known === undefined || at < 0) return false
    known.waiting.splice(at, 1)
    this.#leave(client, known)
    return true
  }

  /** Adds to the usage of this client. */
  charge(client: string, used: number): void {
    const known = this.#clients.get(client)
    if (known !== undefined) known.used += used
  }

  /** A job that was taken is over. */
  over(client: string): void {
    const known = this.#clients.get(client)
    if (known === undefined) return
    known.open -= 1
    this.#leave(client, known)
  }

  /** Counts one more job of this client. A client without jobs starts with the usage of the one that was served last. */
  #come(client: string): Client<Job> {
    this.#size += 1
    const known = this.#clients.get(client)
    if (known === undefined) {
      const fresh = { waiting: [], open: 0, used: this.#stand }
      this.#clients.set(client, fresh)
      return fresh
    }
    if (known.waiting.length === 0) known.used = Math.max(known.used, this.#stand)
    return known
  }

  #leave(client: string, known: Client<Job>): void {
    this.#size -= 1
    if (known.open === 0 && known.waiting.length === 0) this.#clients.delete(client)
  }
}
