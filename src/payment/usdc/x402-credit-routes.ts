import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { Request } from '../../http/exchange.js'
import type { Accounts } from '../books/accounts.js'
import { addressKind } from '../books/wallets.js'
import { ordersPath, type UsdcAnswer, type UsdcPort } from '../credits-port.js'
import { isUsdcCall, type UsdcRequest, usdcAnswer } from '../links/credits-messages.js'
import { json, type PaymentRoute, type RouteAnswer, type RouteRequest } from '../requests/payment-route.js'
import { guardedBy } from '../requests/token-guard.js'
import type { X402Sales } from './x402-sales.js'
import type { X402TopUps } from './x402-top-ups.js'

export interface X402CreditParts {
  readonly topUps: X402TopUps
  readonly sales: UsdcPort & Pick<X402Sales, 'settle'>
  readonly accounts: Accounts
  /** PRIVATE_ROUTE_SECRET. */
  readonly secret: string
  readonly now: () => number
}

const bodyMax = 16_384
const wallet = '{signatureType}/{address}'
const itemShape = /^[A-Za-z0-9_-]{1,128}$/

/** Payments by x402: into wallets, and for single items. Errors are JSON here, as clients of that protocol read them. */
export function x402CreditRoutes(parts: X402CreditParts): PaymentRoute[] {
  const { topUps, secret, now } = parts
  const error = 'No authorization provided for authorized route!'
  const guarded = guardedBy(secret, now, { status: 401, json: { error } })
  return [
    {
      path: `/v1/x402/price/${wallet}`,
      summary: 'What so many bytes cost in USDC, as an offer to be signed',
      statuses: [200, 400],
      query: ['bytes'],
      answer: async (call) => {
        const bytes = readBytes(call.query.get('bytes') ?? '')
        if (bytes === undefined) return wrong('Invalid byte count')
        const offer = await offered(topUps, call, bytes)
        if (offer.status !== 402) return offer
        const { x402Version, accepts } = offer.json as { x402Version: number; accepts: unknown }
        return json({ x402Version, accepts })
      },
    },
    {
      path: `/v1/x402/top-up/${wallet}`,
      summary: 'Puts a payment in USDC into a wallet; without one: what so many bytes cost',
      statuses: [200, 400, 402],
      method: 'POST',
      bodyMax,
      answer: (call) => topUpAnswer(parts, call, call.request, objectIn(call.body)?.bytes),
    },
    ...itemRoutes(parts, guarded),
  ]
}

/** Payments for single items. */
function itemRoutes(
  parts: X402CreditParts,
  guarded: (answer: PaymentRoute['answer']) => PaymentRoute['answer'],
): PaymentRoute[] {
  const { sales } = parts
  return [
    {
      path: `/v1/x402/payment/${wallet}`,
      summary: 'Takes a payment in USDC for one item, for a wallet, or for both',
      statuses: [200, 400, 402],
      method: 'POST',
      bodyMax,
      answer: (call) => paymentAnswer(parts, call),
    },
    {
      path: '/v1/x402/finalize',
      summary: 'Compares the size of an item with the one that was paid for',
      statuses: [200, 400, 401, 404],
      method: 'POST',
      bodyMax,
      operator: true,
      answer: guarded((call) => finalAnswer(sales, call)),
    },
    {
      path: ordersPath,
      summary: 'Payments for items of an upload service of the same operator',
      statuses: [200, 400, 401],
      method: 'POST',
      bodyMax,
      operator: true,
      answer: guarded(async (call) => {
        const order = objectIn(call.body)
        if (!isUsdcCall(order?.usdc) || order?.given === undefined) return wrong('Invalid order')
        // Who has the secret is one of our own services, which speak this protocol.
        return json(await usdcAnswer(sales, order as unknown as UsdcRequest))
      }),
    },
  ]
}

/** `request` carries the payment. */
async function topUpAnswer(
  { topUps, accounts }: X402CreditParts,
  { client, path: [, address = ''] }: RouteRequest,
  request: Request,
  bytes: unknown,
): Promise<RouteAnswer> {
  if (addressKind(address) === undefined) return wrong('Invalid address')
  const taken = await topUps.take(request, client, address)
  if (taken === undefined) {
    const requestedBytes = readBytes(String(bytes))
    return requestedBytes === undefined
      ? wrong('Invalid byte count')
      : offered(topUps, { request }, requestedBytes)
  }
  if ('status' in taken) return taken
  const { payment, transaction, winc, lines } = taken
  const balance = await accounts.balance(address)
  const money = { creditsGranted: winc, balance: balance?.winc ?? '0' }
  const credited = {
    success: true,
    ...money,
    txHash: transaction,
    paymentId: payment,
    network: topUps.network,
  }
  return json(credited, lines)
}

