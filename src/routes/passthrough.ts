import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Admission } from '../admission/admission-port.js'
import { type Relay, type RelayedAnswer, wholeBody } from '../chain/relay.js'
import { Gathered } from '../format/gathered.js'
import { parseId } from '../format/id.js'
import { ownText } from '../format/own-text.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { admitted } from '../gateway/admit.js'
import { answerBlocked, answerBlockedAs, logRefusal } from '../gateway/blocked-answer.js'
import type { Guard } from '../gateway/guard.js'
import { noContent, RelayedBody } from '../gateway/relayed-body.js'
import type { Reply, Request } from '../http/exchange.js'
import type { Operation, Operations } from '../http/operation.js'
import { answerSmall, jsonType, noStore, textType } from '../http/small-answer.js'
import { type ClientOf, inSlot, type SlotRequest } from '../serving/in-slot.js'
import { refusedAnswer } from '../serving/refused-answer.js'
import { RequestSlots } from '../serving/request-slots.js'
import type { Route } from '../serving/route.js'
import { type KeptAnswer, KeptAnswers } from './kept-answers.js'
import { contentSpans, holdsBlocked } from './relayed-content.js'

export interface PassthroughParts {
  readonly relay: Relay
  readonly clock: Clock
  readonly log: Log
  /** Bytes of small answers kept in memory. */
  readonly keptBytes: number
  /** Large answers on their way at once: each holds a connection to a node for as long as its client reads. */
  readonly relaysMax: number
  readonly clientOf: ClientOf
  /** Called with each whole answer that was fetched. */
  readonly onAnswer: (path: string, body: Buffer) => void
  readonly guard?: Guard
  /** Absent: nobody is limited. */
  readonly admission?: Admission
}

type DescribedPath = readonly [path: string, summary: string, type?: string]

const text = 'text/plain'

interface Rule {
  /** Lower case; one that ends in `/` takes everything below it. */
  readonly path: string
  /** Max-age of the answers. */
  readonly maxAgeSeconds: number
  /** Seconds in memory; less where the next block changes the answer. */
  readonly keptSeconds: number
  /** A 404 of one node is not final: other nodes are tried. */
  readonly others?: true
  /** Its answers may hold data of others. */
  readonly holdsContent?: true
  /** Paths below this one that nodes answer, with their summaries. */
  readonly about: readonly [DescribedPath, ...DescribedPath[]]
}

const rules: readonly Rule[] = [
  { path: '/info', maxAgeSeconds: 120, keptSeconds: 5, about: [['', 'The node and its tip']] },
  { path: '/tx_anchor', maxAgeSeconds: 120, keptSeconds: 5, about: [['', 'A block to sign into', text]] },
  { path: '/current_block', maxAgeSeconds: 30, keptSeconds: 5, about: [['', 'The block at the tip']] },
  { path: '/peers', maxAgeSeconds: 30, keptSeconds: 30, about: [['', 'Nodes that the node knows']] },
  {
    path: '/tx/',
    maxAgeSeconds: 30,
    keptSeconds: 30,
    others: true,
    holdsContent: true,
    about: [
      ['{id}', 'A transaction'],
      ['{id}/status', 'Where a transaction stands'],
      ['{id}/offset', 'Where the data of a transaction lies in the weave'],
      ['{id}/{path}', 'A field of a transaction', text],
      ['pending', 'Transactions that wait for a block'],
    ],
  },
  {
    path: '/block/',
    maxAgeSeconds: 30,
    keptSeconds: 5,
    others: true,
    holdsContent: true,
    about: [
      ['height/{height}', 'A block by its height'],
      ['hash/{hash}', 'A block by its hash'],
      ['current', 'The block at the tip'],
    ],
  },
  {
    path: '/price/',
    maxAgeSeconds: 30,
    keptSeconds: 30,
    about: [
      ['{bytes}', 'The least reward for so many bytes', text],
      ['{bytes}/{address}', 'The same, paid to a wallet that may be new', text],
    ],
  },
  {
    path: '/wallet/',
    maxAgeSeconds: 30,
    keptSeconds: 1,
    about: [
      ['{address}/balance', 'What a wallet owns', text],
      ['{address}/last_tx', 'The last transaction of a wallet', text],
    ],
  },
  { path: '/height', maxAgeSeconds: 20, keptSeconds: 1, about: [['', 'The height of the tip', text]] },
  {
    path: '/unconfirmed_tx/',
    maxAgeSeconds: 20,
    keptSeconds: 1,
    holdsContent: true,
    about: [['{id}', 'A transaction that may wait for a block']],
  },
]

/** Answers that change at any time: a transaction's status, and what is pending. */
const momentary = /\/(status|pending)$/i

/** Paths about one transaction; headers of format 1 hold their data. */
const ofTransaction = /^\/(?:tx|unconfirmed_tx)\/([^/]+)/

