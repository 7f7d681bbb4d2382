import { isOutOfTurn } from '../../actor/timed-turns.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { statusOf } from '../../http/status.js'
import { type CreditsPort, isDenied, type Payer, type RevokeOrder } from '../credits-port.js'
import {
  json,
  type PaymentRoute,
  plainAnswer,
  type RouteAnswer,
  type RouteRequest,
} from '../requests/payment-route.js'
import { guardedBy } from '../requests/token-guard.js'
import { addressKind, spelled } from './wallets.js'

/** The signature types by the names that services have for them. */
const typeNames: Readonly<Record<string, number>> = {
  arweave: 1,
  ed25519: 2,
  ethereum: 3,
  solana: 4,
  injectedaptos: 5,
  multiaptos: 6,
  typedethereum: 7,
  kyve: 101,
}

const itemShape = /^[A-Za-z0-9_-]{1,128}$/
const serviceShape = /^[A-Za-z0-9._-]{1,255}$/
const ticketShape = /^[A-Za-z0-9_-]{16,64}$/

/** Whether there is such a wallet, or it has had the item: who spends only what others share need not have credits of its own. */
export type IsKnownWallet = (address: string, itemId?: string) => Promise<boolean>

const checkSummary = 'Would the credits be enough for an item?'

/** Routes for other services of the operator, with a token under the common secret. */
export function protectedRoutes(
  credits: CreditsPort,
  isKnown: IsKnownWallet,
  secret: string,
  now: () => number,
): PaymentRoute[] {
  const guarded = guardedBy(secret, now)
  const ofWallet = (
    name: string,
    summary: string,
    query: readonly string[],
    answer: PaymentRoute['answer'],
  ): PaymentRoute => ({
    path: `/v1/${name}/{signatureType}/{address}`,
    summary,
    statuses: [200, 400, 401, 402, 404, 429],
    query,
    operator: true,
    answer: guarded(answer),
  })
  const paying = ['byteCount', 'paidBy', 'paymentDirective', 'alias']
  return [
    {
      path: '/v1/price-of-item',
      summary: 'Price of an item, for services',
      statuses: [200, 400, 401],
      query: ['byteCount'],
      operator: true,
      answer: guarded(async ({ query }) => {
        const bytes = byteCount(query)
        return bytes === undefined
          ? plainAnswer(400, 'Invalid byte count')
          : plain(await credits.price(bytes))
      }),
    },
    ofWallet('check-balance', checkSummary, [...paying, 'dataItemId', 'asker', 'question'], (call) =>
      checkAnswer(credits, call),
    ),
    ofWallet(
      'reserve-balance',
      'Holds back what an item costs',
      [...paying, 'dataItemId', 'settle', 'ticket', 'service'],
      (call) => reserveAnswer(credits, call),
    ),
    ofWallet('settle-balance', 'Spends what was held back for an item', ['dataItemId'], async ({ query }) => {
      const itemId = query.get('dataItemId') ?? ''
      return itemShape.test(itemId)
        ? plain(await credits.settle(itemId))
        : plainAnswer(400, 'Invalid dataItemId provided!')
    }),
    ofWallet(
      'refund-balance',
      'Gives back what an item has cost',
      ['dataItemId', 'winstonCredits', 'ticket'],
      (call) => refundAnswer(credits, isKnown, call),
    ),
    ...sharingRoutes(credits, isKnown, guarded),
  ]
}

async function refundAnswer(
  credits: CreditsPort,
  isKnown: IsKnownWallet,
  { path: [, address = ''], query }: RouteRequest,
): Promise<RouteAnswer> {
  const itemId = query.get('dataItemId') ?? ''
  if (!itemShape.test(itemId)) return plainAnswer(400, 'Invalid dataItemId provided!')
  // Our own services name the item only: its record has the wallet.
  const isNamed = addressKind(address) !== undefined
  if (isNamed && !(await isKnown(address, itemId))) return plainAnswer(404, 'User not found')
  const ticket = query.get('ticket')
  if (ticket === null) return plain(await credits.refund(itemId))
  return ticketShape.test(ticket) ? plain(await credits.withdraw({ itemId, ticket })) : wrongTicket
}

