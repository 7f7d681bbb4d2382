/** A client has this part of the requests under way, at least one; more only while there are few of others. */
const shareParts = 8

/** Counts requests under way, by client. */
export class RequestShares {
  readonly #counts = new Map<string, number>()
  /** Indexed by slot. */
  readonly #clients: (string | undefined)[] = []
  readonly #share: number

  constructor(requestsMax: number) {
    this.#share = Math.max(1, Math.floor(requestsMax / shareParts))
  }

  /** True where a client has not used up its share. */
  hasRoom(client: string): boolean {
    return (this.#counts.get(client) ?? 0) < this.#share
  }

  /** Requests under way of who has the one in this slot. */
  countAt(slot: number): number {
    const client = this.#clients[slot]
    return client === undefined ? 0 : this.countOf(client)
  }

  countOf(client: string): number {
    return this.#counts.get(client) ?? 0
  }

  isOf(slot: number, client: string): boolean {
    return this.#clients[slot] === client
  }

  add(slot: number, client: string): void {
    this.#clients[slot] = client
    this.#counts.set(client, (this.#counts.get(client) ?? 0) + 1)
  }

  remove(slot: number): void {
    const client = this.#clients[slot]
    if (client === undefined) return
    this.#clients[slot] = undefined
    const left = (this.#counts.get(client) ?? 0) - 1
    if (left > 0) this.#counts.set(client, left)
    else this.#counts.delete(client)
  }
}