/** Answers up to this size are read whole, shared by concurrent requests, and kept. */
const smallMax = 1 << 20
/** A transaction with 12 MiB of data in it, in base64url; the largest blocks have 16 MiB. */
const largeMax = 20 << 20
/** Large answers that have to be complete before they are sent, at once; each is in memory until its reader has it. */
const gatheredMax = 6

/** Characters of an id. */
const idLength = 43

const pathShape = /^(\/[A-Za-z0-9_.,~-]+)+\/?$/

type Opened =
  | { readonly kind: 'small'; readonly answer: KeptAnswer }
  | { readonly kind: 'large'; readonly answer: RelayedAnswer; readonly begun: Gathered }

/** What nodes answer about the chain, under the paths that clients of nodes know. */
export function passthroughRoutes(parts: PassthroughParts): Route[] {
  const passage = new Passage(parts)
  return rules.map((rule) => ({
    family: 'other',
    path: rule.path,
    methods: ['GET', 'HEAD'],
    about: aboutOf(rule),
    handle: (request, reply, first) => passage.handle(rule, request, reply, first),
  }))
}

const statuses = [200, 202, 206, 208, 400, 402, 403, 404, 408, 410, 421, 429, 451, 502, 504]

function aboutOf({ path, about }: Rule): Operations {
  const described = ([rest, summary, type]: DescribedPath): Operation => {
    return { path: path + rest, summary: `${summary}, as nodes say it`, statuses, ...(type ? { type } : {}) }
  }
  const [first, ...others] = about
  return [described(first), ...others.map(described)]
}

/**
 * Only types that browsers do not execute: the data of a transaction comes from anybody, and this host's origin is the
 * gateway's own.
 */
export function relayedType(type: string | undefined): string {
  const bare = (type ?? '').split(';')[0]?.trim().toLowerCase()
  if (bare === 'application/json') return jsonType
  return bare === 'application/octet-stream' ? bare : textType
}

class Passage {
  readonly #kept: KeptAnswers
  readonly #flights = new Map<string, Promise<Opened | Refusal>>()
  readonly #relays: RequestSlots
  readonly #gathering = new RequestSlots(gatheredMax)

  constructor(private readonly parts: PassthroughParts) {
    this.#relays = RequestSlots.quarters(parts.relaysMax)
    this.#kept = new KeptAnswers(parts.keptBytes, parts.clock)
  }

  async handle(rule: Rule, request: Request, reply: Reply, first: string): Promise<void> {
    // The router ignores letter case and a slash at the end of whole paths, nodes do not.
    const path = rule.path.endsWith('/') ? rule.path + request.path.slice(rule.path.length) : rule.path
    if (!pathShape.test(path) || path.split('/').some((part) => part === '.' || part === '..')) {
      const wrong = { status: 400, type: textType, lines: noStore, body: 'Invalid path' }
      return answerSmall(request, reply, first, wrong)
    }
    const { guard } = this.parts
    const idText = ownText(ofTransaction.exec(path)?.[1] ?? '')
    const id = parseId(idText)
    if (id === undefined && idText.length === idLength) {
      // Nodes accept several spellings of an id; the block list knows the canonical one only.
      const wrong = { status: 400, type: textType, lines: noStore, body: `Invalid ID: ${idText}` }
      return answerSmall(request, reply, first, wrong)
    }
    if (guard?.isOn === true && id !== undefined && guard.blocksKnown(id)) {
      return answerBlocked(request, reply, first, guard, id)
    }
    const call = { request, reply, first }
    const kept = this.#kept.find(path)
    if (kept !== undefined) {
      const lines = `${linesOf(kept.answer.status, rule)}\r\nAge: ${kept.ageSeconds}\r\nX-Cache: HIT`
      return this.#send(call, rule, { ...kept.answer, lines })
    }
    const opened = await this.#open(path, rule, this.parts.clientOf(request))
    if (isRefusal(opened)) {
      logRefusal(this.parts.log, request, opened)
      return answerSmall(request, reply, first, refusedAnswer(opened))
    }
    if (opened.kind === 'small') {
      const lines = `${linesOf(opened.answer.status, rule)}\r\nX-Cache: MISS`
      return this.#send(call, rule, { ...opened.answer, lines })
    }
    await this.#large(opened, rule, call)
  }

