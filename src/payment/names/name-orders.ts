import { isRefusal } from '../../format/refusal.js'
import { type RequestSigner, requestSigner } from '../../proof/signed-request.js'
import type { Wallets } from '../books/wallets.js'
import type { Cards } from '../cards/cards.js'
import { isDenied, type Payer } from '../credits-port.js'
import type { Quotes } from '../prices/quotes.js'
import { plainAnswer, type RouteAnswer, type RouteRequest } from '../requests/payment-route.js'
import type { NamePurchase, NamePurchases } from './name-purchases.js'

export interface NameShop {
  readonly purchases: NamePurchases
  readonly wallets: Wallets
  readonly cards: Cards
  readonly quotes: Quotes
}

export const nameBodyMax = 16 * 1024
const nonceShape = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const unsigned = plainAnswer(401, 'Signed request is required for this route')
export const oracleGone = plainAnswer(503, 'Pricing Oracle Unavailable')

/** Who pays: the signer, and wallets whose approvals go first. A signature that was made for something else pays nothing. */
export async function nameBuyer(
  wallets: Wallets,
  { header }: RouteRequest,
  paidBy: readonly string[],
): Promise<{ readonly signer: RequestSigner; readonly payer: Payer } | RouteAnswer> {
  const signer = requestSigner(header)
  if (signer === undefined) return unsigned
  if (!nonceShape.test(signer.nonce)) return plainAnswer(400, 'Invalid nonce: purchases are named by a UUID')
  await wallets.takeOverAlias(signer.address, signer.alias)
  const { address, signatureType, alias } = signer
  return { signer, payer: { address, signatureType, alias, paidBy } }
}

/** What became of an order, for its client. */
export function orderAnswer(
  bought: Awaited<ReturnType<NamePurchases['buy']>>,
  view: (purchase: NamePurchase) => object,
): RouteAnswer {
  if (isRefusal(bought)) return { ...oracleGone, lines: '\r\nRetry-After: 5' }
  if (isDenied(bought)) return plainAnswer(bought.status, bought.text)
  if (bought.state === 'failed')
    return plainAnswer(400, `${bought.why ?? 'It failed'}: the credits were refunded`)
  return { status: bought.state === 'success' ? 200 : 202, json: view(bought) }
}
