import { createHash } from 'node:crypto'
import { isUnreadable, type ReadPayment } from '../../admission/presented.js'
import type { UsdcOrder } from '../credits-port.js'

/** Prefix of an item's name, where the records of the cashier have who is credited. */
const salePrefix = 'item:'

/** What the records of the cashier state of a payment for an item. */
export interface SaleClient {
  /** `rest`: what is paid beyond the price becomes credits. */
  readonly mode: 'all' | 'rest'
  readonly itemId: string
  readonly bytes: number
  readonly address: string | undefined
  readonly service: string | undefined
  /** The client's own name for what it pays (extension payment-identifier), without the payer. */
  readonly identifier: string | undefined
  /** As in `UsdcOrder`. */
  readonly sale: UsdcOrder['sale']
}

/** True where a settled payment is for an item. */
export function isSaleClient(client: string): boolean {
  return client.startsWith(salePrefix)
}

/** The fields of an order that its record keeps, as one text. `read`: its payment. */
export function saleClientOf(order: UsdcOrder, read: ReadPayment): string {
  const { itemId, bytes, address = '', keepsRest, service = '', sale } = order
  const facts = [keepsRest === true ? 'rest' : 'all', itemId, bytes, address, service]
  // An identifier says nothing where the request is not known.
  const more = sale === undefined ? [] : [identifierIn(read) ?? '', sale.owner, sale.request]
  return salePrefix + [...facts, ...more].join(':').replace(/:+$/, '')
}

/** Reads such a text. */
export function readSaleClient(client: string): SaleClient {
  const [mode, itemId = '', bytes, address, service, identifier, owner = '', ...request] = client
    .slice(salePrefix.length)
    .split(':')
  return {
    mode: mode === 'rest' ? 'rest' : 'all',
    itemId,
    bytes: Number(bytes),
    address: filled(address),
    service: filled(service),
    identifier: filled(identifier),
    sale: request.length === 0 ? undefined : { owner, request: request.join(':') },
  }
}

/**
 * What a payment of this client buys, as one word. A sale is known by its request, because an item that is signed here has
 * another id each time.
 */
export function purposeOf(client: string): string {
  if (!isSaleClient(client)) return digestOf(`wallet ${client}`)
  const { mode, itemId, bytes, address = '', sale } = readSaleClient(client)
  return digestOf(`sale ${mode} ${sale?.request ?? itemId} ${bytes} ${address}`)
}

/** Whether a payment of this client is for that item, or for the request that it was made for. */
export function isClientOf(
  client: string,
  { itemId, request }: { readonly itemId: string; readonly request?: string | undefined },
): boolean {
  if (!isSaleClient(client)) return false
  const { itemId: own, sale } = readSaleClient(client)
  return own === itemId || (sale !== undefined && sale.request === request)
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

const filled = (text: string | undefined): string | undefined => (text === '' ? undefined : text)

function identifierIn(read: ReadPayment): string | undefined {
  return isUnreadable(read) ? undefined : read.identifier
}
