import { isRefusal } from '../../format/refusal.js'
import type { Transfer } from '../../ledger/transfer.js'
import { requestSigner } from '../../proof/signed-request.js'
import type { FreeTier } from '../credits-port.js'
import { cursorPlaces, jsonOf, limitOf, paged, wrongCursor, wrongLimit } from '../requests/paging.js'
import {
  json,
  type PaymentRoute,
  plainAnswer,
  type RouteAnswer,
  type RouteRequest,
} from '../requests/payment-route.js'
import type { Accounts, HistoryPlace } from './accounts.js'
import { approvalView } from './approvals.js'
import { addressKind, spelled } from './wallets.js'

const missingAddress = 'Missing address in query parameters'

/** Balances, approvals and the history of payments. */
export function accountRoutes(accounts: Accounts, free: FreeTier | undefined): PaymentRoute[] {
  const balanceOf = async (address: string): Promise<RouteAnswer> => {
    const balance = await accounts.balance(address)
    return balance === undefined ? plainAnswer(404, 'User Not Found') : json(balance)
  }
  const ofQuery = async ({ query }: RouteRequest): Promise<RouteAnswer> => {
    const address = query.get('address') ?? ''
    return address === '' ? plainAnswer(400, missingAddress) : balanceOf(address)
  }
  const balance = { summary: 'What a wallet has', statuses: [200, 400, 404], query: ['address'] }
  return [
    {
      ...balance,
      path: '/v1/balance',
      statuses: [200, 403, 404],
      answer: async ({ header, query }) => {
        const signer = requestSigner(header)
        if (signer !== undefined) {
          await accounts.wallets.takeOverAlias(signer.address, signer.alias)
          return balanceOf(signer.address)
        }
        const address = query.get('address') ?? ''
        if (address !== '') return balanceOf(address)
        return plainAnswer(403, 'Invalid signature or missing required headers')
      },
    },
    ...[
      '/v1/account/balance',
      '/v1/account/balance/{token}',
      '/account/balance',
      '/account/balance/{token}',
    ].map((path) => ({ ...balance, path, answer: ofQuery })),
    {
      path: '/v1/account/free',
      summary: 'How many bytes a wallet may still upload for free; null: any number',
      statuses: [200, 503],
      query: ['address'],
      answer: async ({ query, client }) => {
        if (free === undefined) return json({ bytesRemaining: 0 })
        const bytesRemaining = await free.remaining(spelled(query.get('address') ?? ''), client)
        return isRefusal(bytesRemaining)
          ? { ...plainAnswer(503, 'Upload Service is unreachable'), lines: '\r\nRetry-After: 1' }
          : json({ bytesRemaining })
      },
    },
    ...historyRoutes(accounts),
  ]
}

function historyRoutes(accounts: Accounts): PaymentRoute[] {
  return [
    {
      path: '/v1/account/payments',
      summary: 'Payments into the wallet that has signed the request, youngest first',
      statuses: [200, 400, 401],
      query: ['limit', 'cursor'],
      answer: (call) => historyAnswer(accounts, call),
    },
    {
      path: '/v1/account/approvals',
      summary: 'Approvals of one wallet for another',
      statuses: [200, 400],
      query: ['payingAddress', 'approvedAddress', 'limit', 'cursor'],
      answer: (call) => pairAnswer(accounts, call),
    },
    {
      path: '/v1/account/approvals/get',
      summary: 'Approvals that a wallet has given and received',
      statuses: [200, 400],
      query: ['userAddress', 'limit', 'cursor'],
      answer: (call) => sharesAnswer(accounts, call),
    },
  ]
}

