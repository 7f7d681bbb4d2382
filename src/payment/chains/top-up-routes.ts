import { isRefusal, type Refusal } from '../../format/refusal.js'
import { addressKind } from '../books/wallets.js'
import {
  type PaymentRoute,
  plainAnswer,
  type RouteAnswer,
  type RouteRequest,
} from '../requests/payment-route.js'
import type { TopUp } from './top-up.js'
import type { TopUps } from './top-ups.js'

const bodyMax = 4096

/** Payments on chains, reported by their payers. */
export function topUpRoutes(topUps: TopUps): PaymentRoute[] {
  return ['/v1/account/balance/{token}', '/account/balance/{token}'].map((path) => ({
    path,
    summary: 'Reports a payment on a chain',
    statuses: [200, 202, 400, 403, 404],
    method: 'POST',
    bodyMax,
    answer: (call) => submitAnswer(topUps, call),
  }))
}

async function submitAnswer(
  topUps: TopUps,
  { path: [token = ''], body, client }: RouteRequest,
): Promise<RouteAnswer> {
  const tokenName = token.toLowerCase()
  if (!topUps.supports(tokenName)) return plainAnswer(400, 'Token not supported')
  const given = readBody(body)
  if (given === undefined) return plainAnswer(400, 'Invalid JSON in request body')
  const { tx_id: id } = given
  if (typeof id !== 'string' || id === '' || id.length > 128)
    return plainAnswer(400, 'Missing tx_id in request body')
  const outcome = await topUps.submit(tokenName, id, client)
  if (isRefusal(outcome)) return unanswered(outcome)
  if ('status' in outcome) return plainAnswer(outcome.status, outcome.text)
  const { topUp, isNew } = outcome
  const shown = transactionView(topUp)
  if (topUp.state === 'credited') {
    const message = isNew ? 'Transaction credited' : 'Transaction already credited'
    return { status: 200, json: { creditedTransaction: shown, message } }
  }
  if (topUp.state === 'pending') {
    const message = isNew ? 'Transaction pending' : 'Transaction already pending'
    return { status: 202, json: { pendingTransaction: shown, message } }
  }
  return { status: 400, json: { failedTransaction: shown, message: 'Transaction has already failed!' } }
}

function unanswered({ refused, fault }: Refusal): RouteAnswer {
  if (refused === 'busy' && fault === 'client')
    return { status: 429, text: 'Too Many Requests', lines: '\r\nRetry-After: 60' }
  return { status: 503, text: 'The chain could not be reached: try again', lines: '\r\nRetry-After: 5' }
}

function readBody(body: Uint8Array): { readonly tx_id?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function transactionView(topUp: TopUp): object {
  const { id, token, quantity, winc, wallet, sender, height, createdMs, state, why } = topUp
  return {
    transactionId: id,
    tokenType: token,
    transactionQuantity: quantity,
    winstonCreditAmount: winc,
    destinationAddress: wallet,
    destinationAddressType: addressKind(wallet) ?? token,
    transactionSenderAddress: sender,
    createdDate: new Date(createdMs).toISOString(),
    adjustments: [],
    ...(height === undefined ? {} : { blockHeight: height }),
    ...(state === 'failed' ? { failedReason: why ?? '' } : {}),
  }
}