async function paymentAnswer(parts: X402CreditParts, call: RouteRequest): Promise<RouteAnswer> {
  const { path, request, body } = call
  const [, address = ''] = path
  const { paymentHeader: header, dataItemId, byteCount, mode = 'payg' } = objectIn(body) ?? {}
  if (addressKind(address) === undefined) return wrong('Invalid address')
  if (mode !== 'payg' && mode !== 'topup' && mode !== 'hybrid')
    return wrong('mode must be one of: payg, topup, hybrid')
  if (header !== undefined && (typeof header !== 'string' || header.length > 8192))
    return wrong('Invalid paymentHeader')
  if (mode === 'topup') return topUpPayment(parts, call, header, byteCount)
  const bytes = readBytes(String(byteCount))
  if (bytes === undefined) return wrong('Invalid byteCount')
  if (typeof dataItemId !== 'string' || !itemShape.test(dataItemId)) return wrong('Invalid dataItemId')
  const wanted = { bytes, resource: parts.topUps.resourceOf(request), mimeType: 'application/json' }
  if (header === undefined) return answerOrNoPrice(await parts.sales.offer(wanted))
  const version = versionOf(header)
  const received = await parts.sales.settle({
    ...wanted,
    itemId: dataItemId,
    address,
    header,
    version,
    asker: call.client,
    ...(mode === 'hybrid' ? { keepsRest: true as const } : {}),
  })
  if (isRefusal(received) || 'status' in received) return answerOrNoPrice(received)
  const { payment, transaction, network, winc, creditedWinc, lines } = received
  const sums = {
    wincPaid: String(winc),
    wincReserved: String(winc - creditedWinc),
    wincCredited: String(creditedWinc),
  }
  return json({ success: true, paymentId: payment, txHash: transaction, network, ...sums, mode }, lines)
}

/** A top-up whose payment stands in the body. */
async function topUpPayment(
  parts: X402CreditParts,
  call: RouteRequest,
  header: string | undefined,
  byteCount: unknown,
): Promise<RouteAnswer> {
  const { request } = call
  const name = header !== undefined && versionOf(header) === 2 ? 'payment-signature' : 'x-payment'
  const carrying: Request = {
    method: request.method,
    path: request.path,
    query: request.query,
    remoteAddress: request.remoteAddress,
    header: (field) => (field === name ? header : carried.has(field) ? undefined : request.header(field)),
    headersUnder: (start) => request.headersUnder(start),
    body: (max) => request.body(max),
    stream: (sink) => request.stream(sink),
  }
  const answer = await topUpAnswer(parts, call, carrying, byteCount)
  if (answer.status !== 200 || !('json' in answer)) return answer
  const { txHash, paymentId, network, creditsGranted } = answer.json as Readonly<Record<string, string>>
  const sums = { wincPaid: creditsGranted, wincReserved: '0', wincCredited: creditsGranted }
  return json({ success: true, paymentId, txHash, network, ...sums, mode: 'topup' }, answer.lines)
}

const carried = new Set(['payment-signature', 'x-payment'])

async function finalAnswer(sales: UsdcPort, { body }: RouteRequest): Promise<RouteAnswer> {
  const { dataItemId, actualByteCount } = objectIn(body) ?? {}
  const bytes = readBytes(String(actualByteCount))
  if (bytes === undefined) return wrong('Invalid actualByteCount')
  if (typeof dataItemId !== 'string' || !itemShape.test(dataItemId)) return wrong('Invalid dataItemId')
  const finished = await sales.finish({ itemId: dataItemId, bytes })
  if (isRefusal(finished)) {
    const status = finished.refused === 'unknown' ? 404 : 503
    return { status, json: { error: finished.message } }
  }
  const { status, refundWinc } = finished
  return json({ success: true, status, actualByteCount: bytes, refundWinc })
}

async function offered(
  topUps: X402TopUps,
  { request }: Pick<RouteRequest, 'request'>,
  bytes: number,
): Promise<{ readonly status: number; readonly json: unknown; readonly lines: string }> {
  const offer = await topUps.offer(request, bytes)
  return isRefusal(offer) ? noPrice : offer
}

const noPrice = { status: 503, json: { error: 'Pricing Oracle Unavailable' }, lines: '\r\nRetry-After: 5' }

function answerOrNoPrice(answer: UsdcAnswer | Refusal): RouteAnswer {
  return isRefusal(answer) ? noPrice : answer
}

/** The version of the protocol that a payment is of. */
function versionOf(header: string): 1 | 2 {
  return objectIn(Buffer.from(header, 'base64'))?.x402Version === 2 ? 2 : 1
}

function readBytes(text: string): number | undefined {
  const bytes = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(bytes) ? bytes : undefined
}

function objectIn(body: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const given: unknown = JSON.parse(Buffer.from(body).toString())
    return typeof given === 'object' && given !== null
      ? (given as Readonly<Record<string, unknown>>)
      : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function wrong(error: string): RouteAnswer {
  return { status: 400, json: { error } }
}