function sharingRoutes(
  credits: CreditsPort,
  isKnown: IsKnownWallet,
  guarded: (answer: PaymentRoute['answer']) => PaymentRoute['answer'],
): PaymentRoute[] {
  return [
    {
      path: '/v1/account/approvals/create',
      summary: 'Shares credits',
      statuses: [200, 400, 401, 402],
      query: ['dataItemId', 'winc', 'payingAddress', 'payingAlias', 'approvedAddress', 'expiresInSeconds'],
      operator: true,
      answer: guarded((call) => approveAnswer(credits, isKnown, call)),
    },
    {
      path: '/v1/account/approvals/revoke',
      summary: 'Takes shared credits back',
      statuses: [200, 400, 401],
      query: ['dataItemId', 'payingAddress', 'payingAlias', 'approvedAddress'],
      operator: true,
      answer: guarded((call) => revokeAnswer(credits, call)),
    },
  ]
}

const wrongTicket = plainAnswer(400, 'Invalid ticket')

function byteCount(query: URLSearchParams): number | undefined {
  const text = query.get('byteCount') ?? ''
  const bytes = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(bytes) ? bytes : undefined
}

/** The payer, or the fault of the request. */
function payerOf({ path: [type = '', address = ''], query }: RouteRequest): Payer | RouteAnswer {
  const signatureType = typeNames[type.toLowerCase()] ?? (/^\d{1,3}$/.test(type) ? Number(type) : undefined)
  if (signatureType === undefined) return plainAnswer(400, `Unknown signature type: ${type}`)
  if (addressKind(address) === undefined) return plainAnswer(400, 'Invalid address')
  const directive = query.get('paymentDirective') === 'list-only' ? 'list-only' : 'list-or-signer'
  const alias = query.get('alias') ?? ''
  const paidBy = query
    .getAll('paidBy')
    .flatMap((one) => one.split(','))
    .map((one) => one.trim())
    .filter((one) => one !== '')
  return { address, signatureType, paidBy, directive, ...(alias === '' ? {} : { alias }) }
}

async function checkAnswer(credits: CreditsPort, call: RouteRequest): Promise<RouteAnswer> {
  const payer = payerOf(call)
  const bytes = byteCount(call.query)
  if ('status' in payer) return payer
  if (bytes === undefined) return plainAnswer(400, 'Invalid byte count')
  const itemId = call.query.get('dataItemId') ?? ''
  if (itemId !== '' && !itemShape.test(itemId)) return plainAnswer(400, 'Invalid dataItemId provided!')
  const asker = call.query.get('asker') ?? ''
  const checked = await credits.check({
    ...payer,
    bytes,
    ...(itemId === '' ? {} : { itemId }),
    ...(asker === '' ? {} : { asker: asker.slice(0, 64) }),
    ...(call.query.get('question') === 'true' ? { isQuestion: true } : {}),
  })
  // Another status than where the ledger is away: the service that asks has another answer for its client.
  if (isRefusal(checked)) return isOutOfTurn(checked) ? plainAnswer(429, checked.message) : refused(checked)
  const { isEnough, isUnknownWallet, winc, balance } = checked
  const body = {
    userHasSufficientBalance: isEnough,
    bytesCostInWinc: winc,
    adjustments: [],
    userBalanceInWinc: balance,
  }
  return { status: isEnough ? 200 : isUnknownWallet ? 404 : 402, json: body }
}

