import type { Log } from '../actor/log.js'
import type { Id } from '../format/id.js'
import type { Refusal } from '../format/refusal.js'
import type { Reply, Request } from '../http/exchange.js'
import { answerSmall, textType } from '../http/small-answer.js'
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

/** Logs what the answer leaves out: what happened at which node, or which limit of this gateway was reached. */
export function logRefusal(log: Log, { method, path }: Request, { refused, fault, message }: Refusal): void {
  if (fault !== 'client')
    log.warn(
      { method, path, refused, reason: message },
      'an answer of a node could not be passed on to the client',
    )
}
