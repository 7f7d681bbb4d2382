import { decodeBase64url } from '../format/base64url.js'
import type { Reply, Request } from '../http/exchange.js'
import type { Operations } from '../http/operation.js'
import { inHtml } from '../http/page.js'
import { answerSmall, htmlType, jsonType, noStore } from '../http/small-answer.js'
import type { Denial, Paid } from './admission-port.js'
import { type Paywall, redirectPath, redirectTarget, testPath } from './paywall.js'
import type { X402 } from './x402.js'

export interface X402RouteParts {
  /** `/gateway`, or the prefix of the vocabulary. */
  readonly pathPrefix: string
  readonly payments: X402
  readonly paywall: Paywall
  /** Address of the client whose bucket is filled. */
  clientOf(request: Request): string
}

/** A route as the gateway takes it. */
interface PaidRoute {
  readonly family: 'other'
  readonly path: string
  readonly methods: readonly string[]
  readonly about: Operations
  handle(request: Request, reply: Reply, lines: string): Promise<void>
}

/** Pages of these routes run no scripts. */
const still =
  "\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff"

/** `/x402/test`, a paid echo, and `/x402/browser-paywall-redirect/{base64url}`, where the paywall pays. */
export function x402Routes(parts: X402RouteParts): PaidRoute[] {
  const { pathPrefix } = parts
  const methods = ['GET', 'HEAD']
  return [
    {
      family: 'other',
      methods,
      path: pathPrefix + testPath,
      about: [{ path: pathPrefix + testPath, summary: 'A paid echo', statuses: [200, 402] }],
      handle: (...given) => echo(parts, ...given),
    },
    {
      family: 'other',
      methods,
      path: pathPrefix + redirectPath,
      about: [
        {
          path: `${pathPrefix}${redirectPath}{url}`,
          summary: 'Where the page for browsers pays, on its way back',
          statuses: [200, 400, 402],
          type: 'text/html',
        },
      ],
      handle: (...given) => lead(parts, ...given),
    },
  ]
}

async function echo(parts: X402RouteParts, request: Request, reply: Reply, lines: string): Promise<void> {
  const paid = await payFor(parts, request, 0, jsonType)
  if ('status' in paid) return deny(request, reply, lines, paid)
  const json = { success: true, message: 'Payment received', tokensAdded: paid.tokens }
  answerSmall(request, reply, lines, { status: 200, lines: noStore + paid.lines, json })
}

async function lead(parts: X402RouteParts, request: Request, reply: Reply, lines: string): Promise<void> {
  const wrong = (error: string): void =>
    answerSmall(request, reply, lines, { status: 400, lines: noStore, json: { error } })
  const encoded = request.path.slice(parts.pathPrefix.length + redirectPath.length)
  const decoded = decodeBase64url(encoded)
  if (decoded === undefined || decoded.length === 0) return wrong('Invalid encoded URL')
  const target = redirectTarget(decoded, request.header('host'))
  // Nor back to a path that requires a payment again.
  if (target === undefined || isPaid(parts, target)) return wrong('Invalid redirect URL')
  const paid = await payFor(parts, request, parts.paywall.sealedBytes(request.query), htmlType)
  if ('status' in paid) return deny(request, reply, lines, paid)
  const href = inHtml(target)
  const body = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${href}"><title>Paid</title></head>
<body><p>Paid. <a href="${href}">Go on</a></p></body></html>
`
  const about = { status: 200, type: htmlType, lines: noStore + paid.lines + still }
  answerSmall(request, reply, lines, { ...about, body })
}

/** A payment of its own, whatever free allowance there is: that is what these addresses are for. */
async function payFor(
  { payments, clientOf }: X402RouteParts,
  request: Request,
  bytes: number,
  contentType: string,
): Promise<Paid | Denial> {
  const charge = { request, bytes, contentType }
  return (await payments.pay(charge, clientOf(request))) ?? payments.demand(charge)
}

function isPaid({ pathPrefix }: X402RouteParts, target: string): boolean {
  return target.toLowerCase().startsWith(`${pathPrefix}/x402/`)
}

function deny(request: Request, reply: Reply, lines: string, denial: Denial): void {
  const { status, contentType: type, body } = denial
  answerSmall(request, reply, lines, { status, type, lines: denial.lines, body })
}
