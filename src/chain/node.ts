import type { Dispatcher } from 'undici'
import type { Clock } from '../actor/clock.js'
import { gaveUp } from '../actor/fair-slots.js'
import { bufferOf } from '../format/buffer-of.js'
import { expected } from '../format/bug.js'
import { Gathered } from '../format/gathered.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { bytesPerSecondMin, nextWithin, SenderPace } from '../http/sender-pace.js'
import { Upstream } from '../http/upstream.js'
import type { NodeHealth } from './node-order.js'
import { passing } from './passing.js'
import type { ChainOptions } from './remote-chain-options.js'

/** What is requested of a node. */
export interface NodeRequest {
  /** Appended to the node's base URL; begins with a slash. */
  readonly path: string
  /** JSON to post; absent: a GET. */
  readonly post?: string
  readonly maxBytes: number
  /** The refusal of an answer beyond that; absent: one that names the node. */
  readonly whenLarger?: Refusal
}

/** An answer read to its end. */
export interface NodeAnswer {
  readonly status: number
  readonly body: Buffer
}

/** An answer whose body is still arriving. The caller must read it to the end or drop it. */
export interface OpenAnswer {
  readonly status: number
  readonly contentType: string | undefined
  /** The announced length; undefined where the body comes in chunks. */
  readonly sizeBytes: number | undefined
  /** The next piece; undefined at the end; a refusal when the node stalled, broke off or sent too much. */
  next(): Promise<Buffer | undefined | Refusal>
  drop(): void
}

type Reading = Pick<OpenAnswer, 'status' | 'next' | 'drop'>

/** Answers beyond this are few: transactions of format 1 with their data, and long blocks. */
const largeBytes = 256 * 1024

/** Some proxies in front of nodes refuse requests without a User-Agent. */
const named = { 'user-agent': 'sluice' }

type Head = Dispatcher.ResponseData
type Body = Head['body']

/** One node: its connections and its failures. */
export class Node implements NodeHealth {
  underWay = 0
  failures = 0
  failingSinceMs: number | undefined
  coolUntil = 0
  /** The configured address, fit for logs. */
  readonly name: string
  readonly #upstream: Upstream
  readonly #origin: string
  readonly #base: string
  readonly #options: ChainOptions
  readonly #clock: Clock

