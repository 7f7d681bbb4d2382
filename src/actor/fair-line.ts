interface Client<Job> {
  readonly waiting: Job[]
  /** Taken and not yet over. */
  open: number
  /** What it has used of the shared resource, in the unit of `charge`; compared with other clients. */
  used: number
}

/** Why there is no room: `client`: the client's share is used up; `all`: everything is taken. */
export type Full = 'client' | 'all'

/**
 * A fair queue: jobs of many clients that wait for a scarce resource. The next job is from the client that has used
 * least, so a client with few jobs does not wait behind all the jobs of another. A client that returns starts with
 * the usage of the client that was served last, so that nobody can save up turns by being idle. The number of jobs is
 * bounded, in all and for each client.
 */
export class FairLine<Job> {
  readonly #clients = new Map<string, Client<Job>>()
  #size = 0
  /** The usage of the client whose job was taken last. */
  #stand = 0

  constructor(
    private readonly max: number,
    private readonly clientMax: number,
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
    if (full !== undefined) return full
    const known = this.#come(client)
    known.waiting.push(job)
    return undefined
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
