import { isRefusal } from '../../format/refusal.js'
import { type ChangeAction, type Holding, isOwnersOnly, mayChange } from '../../names/change.js'
import { isNoSale } from '../../names/lease.js'
import { requestSigner } from '../../proof/signed-request.js'
import { addressKind, spelled } from '../books/wallets.js'
import { cursorPlaces, limitOf, paged, wrongCursor, wrongLimit } from '../requests/paging.js'
import {
  json,
  type PaymentRoute,
  plainAnswer,
  type RouteAnswer,
  type RouteRequest,
} from '../requests/payment-route.js'
import { type NameShop, nameBodyMax, nameBuyer, oracleGone, orderAnswer } from './name-orders.js'
import type { NameOrder, NamePurchases } from './name-purchases.js'
import { actionView, heldView } from './name-views.js'
import { changeOf, type GivenChange, readChange, readWish } from './name-wishes.js'
import { solanaKey } from './owner-transaction.js'

/** Length of a page of records, unless less is requested. */
const recordsMax = 100
const ownerNonceKind = 'owner-nonce'
/**
 * Clients send a UUID (RFC 9562). What is signed is the message and the nonce without anything between: only nonces of one length
 * leave no doubt where the message ends, so that a signature is good for one change.
 */
const ownerNonceShape = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const registryGone = plainAnswer(503, 'The registry of names does not answer')
const notHeld = plainAnswer(404, 'No name is held by this antId')

/** Orders paid by one wallet for names that it may not hold: the owner consents, in a message or by a transaction. */
export function nameActionRoutes({ purchases, wallets }: NameShop): PaymentRoute[] {
  return [
    {
      path: '/v1/arns/actions/{action}/price',
      summary: 'What a change of a name costs, in winc',
      statuses: [200, 400],
      answer: async ({ path: [actionText = ''] }) => {
        const action = changeOf(actionText)
        if (action === undefined) return plainAnswer(400, 'Invalid action parameter')
        const price = await purchases.price({ action, record: { antId: '', undername: '@' } })
        if (isRefusal(price) || isNoSale(price)) return oracleGone
        return json({ action, wincQty: String(price.winc) })
      },
    },
    {
      path: '/v1/arns/actions/{action}',
      summary: 'Buys or changes a name with the credits of the wallet that has signed the request',
      statuses: [200, 202, 400, 401, 402, 403, 404],
      method: 'POST',
      bodyMax: nameBodyMax,
      answer: (call) => actionAnswer({ purchases, wallets }, call),
    },
    {
      path: '/v1/arns/actions/{nonce}',
      summary: 'What became of an action',
      statuses: [200, 404],
      answer: async ({ path: [nonce = ''] }) => {
        const found = await purchases.find(nonce)
        return found === undefined ? plainAnswer(404, 'Action not found') : json(actionView(found))
      },
    },
    {
      path: '/v1/arns/actions/{nonce}/sign',
      summary: 'Carries out what waits for the signature of the owner of the name',
      statuses: [200, 202, 400, 404],
      method: 'POST',
      bodyMax: nameBodyMax,
      answer: (call) => signAnswer(purchases, call),
    },
    {
      path: '/v1/arns/held/{antId}',
      summary: 'A name as it is held now: who may change it, and its records',
      statuses: [200, 400, 404],
      query: ['limit', 'cursor'],
      answer: (call) => heldAnswer(purchases, call),
    },
  ]
}

async function heldAnswer(
  { registry }: NamePurchases,
  { path: [antId = ''], query }: RouteRequest,
): Promise<RouteAnswer> {
  const limit = limitOf(query, recordsMax)
  const [after] = cursorPlaces(query, 1) ?? []
  if (limit === undefined) return wrongLimit
  if (after === undefined) return wrongCursor
  const found = await registry.held(antId, after, limit + 1)
  if (isRefusal(found)) return registryGone
  if (found === undefined) return notHeld
  const records = found.records.slice(0, limit)
  const last = found.records.length > limit ? records.at(-1)?.full : undefined
  return json({ ...heldView({ ...found, records }), ...paged(last === undefined ? undefined : [last]) })
}

