import { createHash } from 'node:crypto'
import { isUnreadable, type ReadPayment } from '../../admission/presented.js'
import type { UsdcOrder } from '../credits-port.js'

/** By this prefix the beneficiary of a payment is a sale, and not a wallet. No address has a colon. */
const salePrefix = 'item:'

/** The sale that a payment is for, as its `beneficiary` has it (`PaymentOrder`): the records of the cashier keep it. */
export interface SaleBeneficiary {
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

/** Whether a payment buys one item. False: it tops up the wallet whose address this is. */
export function isSale(beneficiary: string): boolean {
  return beneficiary.startsWith(salePrefix)
}

/** The beneficiary of a payment for an item: the fields of its order, as one text. `read`: the payment. */
export function saleBeneficiaryOf(order: UsdcOrder, read: ReadPayment): string {
  const { itemId, bytes, address = '', keepsRest, service = '', sale } = order
  const facts = [keepsRest === true ? 'rest' : 'all', itemId, bytes, address, service]
  // An identifier says nothing where the request is not known.
  const more = sale === undefined ? [] : [identifierIn(read) ?? '', sale.owner, sale.request]
  return salePrefix + [...facts, ...more].join(':').replace(/:+$/, '')
}

/** Reads such a text. */
export function readSaleBeneficiary(beneficiary: string): SaleBeneficiary {
  const [mode, itemId = '', bytes, address, service, identifier, owner = '', ...request] = beneficiary
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
 * What a payment for this beneficiary buys, as one word. A sale is known by its request, because an item that is signed here has
 * another id each time.
 */
export function purposeOf(beneficiary: string): string {
  if (!isSale(beneficiary)) return digestOf(`wallet ${beneficiary}`)
  const { mode, itemId, bytes, address = '', sale } = readSaleBeneficiary(beneficiary)
  return digestOf(`sale ${mode} ${sale?.request ?? itemId} ${bytes} ${address}`)
}

/** Whether a payment for this beneficiary is for that item, or for the request that it was made for. */
export function isSaleOf(
  beneficiary: string,
  { itemId, request }: { readonly itemId: string; readonly request?: string | undefined },
): boolean {
  if (!isSale(beneficiary)) return false
  const { itemId: own, sale } = readSaleBeneficiary(beneficiary)
  return own === itemId || (sale !== undefined && sale.request === request)
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

const filled = (text: string | undefined): string | undefined => (text === '' ? undefined : text)

function identifierIn(read: ReadPayment): string | undefined {
  return isUnreadable(read) ? undefined : read.identifier
}