  /**
   * Sends an answer from memory after its content was checked against the block list; answers that hold content are metered.
   */
  async #send(call: SlotRequest, rule: Rule, answer: KeptAnswer & { readonly lines: string }): Promise<void> {
    const { request, reply, first } = call
    const { guard, admission } = this.parts
    const spans = rule.holdsContent === true ? contentSpans(answer.body) : []
    if (guard?.needsDigests === true && spans.length > 0) {
      const isBlocked = await holdsBlocked(answer.body, spans, (digest) => guard.blocksDigest(digest))
      if (isBlocked) return answerBlockedAs(call, guard, `content: ${request.path}`)
    }
    if (spans.length === 0 && answer.body.length <= smallMax)
      return answerSmall(request, reply, first, answer)
    const bytes = request.method === 'HEAD' ? 0 : answer.body.length
    await admitted(admission, call, { bytes, contentType: answer.type, domain: 'data' }, async (grant) => {
      const { status, type, lines, body } = answer
      const head = { status, block: `${first}\r\nContent-Type: ${type}${lines}${grant.lines}` }
      if (request.method === 'HEAD') reply.endEmpty(head, body.length)
      else return (await reply.stream(head, [{ bytes: body }], noContent)).bytes
      return 0
    })
  }

  /** Small answers are shared; a large one is streamed to the first client, and the others send requests of their own. */
  async #open(path: string, rule: Rule, client: string): Promise<Opened | Refusal> {
    const running = this.#flights.get(path)
    if (running !== undefined) {
      const shared = await running
      return isRefusal(shared) || shared.kind === 'small' ? shared : this.#ask(path, rule, client)
    }
    const flight = this.#ask(path, rule, client).finally(() => this.#flights.delete(path))
    this.#flights.set(path, flight)
    return flight
  }

  async #ask(path: string, rule: Rule, client: string): Promise<Opened | Refusal> {
    const answer = await this.parts.relay.ask({ path, maxBytes: largeMax }, rule.others === true, client)
    if (isRefusal(answer)) return answer
    const begun = new Gathered()
    if ((answer.sizeBytes ?? 0) > smallMax) return { kind: 'large', answer, begun }
    while (begun.sizeBytes <= smallMax) {
      const piece = await answer.next()
      if (isRefusal(piece)) return piece
      if (piece === undefined) return { kind: 'small', answer: this.#keep(path, rule, answer, begun.bytes()) }
      begun.add(piece)
    }
    return { kind: 'large', answer, begun }
  }

  #keep(path: string, rule: Rule, answer: RelayedAnswer, bytes: Uint8Array): KeptAnswer {
    const { status, contentType } = answer
    const kept = { status, type: relayedType(contentType), body: Buffer.from(bytes) }
    if (status === 200) {
      this.#kept.keep(path, kept, momentary.test(path) ? 1 : rule.keptSeconds)
      this.parts.onAnswer(path, kept.body)
    }
    return kept
  }

  async #large(
    { answer, begun }: Extract<Opened, { kind: 'large' }>,
    rule: Rule,
    call: SlotRequest,
  ): Promise<void> {
    const { request, reply, first } = call
    const { status, sizeBytes } = answer
    const type = relayedType(answer.contentType)
    const lines = `${linesOf(status, rule)}\r\nX-Cache: MISS`
    const mustLook = rule.holdsContent === true && this.parts.guard?.needsDigests === true
    if (reply.aborted) {
      answer.drop()
      return reply.end({ status: 499, block: first })
    }
    if (sizeBytes === undefined || begun.sizeBytes > 0 || mustLook) {
      return this.#gather(answer, begun, rule, call, { status, type, lines })
    }
    let isTaken = false
    await inSlot(this.#relays, this.parts.clientOf(request), call, async () => {
      const bytes = request.method === 'HEAD' ? 0 : sizeBytes
      const charge = { bytes, contentType: type, domain: 'data' } as const
      await admitted(this.parts.admission, call, charge, async (grant) => {
        const head = { status, block: `${first}\r\nContent-Type: ${type}${lines}${grant.lines}` }
        if (bytes === 0) {
          reply.endEmpty(head, sizeBytes)
          return 0
        }
        isTaken = true
        const body = new RelayedBody(answer, sizeBytes)
        return (await reply.stream(head, [{ start: 0, end: sizeBytes }], body)).bytes
      })
    })
    if (!isTaken) answer.drop()
  }

  /** Reads an answer to its end first where it must not be sent incomplete, or has to be checked before. */
  async #gather(
    answer: RelayedAnswer,
    begun: Gathered,
    rule: Rule,
    call: SlotRequest,
    head: Omit<KeptAnswer, 'body'> & { readonly lines: string },
  ): Promise<void> {
    const { request, reply, first } = call
    let isTaken = false
    await inSlot(this.#gathering, this.parts.clientOf(request), call, async () => {
      isTaken = true
      const rest = await wholeBody(answer)
      if (isRefusal(rest)) return answerSmall(request, reply, first, refusedAnswer(rest))
      await this.#send(call, rule, { ...head, body: Buffer.concat([begun.bytes(), rest]) })
    })
    if (!isTaken) answer.drop()
  }
}

/** Only answers with 200 are cached: what is missing now may come with the next block. */
function linesOf(status: number, rule: Rule): string {
  const caching = status === 200 ? `\r\nCache-Control: public, max-age=${rule.maxAgeSeconds}` : noStore
  return `${caching}\r\nX-Content-Type-Options: nosniff`
}
