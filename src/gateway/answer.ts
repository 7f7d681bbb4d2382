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

/** The same for what has no id: `about` says what it is. */
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

/** The answer to a refusal: a plain word, never cached. What exactly happened at which node is not for clients. */
export function refusedAnswer(refusal: Refusal): SmallAnswer {
  const status = statusFor(refusal)
  const retry = status === 503 ? '\r\nRetry-After: 1' : ''
  const code = codeOfRefusal(refusal.refused, status)
  return { status, type: textType, lines: `${noStore}${retry}`, body: words[status] ?? refusal.message, code }
}

/** Says in the log what clients are not told: what happened at which node, or which bound of ours was met. */
export function logRefusal(log: Log, { method, path }: Request, { refused, fault, message }: Refusal): void {
  if (fault !== 'client') log.warn({ method, path, refused, reason: message }, 'nodes could not be relayed')
}

/** The same reason is another status when it is the client who was slow, or a node that sends too much. */
function statusFor({ refused, fault }: Refusal): number {
  if (refused === 'late' && fault === 'client') return 408
  if (refused === 'too-large' && fault !== 'client') return 502
  return statusOf[refused]
}
