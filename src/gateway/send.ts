import type { Grant } from '../admission/admission-port.js'
import type { Head, Sent } from '../http/exchange.js'
import { forPayer } from '../serving/receipts.js'
import type { Ending, Exchange } from '../serving/request-exchange.js'
import type { RequestLog } from '../serving/request-log.js'
import type { Content } from '../store/content.js'
import type { Planned } from './plan.js'
import { enter } from './steps.js'

type Why = Pick<Ending, 'reason' | 'source'>

/** Sends what was planned, closes the content, and finishes the exchange when the last byte is out. */
export function send(
  requestLog: RequestLog,
  exchange: Exchange,
  plannedHead: Head,
  planned: Planned,
  content: Content | undefined,
  grant: Grant,
  why: Why,
): void {
  enter(exchange, 'send')
  const { reply } = exchange
  const head = forPayer(plannedHead)
  const { pieces, bytes, contentLength } = planned
  exchange.answered = true
  exchange.opened = undefined
  if (content === undefined || bytes === 0) {
    content?.close()
    if (exchange.method === 'HEAD' || planned.variant === 'unchanged') reply.endEmpty(head, contentLength)
    else reply.end(head)
    finishSend(requestLog, exchange, planned, { outcome: 'whole', bytes: 0 }, grant, why)
    return
  }
  // No promise where the bytes are in memory and the socket takes them all.
  const sent = reply.stream(head, pieces, content)
  if (!(sent instanceof Promise)) {
    finishSend(requestLog, exchange, planned, sent, grant, why)
    return
  }
  void sent.then((ended) => finishSend(requestLog, exchange, planned, ended, grant, why))
}

function finishSend(
  requestLog: RequestLog,
  exchange: Exchange,
  { status }: Planned,
  { bytes, outcome }: Sent,
  grant: Grant,
  why: Why,
): void {
  grant.returnUnsent(bytes)
  requestLog.finish(exchange, { status, bytes, outcome, reason: why.reason, source: why.source ?? '' })
}
