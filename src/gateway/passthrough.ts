import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { type Relay, type RelayedAnswer, wholeBody } from '../chain/relay.js'
import { parseId } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Head, Reply, Request } from '../http/exchange.js'
import {
  answerBlocked,
  answerSmall,
  jsonType,
  logRefusal,
  noStore,
  refusedAnswer,
  textType,
} from './answer.js'
import { FlowContent, noContent } from './flow-content.js'
import type { Guard } from './guard.js'
import { type KeptAnswer, KeptAnswers } from './kept-answers.js'
import type { Route } from './parts.js'

export interface PassthroughParts {
  readonly relay: Relay
  readonly clock: Clock
  readonly log: Log
  /** Bytes of small answers kept in memory. */
  readonly keptBytes: number
  /** Large answers on their way at once: each holds a connection to a node for as long as its client reads. */
  readonly flowsMax: number
  /** Told of each whole answer that was fetched. */
  readonly heard: (path: string, body: Buffer) => void
  readonly guard?: Guard
}

interface Rule {
  /** Lower case; one that ends in `/` takes everything below it. */
  readonly path: string
  /** Told to caches. */
  readonly maxAgeSeconds: number
  /** Kept here; shorter where the next block changes the answer. */
  readonly keptSeconds: number
  /** Another node may have what one does not know. */
  readonly others?: true
}

const rules: readonly Rule[] = [
  { path: '/info', maxAgeSeconds: 120, keptSeconds: 5 },
  { path: '/tx_anchor', maxAgeSeconds: 120, keptSeconds: 5 },
  { path: '/current_block', maxAgeSeconds: 30, keptSeconds: 5 },
  { path: '/peers', maxAgeSeconds: 30, keptSeconds: 30 },
  { path: '/tx/', maxAgeSeconds: 30, keptSeconds: 30, others: true },
  { path: '/block/', maxAgeSeconds: 30, keptSeconds: 5, others: true },
  { path: '/price/', maxAgeSeconds: 30, keptSeconds: 30 },
  { path: '/wallet/', maxAgeSeconds: 30, keptSeconds: 1 },
  { path: '/height', maxAgeSeconds: 20, keptSeconds: 1 },
  { path: '/unconfirmed_tx/', maxAgeSeconds: 20, keptSeconds: 1 },
]

/** A transaction's standing, and what waits: as of now. */
const momentary = /\/(status|pending)$/i

/** Whatever nodes say of one transaction; old ones carry their data in their headers. */
const ofTransaction = /^\/(?:tx|unconfirmed_tx)\/([^/]+)/

/** Answers up to this size are read whole, shared by all who ask at that moment, and kept. */
const smallMax = 1 << 20
/** A transaction with 12 MiB of data in it, in base64url; the largest blocks have 16 MiB. */
const largeMax = 20 << 20
/** Large answers of unknown length, which can only be sent when they are here, at once. */
const gatheredMax = 4

const pathShape = /^(\/[A-Za-z0-9_.,~-]+)+\/?$/

type Opened =
  | { readonly kind: 'small'; readonly answer: KeptAnswer }
  | { readonly kind: 'large'; readonly answer: RelayedAnswer; readonly begun: readonly Buffer[] }

/** What nodes answer about the chain, under the paths that clients of nodes know. */
export function passthroughRoutes(parts: PassthroughParts): Route[] {
  const passage = new Passage(parts)
  return rules.map((rule) => ({
    family: 'other',
    path: rule.path,
    methods: ['GET', 'HEAD'],
    handle: (request, reply, first) => passage.handle(rule, request, reply, first),
  }))
}

/** Types that no browser runs: the data of a transaction is somebody else's, and this is our own host. */
export function relayedType(type: string | undefined): string {
  const bare = (type ?? '').split(';')[0]?.trim().toLowerCase()
  if (bare === 'application/json') return jsonType
  return bare === 'application/octet-stream' ? bare : textType
}

class Passage {
  readonly #kept: KeptAnswers
  readonly #flights = new Map<string, Promise<Opened | Refusal>>()
  #flows = 0
  #gathering = 0

  constructor(private readonly parts: PassthroughParts) {
    this.#kept = new KeptAnswers(parts.keptBytes, parts.clock)
  }

