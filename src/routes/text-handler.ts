import { isDenial } from '../admission/admission-port.js'
import type { Id } from '../format/id.js'
import { admitExchange, answerDenied } from '../gateway/admit.js'
import type { Delivery } from '../gateway/deliver.js'
import type { DeliveryParts } from '../gateway/delivery-parts.js'
import type { Located } from '../gateway/locator.js'
import type { Planned } from '../gateway/plan.js'
import { send } from '../gateway/send.js'
import { enter } from '../gateway/steps.js'
import { textType } from '../http/small-answer.js'
import { answerGone, closeOpened } from '../serving/exchange-answers.js'
import type { Exchange } from '../serving/request-exchange.js'
import type { Content } from '../store/content.js'
import { Base64urlContent } from './base64url-content.js'

/** Caching as nodes state it for fields of a transaction. */
const lines = '\r\nCache-Control: public, max-age=30\r\nX-Content-Type-Options: nosniff'

/**
 * `/tx/{id}/data`: content as base64url text, as clients of nodes know it. The bytes are located, checked against the block
 * list and metered like all content. The text has no ranges, no tag and no digest, because those belong to the bytes.
 */
export class TextHandler {
  constructor(
    private readonly parts: Pick<DeliveryParts, 'requestLog' | 'locator' | 'admission' | 'guard'>,
    private readonly delivery: Delivery,
  ) {}

  handle(exchange: Exchange, id: Id): void {
    const found = this.parts.locator.locate(exchange, id)
    if (!this.delivery.refusesBlocked(exchange, id, found))
      this.delivery.run(exchange, this.#answer(exchange, id, found))
  }

  async #answer(exchange: Exchange, id: Id, found: Located): Promise<void> {
    const { guard } = this.parts
    let now = found
    if (now.at === 'unchecked') {
      const checked = await this.delivery.checked(exchange, id, now.entry)
      if (checked === undefined || this.delivery.refusesBlocked(exchange, id, checked)) return
      now = checked
    }
    if (now.at === 'store') {
      const { content, entry } = now
      const watched = guard?.watched(content, entry.attributes, content.sizeBytes) ?? content
      return this.#send(exchange, watched, true)
    }
    const opened = await this.delivery.bring(
      exchange,
      id,
      undefined,
      now.at === 'nowhere' ? undefined : now.entry,
    )
    if (opened === undefined) return
    const { content, attributes } = opened
    return this.#send(exchange, guard?.watched(content, attributes, attributes.size) ?? content, false)
  }

  async #send(exchange: Exchange, content: Content, isHit: boolean): Promise<void> {
    const { requestLog, admission } = this.parts
    const encoded = new Base64urlContent(content)
    exchange.opened = encoded
    enter(exchange, 'plan')
    const planned = plannedText(exchange, encoded.sizeBytes)
    const outcome = await admitExchange(admission, exchange, planned.bytes, textType)
    if (isDenial(outcome)) {
      closeOpened(exchange)
      return answerDenied(requestLog, exchange, outcome)
    }
    if (exchange.reply.aborted) {
      closeOpened(exchange)
      outcome.returnUnsent(0)
      return answerGone(requestLog, exchange)
    }
    enter(exchange, 'head')
    requestLog.cached(isHit)
    const cache = `\r\nX-Cache: ${isHit ? 'HIT' : 'MISS'}`
    const block = `${exchange.lines}\r\nContent-Type: ${textType}${lines}${cache}${exchange.origin.varies}${outcome.lines}`
    const why = { reason: isHit ? 'hit, as text' : 'miss, as text' }
    send(requestLog, exchange, { status: 200, block }, planned, encoded, outcome, why)
  }
}

function plannedText({ method }: Exchange, sizeBytes: number): Planned {
  const all = { variant: 'whole', status: 200, lines: '', contentLength: sizeBytes } as const
  if (method === 'HEAD' || sizeBytes === 0) return { ...all, pieces: [], bytes: 0 }
  return { ...all, pieces: [{ start: 0, end: sizeBytes }], bytes: sizeBytes }
}
