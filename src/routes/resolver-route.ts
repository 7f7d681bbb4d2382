import { isRefusal } from '../format/refusal.js'
import { absentCaching, readTrail, type Self } from '../gateway/hints.js'
import type { Reply, Request } from '../http/exchange.js'
import { answerSmall, jsonType, textType } from '../http/small-answer.js'
import { parseName } from '../names/name.js'
import { isResolved, type Names, type Outcome, type Resolution } from '../names/names-port.js'
import type { ClientOf } from '../serving/in-slot.js'
import { nameLines } from '../serving/naming.js'
import { refusedAnswer } from '../serving/refused-answer.js'
import type { Route } from '../serving/route.js'
import { type StatementParts, Statements } from '../serving/statements.js'

export interface ResolverParts extends StatementParts {
  readonly names: Names
  readonly clientOf: ClientOf
  readonly self: Self
  /** Cache-Control of the answer that a name does not exist. */
  readonly notFound: string
}

/**
 * `GET|HEAD {prefix}/resolver/{name}`: what a name means. Signed. Neither the block list nor limits apply, because it serves
 * no content.
 */
export function resolverRoute(parts: ResolverParts): Route {
  const { vocabulary, names } = parts
  const statements = new Statements(parts)
  const path = `${vocabulary.pathPrefix}/resolver/`

  const answer = (request: Request, reply: Reply, first: string, outcome: Outcome): void => {
    if (isRefusal(outcome)) {
      answerSmall(request, reply, first, refusedAnswer(outcome))
      return
    }
    if (!isResolved(outcome)) {
      const lines = `\r\nCache-Control: ${absentCaching(request, parts.self, parts.notFound)}`
      answerSmall(request, reply, first, { status: 404, type: textType, lines, body: 'Not found' })
      return
    }
    const lines = [['Content-Type', jsonType] as const, ...nameLines(outcome, vocabulary)]
    const head = { status: 200, block: statements.block(request, first, 200, lines) }
    const body = bodyOf(outcome)
    if (request.method === 'HEAD') reply.endEmpty(head, Buffer.byteLength(body))
    else reply.end(head, body)
  }

  return {
    family: 'info',
    path,
    methods: ['GET', 'HEAD'],
    about: [{ path: `${path}{name}`, summary: 'What a name means', statuses: [200, 404, 499, 502, 504] }],
    async handle(request: Request, reply: Reply, first: string): Promise<void> {
      const name = parseName(request.path.slice(path.length).replace(/\/$/, ''))
      const trail = readTrail(request, parts.self)
      const outcome =
        name === undefined
          ? 'absent'
          : (names.known(name) ?? (await names.resolve(name, trail, parts.clientOf(request))))
      if (!reply.aborted) answer(request, reply, first, outcome)
      else reply.end({ status: 499, block: first })
    },
  }
}

/** `processId` is what the token was called before it had an id of its own. */
function bodyOf({
  id,
  ttlSeconds,
  antId,
  antProgramId,
  resolvedAtMs,
  recordIndex,
  undernameLimit,
}: Resolution): string {
  const token = { processId: antId, antId, antProgramId }
  const fields = {
    txId: id,
    ttlSeconds,
    ...token,
    resolvedAt: resolvedAtMs,
    index: recordIndex,
    limit: undernameLimit,
  }
  return `${JSON.stringify(fields)}\n`
}