  async handle(rule: Rule, request: Request, reply: Reply, first: string): Promise<void> {
    // The router does not look at letter case, but nodes do.
    const path = rule.path + request.path.slice(rule.path.length)
    if (!pathShape.test(path) || path.split('/').some((part) => part === '.' || part === '..')) {
      const wrong = { status: 400, type: textType, lines: noStore, body: 'Invalid path' }
      return answerSmall(request, reply, first, wrong)
    }
    const { guard } = this.parts
    const id = guard?.isOn === true ? parseId(ofTransaction.exec(path)?.[1] ?? '') : undefined
    if (guard !== undefined && id !== undefined && guard.blocksKnown(id)) {
      return answerBlocked(request, reply, first, guard, id)
    }
    const kept = this.#kept.find(path)
    if (kept !== undefined) {
      const lines = `${linesOf(kept.answer.status, rule)}\r\nAge: ${kept.ageSeconds}\r\nX-Cache: HIT`
      return answerSmall(request, reply, first, { ...kept.answer, lines })
    }
    const opened = await this.#open(path, rule)
    if (isRefusal(opened)) {
      logRefusal(this.parts.log, request, opened)
      return answerSmall(request, reply, first, refusedAnswer(opened))
    }
    if (opened.kind === 'small') {
      const lines = `${linesOf(opened.answer.status, rule)}\r\nX-Cache: MISS`
      return answerSmall(request, reply, first, { ...opened.answer, lines })
    }
    await this.#large(opened, rule, request, reply, first)
  }

  /** Small answers are shared; a large one belongs to the first who asked, and the others ask for their own. */
  async #open(path: string, rule: Rule): Promise<Opened | Refusal> {
    const running = this.#flights.get(path)
    if (running !== undefined) {
      const shared = await running
      return isRefusal(shared) || shared.kind === 'small' ? shared : this.#ask(path, rule)
    }
    const flight = this.#ask(path, rule).finally(() => this.#flights.delete(path))
    this.#flights.set(path, flight)
    return flight
  }

  async #ask(path: string, rule: Rule): Promise<Opened | Refusal> {
    const answer = await this.parts.relay.ask({ path, maxBytes: largeMax }, rule.others === true)
    if (isRefusal(answer)) return answer
    const begun: Buffer[] = []
    if ((answer.sizeBytes ?? 0) > smallMax) return { kind: 'large', answer, begun }
    for (let bytes = 0; bytes <= smallMax; ) {
      const piece = await answer.next()
      if (isRefusal(piece)) return piece
      if (piece === undefined) return { kind: 'small', answer: this.#keep(path, rule, answer, begun) }
      begun.push(piece)
      bytes += piece.length
    }
    return { kind: 'large', answer, begun }
  }

  #keep(path: string, rule: Rule, answer: RelayedAnswer, pieces: readonly Buffer[]): KeptAnswer {
    const { status, contentType } = answer
    const kept = { status, type: relayedType(contentType), body: Buffer.concat(pieces) }
    if (status === 200) {
      this.#kept.keep(path, kept, momentary.test(path) ? 1 : rule.keptSeconds)
      this.parts.heard(path, kept.body)
    }
    return kept
  }

  async #large(
    { answer, begun }: Extract<Opened, { kind: 'large' }>,
    rule: Rule,
    request: Request,
    reply: Reply,
    first: string,
  ): Promise<void> {
    const { status, sizeBytes } = answer
    const type = relayedType(answer.contentType)
    const lines = `${linesOf(status, rule)}\r\nX-Cache: MISS`
    const head = { status, block: `${first}\r\nContent-Type: ${type}${lines}` }
    if (reply.aborted || (request.method === 'HEAD' && sizeBytes !== undefined)) {
      answer.drop()
      return reply.endEmpty(head, sizeBytes)
    }
    if (sizeBytes === undefined || begun.length > 0) {
      return this.#gather(answer, begun, request, reply, head, first)
    }
    if (this.#flows >= this.parts.flowsMax) {
      answer.drop()
      const busy = refuse('busy', 'self', 'too many large answers are on their way')
      return answerSmall(request, reply, first, refusedAnswer(busy))
    }
    this.#flows += 1
    await reply.stream(head, [{ start: 0, end: sizeBytes }], new FlowContent(answer, sizeBytes))
    this.#flows -= 1
  }

  /** An answer of unknown length is read to its end first: one that breaks off must not look whole. */
  async #gather(
    answer: RelayedAnswer,
    begun: readonly Buffer[],
    request: Request,
    reply: Reply,
    head: Head,
    first: string,
  ): Promise<void> {
    if (this.#gathering >= gatheredMax) {
      answer.drop()
      const busy = refuse('busy', 'self', 'too many large answers are being read')
      return answerSmall(request, reply, first, refusedAnswer(busy))
    }
    this.#gathering += 1
    try {
      const rest = await wholeBody(answer)
      if (isRefusal(rest)) return answerSmall(request, reply, first, refusedAnswer(rest))
      const bytes = Buffer.concat([...begun, rest])
      if (request.method === 'HEAD') reply.endEmpty(head, bytes.length)
      else await reply.stream(head, [{ bytes }], noContent)
    } finally {
      this.#gathering -= 1
    }
  }
}

/** Only what a node had is worth keeping: what is missing now may come with the next block. */
function linesOf(status: number, rule: Rule): string {
  const caching = status === 200 ? `\r\nCache-Control: public, max-age=${rule.maxAgeSeconds}` : noStore
  return `${caching}\r\nX-Content-Type-Options: nosniff`
}
