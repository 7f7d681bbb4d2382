import type { MessagePort } from 'node:worker_threads'
import { addressOf } from '../actor/address.js'
import { FairSlots } from '../actor/fair-slots.js'
import { type Refusal, refuse } from '../format/refusal.js'
import type { QueryAsk, QueryOrder, QueryQueue, QueryReply } from './protocol.js'
import type { QueryThreads } from './route.js'

/** A line to a query thread, as an edge thread gets it. */
export interface QueryLine {
  readonly port: MessagePort
  /** Memory shared with the query thread: a number for each place, not 0 where the client has left. */
  readonly left: SharedArrayBuffer
}

export interface QueryLinesOptions extends Pick<QueryQueue, 'waitingMax' | 'clientMax'> {
  /** Bytes of answers that clients have not read yet. Above this, further queries are refused. */
  readonly heldMaxBytes: number
}

/** Memory of a table of those who left, for one line; behind its places stands how many queries are under way. */
export function leftTable({ waitingMax }: Pick<QueryQueue, 'waitingMax'>): SharedArrayBuffer {
  return new SharedArrayBuffer((waitingMax + 1) * 4)
}

/** Queries under way on the line with this table. */
export function underWay(left: SharedArrayBuffer): number {
  return Atomics.load(new Int32Array(left), left.byteLength / 4 - 1)
}

/**
 * The tables of all lines to one query thread: one of each edge thread. An edge thread that replaces another one
 * brings a new table, so that queries of the old one are not counted any more.
 */
export class LeftTables {
  readonly #ofEdges = new Map<number, SharedArrayBuffer>()

  constructor(private readonly queue: Pick<QueryQueue, 'waitingMax'>) {}

  /** A new table, for the edge thread at this place (from 0). */
  renew(edge: number): SharedArrayBuffer {
    const table = leftTable(this.queue)
    this.#ofEdges.set(edge, table)
    return table
  }

  /** True: somebody waits for the query thread. */
  get areUnderWay(): boolean {
    for (const table of this.#ofEdges.values()) if (underWay(table) > 0) return true
    return false
  }
}

const full = refuse('busy', 'self', 'Too many queries wait: try again in a moment')
const enough = refuse('busy', 'client', 'Too many of your queries wait: try again when they are answered')

/**
 * The query threads, as one edge thread reaches them: a query goes to the one with the fewest queries of this edge
 * thread. Queries under way are bounded here, in all and for each client, so that they can be refused without a
 * message to another thread.
 */
export class QueryLines implements QueryThreads {
  readonly #lines: readonly Line[]
  /** What is asked and what is held of each client. */
  readonly #shares: FairSlots
  #heldBytes = 0

  constructor(
    lines: readonly QueryLine[],
    private readonly options: QueryLinesOptions,
  ) {
    this.#lines = lines.map((line) => new Line(line, options.waitingMax))
    this.#shares = new FairSlots({ max: Number.POSITIVE_INFINITY, eachMax: options.clientMax })
  }

  async ask(asked: QueryAsk, client: string, onGone: (left: () => void) => void): Promise<QueryReply> {
    const line = this.#lines.reduce((best, one) => (one.underWay < best.underWay ? one : best))
    if (line.isFull || this.#heldBytes > this.options.heldMaxBytes) return full
    const leave = this.#shares.take(client)
    if (typeof leave === 'string') return enough
    const answer = await line.ask(asked, client, onGone)
    leave()
    return answer
  }

  holding(client: string, bytes: number): () => void {
    this.#heldBytes += bytes
    const leave = this.#shares.force(client)
    return () => {
      this.#heldBytes -= bytes
      leave()
    }
  }

  close(): void {
    for (const line of this.#lines) line.close()
  }
}

class Line {
  readonly #address: { ask(message: QueryOrder, moves: ArrayBuffer[]): Promise<QueryReply | Refusal> }
  readonly #left: Int32Array
  readonly #free: number[]
  readonly #port: MessagePort
  readonly #placesMax: number

  constructor({ port, left }: QueryLine, placesMax: number) {
    this.#placesMax = placesMax
    this.#port = port
    this.#address = addressOf<QueryOrder, QueryReply>(port, placesMax)
    this.#left = new Int32Array(left)
    this.#free = Array.from({ length: placesMax }, (_, at) => at)
  }

  get underWay(): number {
    return this.#placesMax - this.#free.length
  }

  get isFull(): boolean {
    return this.#free.length === 0
  }

  async ask(asked: QueryAsk, client: string, onGone: (left: () => void) => void): Promise<QueryReply> {
    const place = this.#free.pop()
    if (place === undefined) return full
    let isOver = false
    Atomics.store(this.#left, place, 0)
    onGone(() => {
      if (!isOver) Atomics.store(this.#left, place, 1)
    })
    // A copy: the bytes may lie in memory that others use, too.
    const body = asked.body === undefined ? undefined : new Uint8Array(asked.body)
    const moved = body === undefined ? asked : { ...asked, body }
    Atomics.store(this.#left, this.#placesMax, this.underWay)
    const answer = await this.#address.ask(
      { asked: moved, client, place },
      body === undefined ? [] : [body.buffer],
    )
    isOver = true
    this.#free.push(place)
    Atomics.store(this.#left, this.#placesMax, this.underWay)
    return answer
  }

  close(): void {
    this.#port.close()
  }
}
