import { isRefusal } from '../../format/refusal.js'
import type { Request } from '../../http/exchange.js'
import type { CreditsPort } from '../../payment/credits-port.js'
import { textAnswer, type UploadAnswer } from './upload-answers.js'
import type { UploadRoute } from './upload-service.js'

/** The calls of the payment service that these routes need. */
export type QuotedCredits = Pick<CreditsPort, 'price' | 'check'>

/** An address of any network. */
export const addressShape = /^(?:0[xX][0-9a-fA-F]{40}|[\w-]{32,44}|kyve1[0-9a-z]{38})$/

/** Prices of items and balances of wallets as plain numbers, in winc. `credits` absent: the service has no payments. */
export function creditsRoutes(credits: QuotedCredits | undefined): UploadRoute[] {
  const prices = {
    summary: 'What an item costs, in winc',
    statuses: [200, 400],
    type: 'text/plain',
    act: (_: Request, { byteCount = '' }: Readonly<Record<string, string>>) =>
      priceAnswer(credits, byteCount),
  }
  const balances = {
    summary:
      'Credits of a wallet, in winc: for clients of older releases, which ask here and not the payment service',
    statuses: [200, 400],
    type: 'text/plain',
    query: ['address'],
    act: (request: Request) => balanceAnswer(credits, new URLSearchParams(request.query).get('address')),
  }
  return [
    { ...prices, path: '/price/{byteCount}' },
    { ...prices, path: '/price/{token}/{byteCount}' },
    { ...balances, path: '/account/balance' },
    { ...balances, path: '/account/balance/{token}' },
  ]
}

const away = textAnswer(503, 'Payment Service is unreachable', '\r\nRetry-After: 1')
const noCredits = textAnswer(404, 'This service takes what is free, and nothing else')

async function priceAnswer(credits: QuotedCredits | undefined, byteCount: string): Promise<UploadAnswer> {
  const bytes = /^\d{1,15}$/.test(byteCount) ? Number(byteCount) : 0
  if (bytes === 0) return textAnswer(400, 'Invalid byte count: a whole number of at least 1')
  if (credits === undefined) return noCredits
  const priced = await credits.price(bytes)
  return isRefusal(priced) ? away : textAnswer(200, priced.winc)
}

async function balanceAnswer(
  credits: QuotedCredits | undefined,
  address: string | null,
): Promise<UploadAnswer> {
  if (address === null) return textAnswer(400, 'Missing address in query parameters')
  if (!addressShape.test(address)) return textAnswer(400, 'Invalid address')
  if (credits === undefined) return noCredits
  const signatureType = address.startsWith('0x') ? 3 : 1
  const checked = await credits.check({ address, signatureType, paidBy: [], bytes: 1 })
  return isRefusal(checked) ? away : textAnswer(200, checked.balance)
}
