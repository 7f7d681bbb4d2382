import { isRefusal } from '../../format/refusal.js'
import type { Request } from '../../http/exchange.js'
import type { CreditsPort } from '../../payment/credits-port.js'
import { textAnswer, type UploadAnswer } from './upload-answers.js'
import type { UploadRoute } from './upload-service.js'

/** Credits, as far as clients ask an upload service for them. */
export type AskedCredits = Pick<CreditsPort, 'price' | 'check'>

/** As any of the networks writes it. */
export const addressShape = /^(?:0[xX][0-9a-fA-F]{40}|[\w-]{32,44}|kyve1[0-9a-z]{38})$/

/** What an item costs, and what a wallet has, as plain numbers. `credits` absent: nobody is paid here. */
export function askedCreditsRoutes(credits: AskedCredits | undefined): UploadRoute[] {
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

async function priceAnswer(credits: AskedCredits | undefined, byteCount: string): Promise<UploadAnswer> {
  const bytes = /^\d{1,15}$/.test(byteCount) ? Number(byteCount) : 0
  if (bytes === 0) return textAnswer(400, 'Invalid byte count: a whole number of at least 1')
  if (credits === undefined) return noCredits
  const told = await credits.price(bytes)
  return isRefusal(told) ? away : textAnswer(200, told.winc)
}

async function balanceAnswer(
  credits: AskedCredits | undefined,
  address: string | null,
): Promise<UploadAnswer> {
  if (address === null) return textAnswer(400, 'Missing address in query parameters')
  if (!addressShape.test(address)) return textAnswer(400, 'Invalid address')
  if (credits === undefined) return noCredits
  const signatureType = address.startsWith('0x') ? 3 : 1
  const told = await credits.check({ address, signatureType, paidBy: [], bytes: 1 })
  return isRefusal(told) ? away : textAnswer(200, told.balance)
}
