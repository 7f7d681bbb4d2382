import type { MessagePort } from 'node:worker_threads'
import { FairSlots } from '../actor/fair-slots.js'
import { greediest, type Holdings, ofOneClient } from '../actor/greediest.js'
import { addressOf } from '../actor/mailbox-address.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { HeldAnswers } from './held-answers.js'
import type { QueryThreads } from './query-handler.js'
import type { QueryAsk, QueryOrder, QueryQueue, QueryReply } from './query-messages.js'

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

/** Memory of a table of those who left, for one line. */
export function leftTable({ waitingMax }: Pick<QueryQueue, 'waitingMax'>): SharedArrayBuffer {
  return new SharedArrayBuffer(placesOf(waitingMax) * 4)
}

/** Those that had to make room keep their places until the query thread has passed them over. */
function placesOf(waitingMax: number): number {
  return 2 * waitingMax
}

const full = refuse('busy', 'self', 'Too many queries wait: try again in a moment')
const none = refuse('busy', 'self', 'What answers queries is being started again: try again in a moment')
const enough = refuse('busy', 'client', 'Too many of your queries wait: try again when they are answered')

/**
 * The query threads, as one edge thread reaches them: a query goes to the one with the fewest queries of this edge
 * thread. Queries under way are bounded here, in all and for each client, so that they can be refused without a
 * message to another thread.
 */
export class QueryLines implements QueryThreads {
  readonly #lines: Line[]
  /** The requests and held answers of each client. */
  readonly #shares: FairSlots
  readonly #held: HeldAnswers

  constructor(
    lines: readonly QueryLine[],
    private readonly options: QueryLinesOptions,
  ) {
    this.#lines = lines.map((line) => new Line(line, options.waitingMax))
    this.#held = new HeldAnswers(options.heldMaxBytes)
    this.#shares = new FairSlots({ max: Number.POSITIVE_INFINITY, eachMax: options.clientMax })
  }

  async ask(request: QueryAsk, client: string, onGone: (left: () => void) => void): Promise<QueryReply> {
    const line = this.#quietest()
    if (line === undefined) return none
    // The client's own share first: for one that has used it up nobody makes room.
    const leave = this.#shares.take(client)
    if (typeof leave === 'string') return enough
    const hasRoom = this.#held.hasRoom(client) && line.hasRoom(client)
    const answer = hasRoom ? await line.ask(request, client, onGone) : full
    leave()
    return answer
  }

  /** From now on the query thread `at` (from 0) is reached by this line; what the old one waits for is answered as refused. */
  replace(at: number, line: QueryLine): void {
    this.#lines[at]?.close()
    this.#lines[at] = new Line(line, this.options.waitingMax)
  }

  /** The line with the fewest queries, among those whose thread is up. */
  #quietest(): Line | undefined {
    let best: Line | undefined
    for (const line of this.#lines)
      if (!line.isLost && (best === undefined || line.underWay < best.underWay)) best = line
    return best
  }

  holding(client: string, bytes: number, drop: () => void): () => void {
    const free = this.#held.add(client, bytes, drop)
    const leave = this.#shares.force(client)
    return () => {
      free()
      leave()
    }
  }

  close(): void {
    for (const line of this.#lines) line.close()
  }
}

/** A query that waits, and what ends it. */
interface Waiting {
  readonly client: string
  readonly end: () => void
}

const holdings: Holdings<Waiting> = { clientOf: ({ client }) => client, lead: 1, levels: 3, isNested: false }

class Line {
  readonly #address: { ask(message: QueryOrder, moves: ArrayBuffer[]): Promise<QueryReply | Refusal> }
  readonly #left: Int32Array
  readonly #free: number[]
  readonly #port: MessagePort
  /** What each client waits for: calls that end it. */
  readonly #waiting = new Map<string, Set<() => void>>()
  /** Without those that had to make room. */
  underWay = 0
  /** The thread at the other end has ended. */
  isLost = false

  constructor(
    { port, left }: QueryLine,
    private readonly waitingMax: number,
  ) {
    const placesMax = placesOf(waitingMax)
    this.#port = port
    this.#address = addressOf<QueryOrder, QueryReply>(port, placesMax)
    port.on('close', () => {
      this.isLost = true
    })
    this.#left = new Int32Array(left)
    this.#free = Array.from({ length: placesMax }, (_, at) => at)
  }

  /**
   * Where as many wait as may, the last query of who has most makes room for one of who has fewer: of providers, of networks, of
   * clients. False: there is none.
   */
  hasRoom(client: string): boolean {
    if (this.#free.length === 0) return false
    if (this.underWay < this.waitingMax) return true
    const waiting = [...this.#waiting].flatMap(([one, calls]) =>
      [...calls].map((end) => ({ client: one, end })),
    )
    const last = ofOneClient(greediest(waiting, client, holdings) ?? [], holdings).at(-1)
    last?.end()
    return last !== undefined
  }

  ask(request: QueryAsk, client: string, onGone: (left: () => void) => void): Promise<QueryReply> {
    const place = this.#free.pop()
    if (place === undefined) return Promise.resolve(full)
    return new Promise((resolve) => {
      let isOver = false
      const end = (reply: QueryReply): void => {
        if (isOver) return
        isOver = true
        this.#count(client, madeRoom, -1)
        resolve(reply)
      }
      const left = (): void => {
        if (!isOver) Atomics.store(this.#left, place, 1)
      }
      const madeRoom = (): void => {
        left()
        end(full)
      }
      Atomics.store(this.#left, place, 0)
      onGone(left)
      this.#count(client, madeRoom, 1)
      void this.#send(request, client, place).then((reply) => {
        this.#free.push(place)
        end(reply)
      })
    })
  }

  #send(request: QueryAsk, client: string, place: number): Promise<QueryReply | Refusal> {
    // A copy: the bytes may lie in memory that others use, too.
    const body = request.body === undefined ? undefined : new Uint8Array(request.body)
    const moved = body === undefined ? request : { ...request, body }
    return this.#address.ask({ request: moved, client, place }, body === undefined ? [] : [body.buffer])
  }

  #count(client: string, call: () => void, more: 1 | -1): void {
    const calls = this.#waiting.get(client) ?? new Set()
    if (more > 0) calls.add(call)
    else calls.delete(call)
    if (calls.size > 0) this.#waiting.set(client, calls)
    else this.#waiting.delete(client)
    this.underWay += more
  }

  close(): void {
    this.#port.close()
  }
}