async function pairAnswer({ wallets, approvals }: Accounts, { query }: RouteRequest): Promise<RouteAnswer> {
  const [paying, approved] = [query.get('payingAddress') ?? '', query.get('approvedAddress') ?? '']
  if (addressKind(paying) === undefined) return plainAnswer(400, 'Invalid paying address')
  if (addressKind(approved) === undefined) return plainAnswer(400, 'Invalid approved address')
  const limit = limitOf(query, approvalsMax)
  const [after] = cursorPlaces(query, 1) ?? []
  if (limit === undefined) return wrongLimit
  if (after === undefined) return wrongCursor
  const pair = [await wallets.resolve(paying), await wallets.resolve(approved)] as const
  const amount = await approvals.pairSum(...pair)
  const { open, next } = await approvals.pair(...pair, after, limit)
  if (open.length === 0 && after === '') {
    const addresses = `approved address '${approved}' and paying address '${paying}'`
    return plainAnswer(400, `No valid approvals found for ${addresses}`)
  }
  const views = open.map(approvalView)
  const expiresBy = views[0]?.expirationDate
  const listed = {
    approvals: views,
    amount: String(amount),
    ...paged(next === undefined ? undefined : [next]),
  }
  return json(expiresBy === undefined ? listed : { ...listed, expiresBy })
}

async function sharesAnswer(accounts: Accounts, { query }: RouteRequest): Promise<RouteAnswer> {
  const address = query.get('userAddress') ?? ''
  if (address === '') return plainAnswer(400, 'Missing userAddress in query parameters')
  const limit = limitOf(query, approvalsMax)
  const places = cursorPlaces(query, 2)
  if (limit === undefined) return wrongLimit
  if (places === undefined) return wrongCursor
  // A list that has ended is marked in the cursor: it must not begin again.
  const [given, received] = places.map((place) => (place === over ? undefined : place))
  const { next, ...lists } = await accounts.approvalsOf(address, { given, received }, limit)
  return json({ ...lists, ...paged(next && [next.given ?? over, next.received ?? over]) })
}

/** Length of a page of approvals, unless less is requested. */
const approvalsMax = 100
const over = '-'

async function historyAnswer(accounts: Accounts, { query, header }: RouteRequest): Promise<RouteAnswer> {
  const signer = requestSigner(header)
  if (signer === undefined) return plainAnswer(401, 'Signature required')
  const limit = limitOf(query, 50)
  if (limit === undefined) return wrongLimit
  const cursor = query.get('cursor') ?? ''
  const after = cursor === '' ? undefined : readCursor(cursor)
  if (cursor !== '' && after === undefined) return wrongCursor
  await accounts.wallets.takeOverAlias(signer.address, signer.alias)
  const { page, next } = await accounts.payments(signer.address, after, limit)
  const payments = page.map(paymentView)
  return json({
    payments,
    hasMore: next !== undefined,
    cursor: next === undefined ? null : cursorOf(next, page.at(-1)),
  })
}

/** One payment as clients read it. */
function paymentView({ about, amount, timeMs, reference }: Transfer): object {
  const common = { date: new Date(timeMs).toISOString(), wincCredited: about.wincCredited ?? String(amount) }
  if (about.type === 'fiat') {
    return {
      type: 'fiat',
      ...common,
      paymentAmount: about.paymentAmount ?? '0',
      currencyType: about.currencyType ?? '',
      paymentProvider: about.paymentProvider ?? '',
      receiptId: about.receiptId ?? reference,
      giftMessage: about.giftMessage ?? null,
    }
  }
  return {
    type: 'crypto',
    ...common,
    tokenType: about.tokenType ?? '',
    tokenQuantity: about.tokenQuantity ?? '0',
    usdEquivalent: about.usdEquivalent ?? '0.000000',
    senderAddress: about.senderAddress ?? '',
    transactionId: reference,
    blockHeight: about.blockHeight ?? '',
  }
}

/** Opaque to clients: the place of the last payment of the page. */
function cursorOf({ atMs, id }: HistoryPlace, last: Transfer | undefined): string {
  const d = new Date(atMs).toISOString().replace('Z', '000Z')
  return Buffer.from(JSON.stringify({ d, t: last?.about.type ?? 'crypto', i: id })).toString('base64url')
}

function readCursor(text: string): HistoryPlace | undefined {
  const { d, i } = (jsonOf(text) ?? {}) as { d?: unknown; i?: unknown }
  if (typeof d !== 'string' || typeof i !== 'string') return undefined
  const atMs = Date.parse(d.replace(/000Z$/, 'Z'))
  return Number.isNaN(atMs) ? undefined : { atMs, id: i }
}
