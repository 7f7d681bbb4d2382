import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { parsedJson } from '../format/json.js'
import { isRefusal } from '../format/refusal.js'
import type { Guard } from '../gateway/guard.js'
import type { Reply, Request } from '../http/exchange.js'
import { answerSmall, noStore, textType } from '../http/small-answer.js'
import type { LocalRegistry, OrderFault } from '../names/local-registry.js'
import { parseName } from '../names/name.js'
import { isForHere, isFresh, nameOrderText, readNameOrder } from '../names/name-order.js'
import type { Name } from '../names/names-port.js'
import { requestSigner } from '../proof/signed-request.js'
import { refusedAnswer } from '../serving/refused-answer.js'
import type { Route } from '../serving/route.js'
import { diskRefusal, isDiskError } from '../store/disk-error.js'

export interface SetNameParts {
  readonly pathPrefix: string
  /** Root hosts of this gateway, lower case; none: it serves nothing by name. */
  readonly rootHosts: readonly string[]
  /** The list of names of this machine, opened when it is first needed. Absent: resolvers here do not read it. */
  readonly registry?: () => LocalRegistry
  readonly guard: Guard
  readonly clock: Clock
  readonly log: Log
  readonly clientOf: (request: Request) => string
}

const bodyMaxBytes = 4096

/** Answers to clients. */
interface Outcome {
  readonly status: number
  readonly content: string | object
}

/**
 * `PUT {prefix}/names/{name}`: a wallet points a name to an id. The operator grants that to wallets (`sluice names grant`). The
 * order is signed for this gateway and this moment, and is carried out once.
 */
export function setNameRoute(parts: SetNameParts): Route {
  const path = `${parts.pathPrefix}/names/`
  return {
    family: 'other',
    path,
    methods: ['PUT'],
    about: [
      {
        path: `${path}{name}`,
        methods: ['PUT'],
        summary: 'Lets a name mean an id, by the signature of a wallet that may set it',
        statuses: [200, 400, 401, 403, 409, 413, 451, 501, 503],
      },
    ],
    async handle(request: Request, reply: Reply, first: string): Promise<void> {
      const body = await request.body(bodyMaxBytes)
      if (isRefusal(body)) return answerSmall(request, reply, first, refusedAnswer(body))
      const text = request.path.slice(path.length).replace(/\/$/, '')
      const { status, content } = await outcomeOf(parts, request, text, Buffer.from(body).toString())
      if (reply.aborted) return reply.end({ status: 499, block: first })
      answerSmall(
        request,
        reply,
        first,
        typeof content === 'string'
          ? { status, type: textType, lines: noStore, body: content }
          : { status, lines: noStore, json: content },
      )
    },
  }
}

async function outcomeOf(
  parts: SetNameParts,
  request: Request,
  text: string,
  body: string,
): Promise<Outcome> {
  const { registry, rootHosts, guard, clock, log, clientOf } = parts
  if (registry === undefined || rootHosts.length === 0)
    return { status: 501, content: 'This gateway serves no names of its own' }
  const name = parseName(text)
  if (name === undefined) return { status: 400, content: 'Not a name: letters, digits, - and _, at most 63' }
  const order = readNameOrder(parsedJson(body))
  if (typeof order === 'string') return { status: 400, content: order }
  if (!isForHere(order, { rootHosts, hostHeader: request.header('host') ?? '' }))
    return {
      status: 403,
      content: `The order is for ${order.gateway}; this gateway is ${rootHosts.join(', ')}`,
    }
  if (!isFresh(order, clock.now())) {
    const now = new Date(clock.now()).toISOString()
    return { status: 400, content: `The order was not signed just now: here it is ${now}. Check the clock` }
  }
  const header = (word: string): string | undefined => request.header(word)
  const signer = requestSigner(header, nameOrderText(name.full, order))
  if (signer === undefined) return { status: 401, content: 'The signature does not hold for this order' }
  const list = registry()
  if (!list.maySet(name, [signer.address, signer.alias])) return notGranted(name, signer.address)
  const blocked = guard.blocksName(name.full) ? guard.answer(`name: ${name.full}`) : undefined
  if (blocked !== undefined) return { status: blocked.status, content: blocked.text }
  const outcome = await list
    .setSigned({ name, record: order.record, signedMs: order.timeMs })
    .catch(unwritten)
  if (typeof outcome !== 'string') return outcome
  if (outcome !== 'set') return refusals[outcome]
  log.info(
    { name: name.full, id: order.record.id, by: signer.address, client: clientOf(request) },
    'a name was set',
  )
  return { status: 200, content: { name: name.full, ...order.record } }
}

function notGranted({ full }: Name, address: string): Outcome {
  const how = `the operator can let it by: sluice names grant ${full} ${address}`
  return { status: 403, content: `${address} may not set the name ${full} here; ${how}` }
}

/** The disk did not take it. Throws any other error. */
function unwritten(error: unknown): Outcome {
  if (!isDiskError(error)) throw error
  return { status: 503, content: diskRefusal(error).message }
}

const refusals: Readonly<Record<OrderFault, Outcome>> = {
  older: { status: 409, content: 'The name was changed since this order was signed' },
  held: { status: 403, content: 'The name was bought: its holder sets it where it was sold' },
  crowded: {
    status: 403,
    content: 'The base name has a thousand names: the operator can add more, and remove some',
  },
  full: { status: 503, content: 'The list of names is full' },
}
