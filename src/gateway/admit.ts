import type { Admission, Denial, Domain, Grant } from '../admission/admission-port.js'
import type { Reply, Request } from '../http/exchange.js'
import { answerSmall, type SmallAnswer } from '../http/small-answer.js'
import { answerExchange, answerGone } from '../serving/exchange-answers.js'
import type { Exchange } from '../serving/request-exchange.js'
import type { RequestLog } from '../serving/request-log.js'
import { enter } from './steps.js'

/** The grant of a gateway without limits. */
export const unlimited: Grant = {
  lines: '',
  returnUnsent() {
    // Nothing was taken.
  },
}

/** Takes tokens for the planned answer. Without a promise where the buckets are in memory. */
export function admitExchange(
  admission: Admission | undefined,
  exchange: Exchange,
  bytes: number,
  contentType: string,
): Grant | Denial | Promise<Grant | Denial> {
  enter(exchange, 'admit')
  if (admission === undefined) return unlimited
  const { request, naming, firstTokenTaken } = exchange
  const name = naming?.name
  if (name === undefined) return admission.admit({ request, bytes, contentType, firstTokenTaken })
  return admission.admit({ request, bytes, contentType, firstTokenTaken, name })
}

/**
 * Takes the first token before a request to a source, once for each exchange. False: the exchange was answered, because it was
 * denied or the client left.
 */
export async function takeFirstToken(
  admission: Admission | undefined,
  requestLog: RequestLog,
  exchange: Exchange,
): Promise<boolean> {
  if (admission === undefined || exchange.firstTokenTaken) return true
  const outcome = await admission.takeFirst(exchange.request, exchange.naming?.name)
  if (typeof outcome === 'boolean') exchange.firstTokenTaken = outcome
  if (exchange.reply.aborted) answerGone(requestLog, exchange)
  else if (typeof outcome === 'boolean') return true
  else answerDenied(requestLog, exchange, outcome)
  return false
}

/** Answers an exchange that was denied, and finishes it. */
export function answerDenied(
  requestLog: RequestLog,
  exchange: Exchange,
  { status, contentType, lines, body, reason, delayMs = 0 }: Denial,
): void {
  exchange.reply.delayNext(delayMs)
  const answer = deniedAnswer({ status, contentType, lines, body, reason })
  answerExchange(requestLog, exchange, answer, { reason, fault: 'client' })
}

/** A payment offer (402) is read by wallets and has a page of its own, so it is sent unchanged. */
function deniedAnswer({ status, contentType, lines, body, reason }: Denial): SmallAnswer {
  const answer = { status, type: contentType, lines, body }
  return status === 402 ? answer : { ...answer, words: reason }
}

/**
 * The same for routes without exchanges: takes tokens for `bytes`, then calls `send`, which returns the bytes that it sent. A
 * denial is answered here.
 */
export async function admitted(
  admission: Admission | undefined,
  call: { readonly request: Request; readonly reply: Reply; readonly first: string },
  charge: { readonly bytes: number; readonly contentType: string; readonly domain: Domain },
  send: (grant: Grant) => number | Promise<number>,
): Promise<void> {
  const { request, reply, first } = call
  const outcome = (await admission?.admit({ request, ...charge })) ?? unlimited
  if ('status' in outcome) {
    reply.delayNext(outcome.delayMs ?? 0)
    answerSmall(request, reply, first, deniedAnswer(outcome))
    return
  }
  let sent = 0
  try {
    sent = await send(outcome)
  } finally {
    outcome.returnUnsent(sent)
  }
}
