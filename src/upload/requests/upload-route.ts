/** Requests to the upload service: their routes, and the way from a route's answer to the socket. */
import { type Id, parseId } from '../../format/id.js'
import type { Reply, Request } from '../../http/exchange.js'
import type { Operation } from '../../http/operation.js'
import { answerSmall, textType } from '../../http/small-answer.js'
import {
  fittingRoutes,
  mapGroup,
  namedValues,
  patternGroups,
  patternMethods,
} from '../../serving/path-patterns.js'
import type { Route } from '../../serving/route.js'
import { diskAnswer, fixedAnswers, type UploadAnswer } from './upload-answers.js'

type Method = 'GET' | 'POST' | 'PATCH' | 'HEAD' | 'DELETE'

/** One kind of request that the service answers. */
export interface UploadRoute extends Omit<Operation, 'methods'> {
  /** GET where absent. */
  readonly method?: Method
  /** Lines of answers to OPTIONS, each with CRLF in front. */
  readonly optionLines?: string
  /**
   * Answers. `parameters`: what stands in place of the names in braces of its path. Reads the body before it first waits.
   * `reply`: for interim answers alone.
   */
  answer(
    request: Request,
    parameters: Readonly<Record<string, string>>,
    reply: Pick<Reply, 'inform'>,
  ): UploadAnswer | Promise<UploadAnswer>
}

/** Below which all paths are answered, too. */
const version = '/v1'

const wrongMethod: UploadAnswer = { status: 405, text: 'Method Not Allowed' }

/** Routes for a host (`serviceHost`), each at the root and below /v1. Those that begin alike are one route there. */
export function uploadHostRoutes(routes: readonly UploadRoute[]): Route[] {
  const groups = patternGroups(
    routes.flatMap((route) => [
      route,
      { ...route, path: route.path === '/' ? version : version + route.path },
    ]),
  )
  return [...groups].map(([path, group]) => {
    // With a slash at its end a path may fall to the group below it.
    const members = path.endsWith('/') ? [...group, ...(groups.get(path.slice(0, -1)) ?? [])] : group
    return {
      family: 'upload',
      path,
      methods: [...new Set(members.flatMap(patternMethods))],
      optionLines: group.map(({ optionLines = '' }) => optionLines).join(''),
      about: mapGroup(group, (route) => {
        const { answer: _, method: __, optionLines: ___, ...about } = route
        return { ...about, methods: patternMethods(route) }
      }),
      handle: (request, reply, lines) => answerOfGroup(members, request, reply, lines),
    }
  })
}

/** Has the route of a group answer whose path and method are those of the request. */
async function answerOfGroup(
  members: readonly UploadRoute[],
  request: Request,
  reply: Reply,
  lines: string,
): Promise<void> {
  const fitting = fittingRoutes(members, request.path)
  const found = fitting.find(({ route }) => patternMethods(route).includes(request.method))
  const none = fitting.length === 0 ? fixedAnswers.notHere : wrongMethod
  const answer =
    found === undefined ? none : await diskSafeAnswer(found.route, request, namedValues(found), reply)
  send(request, reply, lines, answer)
}

/** The answer of the route; 503 where the disk refuses a write, because nothing was promised to the client then. */
async function diskSafeAnswer(
  route: UploadRoute,
  request: Request,
  parameters: Readonly<Record<string, string>>,
  reply: Reply,
): Promise<UploadAnswer> {
  try {
    return await route.answer(request, parameters, reply)
  } catch (error) {
    return diskAnswer(error)
  }
}

function send(request: Request, reply: Reply, first: string, answer: UploadAnswer): void {
  const { status, json, text = '', lines = '' } = answer
  if (status === 204) {
    reply.endEmpty({ status, block: first + lines })
    return
  }
  const { type } = answer
  const written = json === undefined ? { type: type ?? textType, body: text } : { json }
  answerSmall(request, reply, first, { status, lines, ...(type === undefined ? {} : { type }), ...written })
}

/** The id in a path; undefined where there is none. */
export function idIn(parameters: Readonly<Record<string, string>>): Id | undefined {
  return parseId(parameters.id ?? '')
}
