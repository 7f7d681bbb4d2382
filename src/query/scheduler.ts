import type { Clock } from '../actor/clock.js'
import { FairLine } from '../actor/fair-line.js'
import type { Log } from '../actor/log.js'
import { type Refusal, refuse } from '../format/refusal.js'
import type { IsGone, Turn } from './query-effort.js'
import type { QueryAsk, QueryQueue, QueryReply, QueryResponse } from './query-messages.js'

/** What answers one request (graphql-over-http.ts). */
export interface Answers {
  answer(
    request: QueryAsk,
    isGone: IsGone,
    client: string,
    turn: Turn,
  ): QueryResponse | Promise<QueryResponse>
}

interface Job {
  readonly request: QueryAsk
  readonly isGone: IsGone
  readonly sinceMs: number
  readonly settle: (reply: QueryReply) => void
  /** What it goes on with after a wait; absent: it has not begun. */
  readonly resume?: () => void
}

export interface QuerySchedulerParts {
  readonly answers: Answers
  readonly queue: QueryQueue
  readonly clock: Clock
  /** Counts the time of the processor. */
  readonly work: { monotonic(): number }
  readonly log: Pick<Log, 'error'>
  /** Takes an error of a damaged page of the index, so that reading goes on; false where it is another error. */
  readonly isDamage?: (error: unknown) => boolean
  /** Called with the number of queries that wait or are being answered. */
  readonly onSize?: (size: number) => void
}

/** Larger answers are moved to the edge thread as bytes, smaller ones copied as text. */
const movedMinChars = 8192
const full = refuse('busy', 'self', 'Too many queries wait: try again in a moment')
const gone = refuse('busy', 'client', 'The client has left')

/**
 * The queue of one query thread. One query after the other, each in its own turn of the event loop, so that the
 * thread receives new queries and learns which clients left in between. A query that waits for content does not block
 * the thread. A batch that goes on after such a wait comes back to the line.
 */
export class QueryScheduler {
  readonly #line: FairLine<Job>
  #isDue = false

  constructor(private readonly parts: QuerySchedulerParts) {
    this.#line = new FairLine(parts.queue.waitingMax, parts.queue.clientMax, ({ settle }) => settle(full))
  }

  /** Resolves with the answer, or a refusal: `busy`. Never rejects. */
  ask(request: QueryAsk, client: string, isGone: IsGone): Promise<QueryReply> {
    return new Promise((resolve) => {
      const job = { request, isGone, sinceMs: this.parts.clock.monotonic(), settle: resolve }
      if (this.#line.add(client, job) !== undefined) {
        resolve(full)
        return
      }
      this.#reportSize()
      this.#soon()
    })
  }

  #soon(): void {
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      this.#next()
    })
  }

  #next(): void {
    const next = this.#line.take()
    if (next === undefined) return
    const { client, job } = next
    const before = this.parts.work.monotonic()
    const reply = job.resume === undefined ? this.#answer(job, client) : undefined
    job.resume?.()
    this.#line.charge(client, this.parts.work.monotonic() - before)
    if (reply === undefined) {
      // The answer comes from the promise with which it began.
    } else if (reply instanceof Promise) void reply.then((late) => this.#end(client, job, late))
    else this.#end(client, job, reply)
    this.#soon()
  }

  #end(client: string, job: Job, reply: QueryReply): void {
    this.#line.over(client)
    this.#reportSize()
    job.settle(reply)
  }

  #answer(job: Job, client: string): QueryReply | Promise<QueryReply> {
    const { answers, clock, queue } = this.parts
    if (job.isGone()) return gone
    if (clock.monotonic() - job.sinceMs > queue.waitMs) return full
    try {
      const turn: Turn = (work) => this.#turn(client, job, work)
      const answer = answers.answer(job.request, job.isGone, client, turn)
      if (!(answer instanceof Promise)) return packed(answer)
      return answer.then(packed, (error: unknown) => this.#failed(error))
    } catch (error) {
      return this.#failed(error)
    }
  }

  #turn<T>(client: string, job: Job, work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const resume = (): void => {
        try {
          resolve(work())
        } catch (error) {
          reject(error)
        }
      }
      this.#line.again(client, { ...job, resume })
      this.#soon()
    })
  }

  /** A bug, or the answer needs a damaged page: only this answer fails, the thread goes on. */
  #failed(error: unknown): Refusal {
    if (this.parts.isDamage?.(error) === true)
      return refuse('upstream', 'self', 'a page of the index that the query needs is damaged')
    this.parts.log.error({ err: error }, 'a query failed')
    return refuse('upstream', 'self', 'the query failed')
  }

  #reportSize(): void {
    this.parts.onSize?.(this.#line.size)
  }
}

function packed(answer: QueryResponse): QueryReply {
  if (answer.body.length < movedMinChars) return answer
  // Not `Buffer.from`: what lies in Node's pool of buffers cannot be moved, and since Node 24 that is up to 32 KiB.
  return { ...answer, body: new TextEncoder().encode(answer.body) }
}

/** What of a reply is moved and not copied. */
export function movedOf(reply: QueryReply): ArrayBuffer[] {
  const isBytes = 'body' in reply && typeof reply.body !== 'string'
  return isBytes ? [(reply.body as Uint8Array).buffer as ArrayBuffer] : []
}
