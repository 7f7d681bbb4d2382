import type { Refusal } from '../format/refusal.js'
import { answerSmall, type SmallAnswer, textType } from '../http/small-answer.js'
import { contentAnswers, refusedAnswer } from './refused-answer.js'
import type { Ending, Exchange } from './request-exchange.js'
import type { RequestLog } from './request-log.js'

/** Answers and finishes. HEAD gets the same head without the body. Where the client has left it only finishes. */
export function answerExchange(
  requestLog: RequestLog,
  exchange: Exchange,
  answer: SmallAnswer,
  why: Pick<Ending, 'reason' | 'fault' | 'source'>,
): void {
  // The headers of the name are sent without content as well: the name was resolved.
  const lines = `${answer.lines ?? ''}${exchange.naming?.block ?? ''}${exchange.origin.varies}`
  exchange.answered = true
  answerSmall(exchange.request, exchange.reply, exchange.lines, { ...answer, lines })
  const outcome = exchange.reply.aborted ? 'aborted' : 'whole'
  const code = answer.code === undefined ? {} : { code: answer.code }
  requestLog.finish(exchange, { status: answer.status, bytes: 0, outcome, ...code, ...why })
}

/** The same with a text, which is the reason where none is given. */
export function answerText(
  requestLog: RequestLog,
  exchange: Exchange,
  { status, text, lines = '' }: { readonly status: number; readonly text: string; readonly lines?: string },
  why: Partial<Pick<Ending, 'reason' | 'fault' | 'source'>> = {},
): void {
  answerExchange(
    requestLog,
    exchange,
    { status, type: textType, lines, body: text },
    { reason: text, ...why },
  )
}

/** Closes what is open for the answer, once. */
export function closeOpened(exchange: Exchange): void {
  const { opened } = exchange
  exchange.opened = undefined
  opened?.close()
}

/** An exchange met a bug: never the client's fault, and never silent. What was opened for it is closed. */
export function answerFailed(requestLog: RequestLog, exchange: Exchange, error: unknown): void {
  closeOpened(exchange)
  const text = 'Internal server error'
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
  if (!exchange.answered) answerText(requestLog, exchange, { status: 500, text }, { fault: 'self', reason })
  else if (!exchange.finished) {
    requestLog.finish(exchange, { status: 500, bytes: 0, outcome: 'broken', fault: 'self', reason })
  }
}

/** Answers 405 with the methods of this route. */
export function answerWrongMethod(
  requestLog: RequestLog,
  exchange: Exchange,
  methods: readonly string[],
): void {
  const lines = `\r\nAllow: ${[...methods, 'OPTIONS'].join(', ')}`
  answerText(requestLog, exchange, { status: 405, text: 'Method not allowed', lines }, { fault: 'client' })
}

/** Finishes an exchange whose client left before the answer. */
export function answerGone(requestLog: RequestLog, exchange: Exchange): void {
  exchange.answered = true
  exchange.reply.end({ status: 499, block: exchange.lines })
  requestLog.finish(exchange, { status: 499, bytes: 0, outcome: 'aborted', reason: 'the client left' })
}

/** Answers with a refusal. Ids that are surely unknown may be cached for `notFound` (a Cache-Control value). */
export function answerRefusal(
  requestLog: RequestLog,
  exchange: Exchange,
  refusal: Refusal,
  notFound: string,
): void {
  const answer = refusedAnswer(refusal, contentAnswers)
  const { fault, message: reason } = refusal
  if (answer.status !== 404 || refusal.isUnsure === true)
    answerExchange(requestLog, exchange, answer, { fault, reason })
  else
    answerExchange(
      requestLog,
      exchange,
      { ...answer, lines: `\r\nCache-Control: ${notFound}` },
      { fault: 'client', reason },
    )
}