  /** Throws on an address that is no plain http(s) URL: a mistake of the configuration. */
  constructor(address: string, options: ChainOptions, clock: Clock) {
    const url = new URL(address)
    const more = url.username + url.password + url.search + url.hash
    if (!/^https?:$/.test(url.protocol) || more !== '') {
      throw new TypeError(`a node's address is http(s)://host[:port][/path], not ${address}`)
    }
    this.#base = url.pathname.replace(/\/+$/, '')
    this.#origin = url.origin
    this.name = url.origin + this.#base
    this.#options = options
    this.#clock = clock
    this.#upstream = new Upstream({
      connections: options.connectionsMax,
      connect: { timeout: options.connectMs },
      headersTimeout: options.headMs,
      // Checked below for each piece instead: this timeout would also run while our own reader is slow.
      bodyTimeout: 0,
      keepAliveTimeout: 4_000,
      pipelining: 1,
    })
  }

  /**
   * Asks and reads the whole answer. `large` is called once before more than `largeBytes` of an answer are read, and what it
   * refuses is not read: its connection is closed. Refusals: `late`, `upstream`, `too-large`.
   */
  async ask(
    question: NodeRequest,
    signal?: AbortSignal,
    large?: () => Refusal | undefined,
  ): Promise<NodeAnswer | Refusal> {
    const opened = await this.open(question, signal)
    if (isRefusal(opened)) return opened
    const gathered = new Gathered(opened.sizeBytes)
    let isLarge = false
    for (;;) {
      if (!isLarge && Math.max(gathered.sizeBytes, opened.sizeBytes ?? 0) > largeBytes) {
        isLarge = true
        const refusal = large?.()
        if (refusal !== undefined) {
          opened.drop()
          return refusal
        }
      }
      const piece = await opened.next()
      if (piece === undefined) return { status: opened.status, body: bufferOf(gathered.bytes()) }
      if (isRefusal(piece)) return piece
      gathered.add(piece)
    }
  }

  /** Asks, and hands the answer over as soon as its head is here. */
  async open(question: NodeRequest, signal?: AbortSignal): Promise<OpenAnswer | Refusal> {
    let answer = await this.#send(question, signal)
    // A kept-alive connection may be closed by the node just when the request is sent; a GET can be sent again
    // safely.
    if (answer === 'closed' && question.post === undefined) answer = await this.#send(question, signal)
    if (answer === 'closed')
      return passing(refuse('upstream', 'upstream', `${this.name} closed the connection`))
    if (isRefusal(answer)) return answer
    const { statusCode, body, headers } = answer
    const sizeBytes = headers['content-length'] === undefined ? undefined : Number(headers['content-length'])
    const announced = sizeBytes ?? 0
    if (statusCode === 200 && announced > question.maxBytes) {
      discard(body)
      return (
        question.whenLarger ?? refuse('too-large', 'upstream', `${this.name} announces ${announced} bytes`)
      )
    }
    const type = headers['content-type']
    const contentType = typeof type === 'string' ? type : undefined
    return { contentType, sizeBytes, ...this.#reader(statusCode, body, question, signal) }
  }

  async #send(question: NodeRequest, signal?: AbortSignal): Promise<Head | Refusal | 'closed'> {
    const post = question.post
    try {
      return await this.#upstream.request({
        origin: this.#origin,
        path: this.#base + question.path,
        method: post === undefined ? 'GET' : 'POST',
        headers: post === undefined ? named : { ...named, 'content-type': 'application/json' },
        body: post ?? null,
        signal: signal ?? null,
      })
    } catch (error) {
      if (signal?.aborted === true) return gaveUp
      const code = codeOf(expected(error))
      if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'UND_ERR_HEADERS_TIMEOUT') {
        return refuse('late', 'upstream', `${this.name} does not answer`)
      }
      if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET') return 'closed'
      return passing(refuse('upstream', 'upstream', `${this.name} fails: ${code}`))
    }
  }

  #reader(status: number, body: Body, question: NodeRequest, signal?: AbortSignal): Reading {
    const { maxBytes, whenLarger } = question
    const source: AsyncIterator<Buffer> = body[Symbol.asyncIterator]()
    const pace = new SenderPace({ stallMs: this.#options.stallMs, bytesPerSecondMin }, this.#clock)
    let taken = 0
    let over = false
    const end = (refusal?: Refusal): Refusal | undefined => {
      over = true
      if (refusal !== undefined) discard(body)
      return refusal
    }
    const next = async (): Promise<Buffer | undefined | Refusal> => {
      if (over) return undefined
      pace.wait()
      const outcome = await nextWithin(source, this.name, pace, this.#clock)
      if (isRefusal(outcome)) {
        if (outcome.refused === 'late') return end(outcome)
        return end(signal?.aborted === true ? gaveUp : passing(outcome))
      }
      if (outcome.done === true) return end()
      taken += outcome.value.length
      if (taken > maxBytes && status === 200) {
        return end(
          whenLarger ?? refuse('too-large', 'upstream', `${this.name} sends more than was requested`),
        )
      }
      // A long body of an error says no more than its status, so the rest is discarded.
      if (taken > maxBytes) {
        discard(body)
        return end()
      }
      pace.came(outcome.value.length)
      return outcome.value
    }
    return { status, next, drop: () => void end(gaveUp) }
  }

  /** Closes every connection, with what is under way on them. */
  close(): Promise<void> {
    return this.#upstream.destroy()
  }
}

/** Without nodes of an address that an earlier one has; connections are made only with the first request. */
export function distinct(nodes: readonly Node[]): Node[] {
  const byName = new Map<string, Node>()
  for (const node of nodes) if (!byName.has(node.name)) byName.set(node.name, node)
  return [...byName.values()]
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

/** Destroys a body that is not read; the error that this raises on it is expected. */
function discard(body: Body): void {
  body.on('error', () => undefined)
  body.destroy()
}
