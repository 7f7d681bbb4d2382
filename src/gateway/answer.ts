import type { Log } from '../actor/log.js'
import type { Id } from '../format/id.js'
import type { Refusal } from '../format/refusal.js'
import { codeOfRefusal } from '../http/error-codes.js'
import type { Reply, Request } from '../http/exchange.js'
import { answerSmall, noStore, type SmallAnswer, textType } from '../http/small-answer.js'
import { statusOf } from '../http/status.js'
import type { Guard } from './guard.js'

/** Answers for an id that must not be served. */
export function answerBlocked(request: Request, reply: Reply, first: string, guard: Guard, id: Id): void {
  answerBlockedAs({ request, reply, first }, guard, `ID: ${id}`)
}

/** The same where there is no id: `about` names what is blocked. */
export function answerBlockedAs(
  { request, reply, first }: { readonly request: Request; readonly reply: Reply; readonly first: string },
  guard: Guard,
  about: string,
): void {
  const { status, text, lines } = guard.answer(about)
  answerSmall(request, reply, first, { status, type: textType, lines, body: text })
}

const words: Readonly<Record<number, string>> = {
  404: 'Not Found',
  408: 'Request timeout: the body did not arrive in time',
  413: 'Content too large',
  502: 'Bad gateway: no node could give a good answer',
  503: 'Busy: try again',
  504: 'Gateway timeout: the nodes did not answer in time',
}

/** The answer to a refusal: a short text, never cached. Which node said what stands in the log, not in the answer. */
export function refusedAnswer(refusal: Refusal): SmallAnswer {
  const status = statusFor(refusal)
  const retry = status === 503 ? '\r\nRetry-After: 1' : ''
  const code = codeOfRefusal(refusal.refused, status)
  return { status, type: textType, lines: `${noStore}${retry}`, body: words[status] ?? refusal.message, code }
}

/** Logs what the answer leaves out: what happened at which node, or which limit of this gateway was reached. */
export function logRefusal(log: Log, { method, path }: Request, { refused, fault, message }: Refusal): void {
  if (fault !== 'client')
    log.warn({ method, path, refused, reason: message }, 'the answer of a node could not be passed on')
}

/** Some reasons have another status here: `late` by fault of the client is 408, `too-large` by fault of a node is 502. */
function statusFor({ refused, fault }: Refusal): number {
  if (refused === 'late' && fault === 'client') return 408
  if (refused === 'too-large' && fault !== 'client') return 502
  return statusOf[refused]
}
