import { greediest, type Holdings, ofOneClient } from '../actor/greediest.js'

interface Held {
  readonly client: string
  readonly bytes: number
  /** Ends the answer: its client gets no more of it. */
  readonly drop: () => void
}

const holdings: Holdings<Held> = {
  clientOf: ({ client }) => client,
  weightOf: ({ bytes }) => bytes,
  lead: 0,
  levels: 3,
  isNested: true,
}

/**
 * Bytes of answers that clients have not read yet. A client may read as slowly as it likes, so where there is no room the oldest
 * answer of who holds most is ended for a query of who holds less: of providers, of networks, of clients.
 */
export class HeldAnswers {
  /** In the order in which they began. */
  readonly #held = new Set<Held>()
  #bytes = 0

  constructor(private readonly maxBytes: number) {}

  /** Counts an answer until the returned function is called. */
  add(client: string, bytes: number, drop: () => void): () => void {
    const held = { client, bytes, drop }
    // Many queries may have been under way when there was room. A single answer is never too large.
    this.#makeRoom(bytes)
    this.#held.add(held)
    this.#bytes += bytes
    return () => this.#remove(held)
  }

  /** Whether a query of this client may be answered: others make room for it where they hold more. */
  hasRoom(client: string): boolean {
    return this.#makeRoom(0, client)
  }

  /** Makes room for so many bytes, of this client or of anybody. False: there is none. */
  #makeRoom(bytes: number, client?: string): boolean {
    while (this.#bytes + bytes > this.maxBytes) {
      const greedy = this.#greediest(client)
      if (greedy === undefined) return false
      this.#remove(greedy)
      greedy.drop()
    }
    return true
  }

  #remove(held: Held): void {
    if (this.#held.delete(held)) this.#bytes -= held.bytes
  }

  /** The oldest answer of the provider, network or client that holds most, where this client's, if there is one, holds less. */
  #greediest(client = ''): Held | undefined {
    const [oldest] = ofOneClient(greediest(this.#held, client, holdings) ?? [], holdings)
    return oldest
  }
}
