import type { Log } from '../actor/log.js'
import { type Relay, wholeBody } from '../chain/relay.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { logRefusal } from '../gateway/blocked-answer.js'
import type { Reply, Request } from '../http/exchange.js'
import type { Operations } from '../http/operation.js'
import { answerSmall, noStore, textType } from '../http/small-answer.js'
import { type ClientOf, inSlot } from '../serving/in-slot.js'
import { refusedAnswer } from '../serving/refused-answer.js'
import { RequestSlots } from '../serving/request-slots.js'
import type { Route } from '../serving/route.js'
import { relayedType } from './passthrough.js'
import { smallMaxBytes, type TransactionJudge } from './transaction-judge.js'

export interface TransactionPostParts {
  readonly relay: Relay
  readonly judge: Pick<TransactionJudge, 'faultOf'>
  readonly log: Log
  /** Posts being handled at once with bodies up to 64 KiB, as nearly all are. */
  readonly postsMax: number
  /** The same of larger ones, and of unknown size: each may hold three times its 15 MiB. */
  readonly largePostsMax: number
  readonly clientOf: ClientOf
  /** Checked, but not passed on to nodes. */
  readonly dryRun: boolean
}

/** Nodes take 10 MiB of data inside of a transaction; that is 14 MiB of base64url. */
const bodyMax = 15 << 20
/** Answers of nodes to a transaction are short; longer ones are refused. */
const answerMax = 100_000

/** Further nodes to which an accepted transaction is passed on. */
const othersMax = 2

class TransactionPost implements Route {
  readonly family = 'other'
  readonly path = '/tx'
  readonly methods = ['POST']
  readonly about: Operations = [
    {
      path: '/tx',
      summary: 'Offers a transaction to nodes; the answer is theirs',
      statuses: [200, 202, 208, 400, 408, 410, 413, 502, 504],
      type: 'text/plain',
    },
  ]
  readonly #posts: Readonly<Record<'small' | 'large', RequestSlots>>

  constructor(private readonly parts: TransactionPostParts) {
    const { postsMax, largePostsMax } = parts
    this.#posts = { small: RequestSlots.quarters(postsMax), large: RequestSlots.quarters(largePostsMax) }
  }

  async handle(request: Request, reply: Reply, first: string): Promise<void> {
    const size = Number(request.header('content-length') ?? Number.POSITIVE_INFINITY)
    const slots = this.#posts[size <= smallMaxBytes ? 'small' : 'large']
    const client = this.parts.clientOf(request)
    await inSlot(slots, client, { request, reply, first }, () => this.#take(request, reply, first, client))
  }

  async #take(request: Request, reply: Reply, first: string, client: string): Promise<void> {
    const body = await request.body(bodyMax)
    if (isRefusal(body)) return answerSmall(request, reply, first, refusedAnswer(body))
    const wrong = await this.parts.judge.faultOf(body)
    if (isRefusal(wrong)) return answerSmall(request, reply, first, refusedAnswer(wrong))
    if (wrong !== undefined || this.parts.dryRun) {
      const status = wrong === undefined ? 200 : 400
      return answerSmall(request, reply, first, {
        status,
        type: textType,
        lines: noStore,
        body: wrong ?? 'OK',
      })
    }
    const question = { path: '/tx', post: Buffer.from(body).toString('utf8'), maxBytes: answerMax }
    const answer = await this.parts.relay.ask(question, false, client)
    const words = isRefusal(answer) ? answer : await wholeBody(answer)
    if (isRefusal(answer) || isRefusal(words)) {
      const refusal = isRefusal(answer) ? answer : (words as Refusal)
      logRefusal(this.parts.log, request, refusal)
      return answerSmall(request, reply, first, refusedAnswer(refusal))
    }
    const type = relayedType(answer.contentType)
    answerSmall(request, reply, first, { status: answer.status, type, lines: noStore, body: words })
    if (answer.status === 200)
      await this.parts.relay.spread(question, { besides: answer.node, client, count: othersMax })
  }
}

/**
 * `POST /tx`: a valid transaction is handed to a node, whose answer the client gets; then to two others, because a node may
 * be lost with what it accepted.
 */
export function transactionPostRoute(parts: TransactionPostParts): Route {
  return new TransactionPost(parts)
}