async function reserveAnswer(credits: CreditsPort, call: RouteRequest): Promise<RouteAnswer> {
  const payer = payerOf(call)
  const bytes = byteCount(call.query)
  const itemId = call.query.get('dataItemId') ?? ''
  if ('status' in payer) return payer
  if (bytes === undefined) return plainAnswer(400, 'Invalid byte count')
  if (!itemShape.test(itemId)) return plainAnswer(400, 'Invalid dataItemId provided!')
  const ticket = call.query.get('ticket')
  if (ticket !== null && !ticketShape.test(ticket)) return wrongTicket
  const service = call.query.get('service')
  if (service !== null && !serviceShape.test(service)) return plainAnswer(400, 'Invalid service')
  const named = { ...(ticket === null ? {} : { ticket }), ...(service === null ? {} : { service }) }
  const reserved = await credits.reserve({ ...payer, bytes, itemId, ...named })
  if (isRefusal(reserved)) return refused(reserved)
  if (!reserved.paid && reserved.elsewhere !== undefined) return plainAnswer(409, reserved.elsewhere)
  if (!reserved.paid) return plainAnswer(402, 'Insufficient balance')
  // Callers that do not know of settling have paid with this answer.
  if (call.query.get('settle') !== 'later' && reserved.winc !== '0') {
    const settled = await credits.settle(itemId)
    if (isRefusal(settled)) return refused(settled)
  }
  return { status: 200, text: reserved.winc, reason: 'Balance reserved' }
}

async function approveAnswer(
  credits: CreditsPort,
  isKnown: IsKnownWallet,
  { query }: RouteRequest,
): Promise<RouteAnswer> {
  const wanted = pairOf(query)
  if ('status' in wanted) return wanted
  const winc = query.get('winc') ?? ''
  if (!/^[1-9]\d{0,77}$/.test(winc)) return plainAnswer(400, 'Invalid winc amount')
  const seconds = query.get('expiresInSeconds') ?? ''
  if (seconds !== '' && !/^[1-9]\d{0,11}$/.test(seconds)) return plainAnswer(400, 'Invalid expiresInSeconds')
  const expires = seconds === '' ? {} : { expiresInSeconds: Number(seconds) }
  const outcome = await credits.approve({ ...wanted, winc, ...expires })
  const { payingAddress: payer } = wanted
  const isPoor = !isRefusal(outcome) && isDenied(outcome) && outcome.status === 402
  if (isPoor && !(await isKnown(payer)))
    return plainAnswer(402, `No user found in database with address '${spelled(payer)}'`)
  return outcomeOf(outcome)
}

async function revokeAnswer(credits: CreditsPort, { query }: RouteRequest): Promise<RouteAnswer> {
  const wanted = pairOf(query)
  return 'status' in wanted ? wanted : outcomeOf(await credits.revoke(wanted))
}

function pairOf(query: URLSearchParams): RevokeOrder | RouteAnswer {
  const itemId = query.get('dataItemId') ?? ''
  const payingAddress = query.get('payingAddress') ?? ''
  const approvedAddress = query.get('approvedAddress') ?? ''
  if (addressKind(payingAddress) === undefined) return plainAnswer(400, 'Invalid paying address')
  if (addressKind(approvedAddress) === undefined) return plainAnswer(400, 'Invalid approved address')
  if (!itemShape.test(itemId)) return plainAnswer(400, 'Invalid dataItemId provided!')
  const payingAlias = query.get('payingAlias') ?? ''
  const pair = { itemId, payingAddress, approvedAddress }
  return payingAlias === '' ? pair : { ...pair, payingAlias }
}

function outcomeOf(outcome: object): RouteAnswer {
  if (isRefusal(outcome)) return refused(outcome)
  return isDenied(outcome) ? plainAnswer(outcome.status, outcome.text) : json(outcome)
}

function plain(outcome: { readonly winc: string } | Refusal): RouteAnswer {
  return isRefusal(outcome) ? refused(outcome) : plainAnswer(200, outcome.winc)
}

function refused({ refused: reason, message }: Refusal): RouteAnswer {
  const status = statusOf[reason]
  return plainAnswer(status >= 500 ? 503 : status, message)
}
