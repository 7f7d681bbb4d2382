import type { Meter, Meters } from '../actor/meter.js'
import { type Broadcast, type Broadcasted, commonFailure } from '../chain/broadcast.js'
import type { ChunkFinder } from '../chain/chunk-finder.js'
import { parsedJson } from '../format/json.js'
import { isRefusal } from '../format/refusal.js'
import type { Reply, Request } from '../http/exchange.js'
import type { Operations } from '../http/operation.js'
import { answerSmall, noStore } from '../http/small-answer.js'
import { readPostedChunk } from '../proof/posted-chunk.js'
import { type ClientOf, inSlot } from '../serving/in-slot.js'
import { refusedAnswer } from '../serving/refused-answer.js'
import { RequestSlots } from '../serving/request-slots.js'
import type { Route } from '../serving/route.js'

export interface ChunkPostParts {
  readonly finder: ChunkFinder
  readonly broadcast: Broadcast
  readonly meters: Meters
  /** Posts being handled at once: each holds about a megabyte while it is read, proven and passed on to nodes. */
  readonly postsMax: number
  readonly clientOf: ClientOf
  /** Checked, but not passed on to nodes. */
  readonly dryRun: boolean
}

/** 256 KiB in base64url, and 5 % for proof and names. */
export const chunkBodyMax = 367_001

class ChunkPost implements Route {
  readonly family = 'other'
  readonly path = '/chunk'
  readonly methods = ['POST']
  readonly about: Operations = [
    {
      path: '/chunk',
      summary: 'Offers a chunk to nodes',
      statuses: [200, 400, 404, 408, 413, 499, 502, 504],
    },
  ]
  readonly #outcomes: Readonly<Record<'taken' | 'failed' | 'refused', Meter>>
  readonly #posts: RequestSlots

  constructor(private readonly parts: ChunkPostParts) {
    this.#posts = RequestSlots.quarters(parts.postsMax)
    const of = (outcome: string): Meter => parts.meters.of('chunk_posts_total', { outcome })
    this.#outcomes = { taken: of('taken'), failed: of('failed'), refused: of('refused') }
  }

  async handle(request: Request, reply: Reply, first: string): Promise<void> {
    const client = this.parts.clientOf(request)
    await inSlot(this.#posts, client, { request, reply, first }, () =>
      this.#take(client, request, reply, first),
    )
  }

  async #take(client: string, request: Request, reply: Reply, first: string): Promise<void> {
    const body = await request.body(chunkBodyMax)
    if (isRefusal(body)) {
      this.#outcomes.refused.add(1)
      return answerSmall(request, reply, first, refusedAnswer(body))
    }
    const { finder, broadcast, dryRun } = this.parts
    const ruleset = await finder.rulesNow()
    const posted = readPostedChunk(parsedJson(Buffer.from(body).toString('utf8'), { values: 100 }), ruleset)
    if (typeof posted === 'string') {
      this.#outcomes.refused.add(1)
      return answerJson(request, reply, first, 400, { error: posted })
    }
    if (dryRun) return answerJson(request, reply, first, 200, notBroadcast)
    const outcome = await broadcast.chunk(Buffer.from(body).toString('utf8'), client)
    // Nodes know whether somebody paid for its data: what they refuse takes no memory here.
    if (outcome.successCount > 0) finder.keep(posted, ruleset)
    this.#outcomes[outcome.enough ? 'taken' : 'failed'].add(1)
    const status = outcome.enough ? 200 : commonFailure(outcome.results)
    answerJson(request, reply, first, status, wordsOf(outcome))
  }
}

/**
 * `POST /chunk`: proven here, kept for serving, passed on to nodes. Never rate limited, because the data was paid for on the
 * chain.
 */
export function chunkPostRoute(parts: ChunkPostParts): Route {
  return new ChunkPost(parts)
}

/** The answer about a correct chunk that is not passed on. */
const notBroadcast = { successCount: 0, preferredSuccessCount: 0, failureCount: 0, results: [] }

function wordsOf({ successCount, preferredSuccessCount, failureCount, results }: Broadcasted): object {
  return { successCount, preferredSuccessCount, failureCount, results }
}

function answerJson(request: Request, reply: Reply, first: string, status: number, value: object): void {
  answerSmall(request, reply, first, { status, lines: noStore, json: value })
}
