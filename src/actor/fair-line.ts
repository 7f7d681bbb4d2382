interface Client<Job> {
  readonly waiting: Job[]
  /** Taken and not yet over. */
  open: number
  /** What it has used of what is shared, in the unit of `charge`, compared with the others. */
  used: number
}

/** Why there is no room: `client` has used up its own share, or all is taken. */
export type Full = 'client' | 'all'

/**
 * Jobs of many clients that wait for something scarce. The next one is of the client that has used least: who asks for
 * little does not wait behind all the work of who asks for much. A client that comes back begins where the line stands, so
 * nobody saves up turns. Bounded for all and for each.
 */
export class FairLine<Job> {
  readonly #clients = new Map<string, Client<Job>>()
  #size = 0
  /** What the client had used whose job was taken last. */
  #stand = 0

  constructor(
    private readonly max: number,
    private readonly clientMax: number,
  ) {}

  /** Jobs that wait or are open. */
  get size(): number {
    return this.#size
  }

  /** Undefined: one more job of this client has room. */
  full(client: string): Full | undefined {
    const known = this.#clients.get(client)
    if (known !== undefined && known.waiting.length + known.open >= this.clientMax) return 'client'
    return this.#size >= this.max ? 'all' : undefined
  }

  /** A job that waits; or why there is no room for it. */
  add(client: string, job: Job): Full | undefined {
    const full = this.full(client)
    if (full !== undefined) return full
    const known = this.#come(client)
    known.waiting.push(job)
    return undefined
  }

  /** Something of this client is open without having waited, whatever the bounds say. `over` is to be called for it. */
  open(client: string): void {
    this.#come(client).open += 1
  }

  /** The job that is next; `over` is to be called for it. */
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

  /** A job that waits leaves the line. False: it does not wait. */
  remove(client: string, job: Job): boolean {
    const known = this.#clients.get(client)
    const at = known?.waiting.indexOf(job) ?? -1
    if (known === undefined || at < 0) return false
    known.waiting.splice(at, 1)
    this.#leave(client, known)
    return true
  }

  /** This client has used so much of what is shared. */
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

  /** One more of this client, who begins where the line stands unless it waits there already. */
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
