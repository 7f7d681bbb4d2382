import type { TimedTurns } from '../../actor/timed-turns.js'
import type { Clients } from '../../admission/clients.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { Request } from '../../http/exchange.js'
import type { CreditsPort } from '../../payment/credits-port.js'
import { textAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { UploadRoute } from '../requests/upload-route.js'
import { addressShape, uploaderAddress } from '../requests/uploader.js'

/** The calls of the payment service that these routes need. */
export type QuotedCredits = Pick<CreditsPort, 'price' | 'check'>

/**
 * Questions of anybody that the payment service answers: few at once, by turns of clients, so that they take neither its time nor
 * the connections to it from uploads.
 */
export const questionTurns = { atOnce: 4, waitingMax: 512, eachMax: 64, patienceMs: 900 }

/** Who answers questions about credits, and in whose turn. */
export interface CreditsQuestions {
  /** Absent: the service has no payments. */
  readonly credits: QuotedCredits | undefined
  readonly turns: Pick<TimedTurns, 'run'>
  readonly clients: Clients
}

/** Prices of items and balances of wallets as plain numbers, in winc. */
export function creditsRoutes(questions: CreditsQuestions): UploadRoute[] {
  const prices = {
    summary: 'What an item costs, in winc',
    statuses: [200, 400, 404, 429, 503],
    type: 'text/plain',
    answer: (request: Request, { byteCount = '' }: Readonly<Record<string, string>>) =>
      priceAnswer(questions, request, byteCount),
  }
  const balances = {
    summary:
      'Credits of a wallet, in winc: for clients of older releases, which ask here and not the payment service',
    statuses: [200, 400, 404, 429, 503],
    type: 'text/plain',
    query: ['address'],
    answer: (request: Request) => balanceAnswer(questions, request),
  }
  return [
    { ...prices, path: '/price/{byteCount}' },
    { ...prices, path: '/price/{token}/{byteCount}' },
    { ...balances, path: '/account/balance' },
    { ...balances, path: '/account/balance/{token}' },
  ]
}

const away = textAnswer(503, 'Payment Service is unreachable', '\r\nRetry-After: 1')
const tooOften = textAnswer(429, 'Too many questions of this client wait', '\r\nRetry-After: 1')
const noCredits = textAnswer(404, 'This service takes what is free, and nothing else')

async function priceAnswer(
  { credits, turns, clients }: CreditsQuestions,
  request: Request,
  byteCount: string,
): Promise<UploadAnswer> {
  const bytes = /^\d{1,15}$/.test(byteCount) ? Number(byteCount) : 0
  if (bytes === 0) return textAnswer(400, 'Invalid byte count: a whole number of at least 1')
  if (credits === undefined) return noCredits
  const priced = await turns.run(clients.of(request).address, () => credits.price(bytes))
  return isRefusal(priced) ? awayOf(priced) : textAnswer(200, priced.winc)
}

async function balanceAnswer(
  { credits, turns, clients }: CreditsQuestions,
  request: Request,
): Promise<UploadAnswer> {
  const address = new URLSearchParams(request.query).get('address')
  if (address === null) return textAnswer(400, 'Missing address in query parameters')
  if (!addressShape.test(address)) return textAnswer(400, 'Invalid address')
  if (credits === undefined) return noCredits
  const signatureType = address.startsWith('0x') ? 3 : 1
  const client = clients.of(request).address
  const asker = uploaderAddress(client)
  const order = { address, signatureType, paidBy: [], bytes: 1, isQuestion: true as const }
  const checked = await turns.run(client, () =>
    credits.check(asker === undefined ? order : { ...order, asker }),
  )
  return isRefusal(checked) ? awayOf(checked) : textAnswer(200, checked.balance)
}

function awayOf(refusal: Refusal): UploadAnswer {
  return refusal.fault === 'client' ? tooOften : away
}