async function signAnswer(
  purchases: NamePurchases,
  { path: [nonce = ''], body }: RouteRequest,
): Promise<RouteAnswer> {
  const found = await purchases.find(nonce)
  if (found === undefined) return plainAnswer(404, 'Action not found')
  if (found.state === 'success') return json({ ...actionView(found), alreadyCompleted: true })
  const { transaction } = fieldsIn(body) ?? {}
  if (typeof transaction !== 'string') return plainAnswer(400, 'Missing required parameter: transaction')
  return orderAnswer(await purchases.sign(nonce, transaction), actionView)
}

async function actionAnswer(
  { purchases, wallets }: Pick<NameShop, 'purchases' | 'wallets'>,
  call: RouteRequest,
): Promise<RouteAnswer> {
  const {
    path: [actionText = ''],
    body,
  } = call
  const given = fieldsIn(body)
  if (given === undefined) return plainAnswer(400, 'Invalid JSON in request body')
  const paidBy = [given.paidBy].flat().filter((one): one is string => typeof one === 'string' && one !== '')
  const paying = await nameBuyer(wallets, call, paidBy)
  if ('status' in paying) return paying
  const { signer, payer } = paying
  const { nonce } = signer
  const action = changeOf(actionText)
  if (action === undefined) {
    const { name, ownerAddress = signer.address } = given
    if (typeof ownerAddress !== 'string' || addressKind(ownerAddress) === undefined)
      return plainAnswer(400, 'Invalid ownerAddress')
    const wish = readWish(actionText, typeof name === 'string' ? name : '', (field) => given[field])
    if ('status' in wish) return wish
    const order = { nonce, deed: { action: 'buy', wish }, owner: spelled(ownerAddress), payer } as const
    return orderAnswer(await purchases.buy(order), actionView)
  }
  const change = readChange(action, given)
  if ('status' in change) return change
  const deed = { action, record: change.wish }
  // A repeated order: the change may have made itself forbidden, such as giving the name away.
  const before = await purchases.find(nonce)
  if (before !== undefined && payer.address === before.payer.address)
    return orderAnswer(await purchases.buy({ nonce, deed, owner: before.owner, payer }), actionView)
  const { antId, undername } = change.wish
  const holding = await purchases.registry.holding(antId, undername)
  if (isRefusal(holding)) return registryGone
  if (holding === undefined) return notHeld
  const consent = consentTo(call, { action, change, holding, nonce, requester: given.ownerAddress })
  if ('status' in consent) return consent
  const order = { nonce, deed, payer, ...consent }
  return orderAnswer(await purchases.buy(order), actionView)
}

interface RequestedChange {
  readonly action: ChangeAction
  readonly change: GivenChange
  readonly holding: Holding
  readonly nonce: string
  /** The address that requested the change, as the client states it. */
  readonly requester: unknown
}

/**
 * The address that requested a change: the signer of its message in the headers x-owner-*. In two cases the change waits for a
 * transaction signed by the owner: the whole name changes without a message, or the service was revoked as a controller.
 */
function consentTo(
  { header }: RouteRequest,
  { action, change, holding, nonce, requester }: RequestedChange,
): Pick<NameOrder, 'owner' | 'used' | 'signed'> | RouteAnswer {
  const { message } = change
  const isProven = header('x-owner-signature') !== undefined
  const proof = requestSigner((name) => header(name.replace('x-', 'x-owner-')), message)
  if (proof !== undefined && !ownerNonceShape.test(proof.nonce))
    return plainAnswer(400, 'Invalid x-owner-nonce: a UUID')
  const isBare = isOwnersOnly(action) && !isProven && typeof requester === 'string'
  const owner = isBare ? spelled(requester) : proof?.address
  if (owner === undefined || !mayChange(action, owner, holding))
    return plainAnswer(403, 'The owner of the name must sign this change')
  const canSign = solanaKey(owner) !== undefined
  if (isBare && !canSign)
    return plainAnswer(403, 'The owner of the name must sign this change: in the headers x-owner-*')
  // A change that was signed once must not be made again after a later one.
  const used = proof && {
    kind: ownerNonceKind,
    key: `${owner}|${proof.nonce}`,
    value: JSON.stringify(nonce),
    expected: 0,
  }
  const isSigning = canSign && (isBare || holding.serviceRevoked === true)
  return { owner, ...(used && { used }), ...(isSigning ? { signed: message } : {}) }
}

function fieldsIn(body: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
