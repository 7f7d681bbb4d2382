interface Client<Job> {
  readonly waiting: Job[]
  /** Taken and not yet over. */
  open: number
  /** What it has used of the thread, in the unit of `over`, compared with the others. */
  used: number
}

/**
 * Jobs of many clients that wait for one thread. The next one is of the client that has used least: who asks for
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

  /** False where the line is full, or has enough of this client. */
  add(client: string, job: Job): boolean {
    const known = this.#clients.get(client)
    const own = known === undefined ? 0 : known.waiting.length + known.open
    if (this.#size >= this.max || own >= this.clientMax) return false
    this.#size += 1
    if (known === undefined) this.#clients.set(client, { waiting: [job], open: 0, used: this.#stand })
    else {
      if (own === known.open) known.used = Math.max(known.used, this.#stand)
      known.waiting.push(job)
    }
    return true
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

  /** A job of this client has used so much of the thread. */
  charge(client: string, used: number): void {
    const known = this.#clients.get(client)
    if (known !== undefined) known.used += used
  }

  /** A job that was taken is over. */
  over(client: string): void {
    const known = this.#clients.get(client)
    if (known === undefined) return
    known.open -= 1
    this.#size -= 1
    if (known.open === 0 && known.waiting.length === 0) this.#clients.delete(client)
  }
}
