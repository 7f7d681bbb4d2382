/** Requests to the upload service: their routes, and the way from a route's answer to the socket. */
import { type Id, parseId } from '../../format/id.js'
import type { Reply, Request } from '../../http/exchange.js'
import type { Operation, Operations } from '../../http/operation.js'
import { answerSmall, textType } from '../../http/small-answer.js'
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

/** Routes for a host (serving/service-host.ts), each at the root and below /v1. Paths that begin alike are one route there. */
export function uploadHostRoutes(routes: readonly UploadRoute[]): Route[] {
  const groups = new Map<string, UploadRoute[]>()
  for (const route of routes) {
    const versioned = { ...route, path: route.path === '/' ? version : version + route.path }
    for (const one of [route, versioned]) {
      const brace = one.path.indexOf('{')
      const prefix = brace < 0 ? one.path : one.path.slice(0, brace)
      groups.set(prefix, [...(groups.get(prefix) ?? []), one])
    }
  }
  // With a slash at its end a path may fall to the group below it.
  const above = (path: string): UploadRoute[] => groups.get(path.replace(/\/$/, '')) ?? []
  return [...groups].map(([path, members]) => ({
    family: 'upload',
    path,
    methods: [...new Set([...members, ...above(path)].flatMap(methodsOf))],
    optionLines: members.map(({ optionLines = '' }) => optionLines).join(''),
    about: members.map(({ answer: _, method: __, optionLines: ___, ...about }, at) => ({
      ...about,
      methods: methodsOf(members[at] as UploadRoute),
    })) as unknown as Operations,
    handle: (request, reply, lines) => handle([...members, ...above(path)], request, reply, lines),
  }))
}

function methodsOf({ method = 'GET' }: UploadRoute): string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method]
}

async function handle(
  members: readonly UploadRoute[],
  request: Request,
  reply: Reply,
  lines: string,
): Promise<void> {
  const segments = request.path.split('/')
  if (segments.length > 2 && segments.at(-1) === '') segments.pop()
  const matching = members.flatMap((route) => {
    const parameters = match(route.path.split('/'), segments)
    return parameters === undefined ? [] : [{ route, parameters }]
  })
  const found = matching.find(({ route }) => methodsOf(route).includes(request.method))
  const answer =
    found === undefined
      ? matching.length === 0
        ? fixedAnswers.notHere
        : { status: 405, text: 'Method Not Allowed' }
      : await diskSafeAnswer(found.route, request, found.parameters, reply)
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

function match(shape: readonly string[], segments: readonly string[]): Record<string, string> | undefined {
  if (shape.length !== segments.length) return undefined
  const parameters: Record<string, string> = {}
  for (const [at, wanted] of shape.entries()) {
    const given = segments[at] ?? ''
    if (wanted.startsWith('{')) parameters[wanted.slice(1, -1)] = given
    else if (wanted !== given.toLowerCase()) return undefined
  }
  return parameters
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
