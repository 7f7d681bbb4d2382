import type { Request } from '../http/exchange.js'
import type { TransferAuthorization } from '../proof/transfer-authorization.js'
import { usdcNamed } from './usdc.js'

/** A payment as a client presents it, read strictly. All fields are canonical, but nothing is verified yet. */
export interface Presented {
  readonly version: 1 | 2
  readonly scheme: string
  /** In the words of its version: short name, or CAIP-2. */
  readonly network: string
  /** Protocol 2: the terms that the client accepted, as it states. */
  readonly accepted?: AcceptedTerms
  readonly authorization: TransferAuthorization
  /** 0x and pairs of hexadecimal digits; of any length. */
  readonly signature: string
  /** Protocol 2: the client's own name for what it pays (extension payment-identifier). */
  readonly identifier?: string
}

export interface AcceptedTerms {
  readonly amount: string
  readonly asset: string
  readonly payTo: string
}

/** Why a payment cannot be read; may be sent to the client. */
export interface Unreadable {
  readonly unreadable: string
}

/** Longer headers are refused: a payment has 600 to 1,500 characters, one of a contract's wallet some thousand. */
const headerMax = 8192

const addressShape = /^0x[0-9a-fA-F]{40}$/
/** As many digits as 256 bits have; the amount itself has to equal a price. */
const numberShape = /^(?:0|[1-9]\d{0,77})$/
/** Seconds: enough for thirty million years, and exact as a number. */
const secondsShape = /^(?:0|[1-9]\d{0,14})$/
const nonceShape = /^0x[0-9a-fA-F]{64}$/
const signatureShape = /^0x(?:[0-9a-fA-F]{2})+$/
const identifierShape = /^[\w-]{16,128}$/
const wordShape = /^[\x21-\x7e]{1,64}$/

/** The field of offers where the extension payment-identifier is understood (x402 version 2). */
export const paymentIdentifiers: Readonly<Record<string, object>> = {
  'payment-identifier': {
    info: { required: false },
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        required: { type: 'boolean' },
        id: { type: 'string', minLength: 16, maxLength: 128 },
      },
      required: ['required'],
    },
  },
}

/** What a header with a payment holds. */
export type ReadPayment = Presented | Unreadable

/** The payment that a request carries; undefined where there is none. */
export function paymentOf(request: Pick<Request, 'header'>): ReadPayment | undefined {
  const second = request.header('payment-signature')
  if (second !== undefined) return readPayment(second, 2)
  const first = request.header('x-payment')
  return first === undefined ? undefined : readPayment(first, 1)
}

/** The name that a payment has in records: chain, payer and nonce. Undefined: no chain that we know. */
export function paymentName({ network, authorization }: Presented): string | undefined {
  const chain = usdcNamed(network)
  const { from, nonce } = authorization
  return chain === undefined ? undefined : `${chain.chainId}:${from}:${nonce}`.toLowerCase()
}

/** Reads an X-PAYMENT (`version` 1) or PAYMENT-SIGNATURE (2) header. */
export function readPayment(header: string, version: 1 | 2): ReadPayment {
  if (header.length > headerMax) return unreadable('the payment header is too long')
  const text = header.trim()
  const bytes = Buffer.from(text, 'base64')
  if (text === '' || bytes.toString('base64') !== text) return unreadable('the payment header is not base64')
  const given = parse(bytes)
  if (given === undefined) return unreadable('the payment is no JSON object')
  if (given.x402Version !== version) return unreadable(`x402Version must be ${version} in this header`)
  const payload = objectOf(given.payload)
  const authorization = readAuthorization(objectOf(payload?.authorization))
  if (authorization === undefined) return unreadable('payload.authorization is malformed')
  const signature = shaped(payload?.signature, signatureShape)
  if (signature === undefined) return unreadable('payload.signature is malformed')
  const accepted = objectOf(given.accepted)
  const { scheme, network } = version === 1 ? given : (accepted ?? {})
  const named = shaped(scheme, wordShape)
  const chain = shaped(network, wordShape)
  if (named === undefined || chain === undefined) return unreadable('scheme or network is missing')
  const read = { version, scheme: named, network: chain, authorization, signature }
  if (version === 1) return read
  const terms = readAccepted(accepted ?? {})
  if (terms === undefined) return unreadable('accepted is malformed')
  const identifier = readIdentifier(given)
  if (identifier === null) return unreadable('extensions.payment-identifier has no sound id')
  return { ...read, accepted: terms, ...(identifier === undefined ? {} : { identifier }) }
}

/** The id of the extension payment-identifier; undefined: none is given; null: it is none. */
function readIdentifier(given: Fields): string | undefined | null {
  const extension = objectOf(objectOf(given.extensions)?.['payment-identifier'])
  const info = objectOf(extension?.info)
  if (info?.id === undefined) return undefined
  return shaped(info.id, identifierShape) ?? null
}

/** True where a request carries a payment that cannot be read. */
export function isUnreadable(read: ReadPayment): read is Unreadable {
  return 'unreadable' in read
}

function unreadable(why: string): Unreadable {
  return { unreadable: why }
}

type Fields = Readonly<Record<string, unknown>>

function parse(bytes: Uint8Array): Fields | undefined {
  try {
    return objectOf(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
  } catch (error) {
    // Not UTF-8 (a TypeError) or not JSON: the sender's mistake either way.
    if (error instanceof SyntaxError || error instanceof TypeError) return undefined
    throw error
  }
}

function objectOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined
}

function shaped(value: unknown, shape: RegExp): string | undefined {
  return typeof value === 'string' && shape.test(value) ? value : undefined
}

function readAuthorization(given: Fields | undefined): TransferAuthorization | undefined {
  const from = shaped(given?.from, addressShape)
  const to = shaped(given?.to, addressShape)
  const value = shaped(given?.value, numberShape)
  const validAfter = shaped(given?.validAfter, secondsShape)
  const validBefore = shaped(given?.validBefore, secondsShape)
  const nonce = shaped(given?.nonce, nonceShape)
  if (from === undefined || to === undefined || value === undefined) return undefined
  if (validAfter === undefined || validBefore === undefined || nonce === undefined) return undefined
  return { from, to, value, validAfter, validBefore, nonce }
}

function readAccepted(given: Fields): AcceptedTerms | undefined {
  const amount = shaped(given.amount, numberShape)
  const asset = shaped(given.asset, addressShape)
  const payTo = shaped(given.payTo, addressShape)
  return amount === undefined || asset === undefined || payTo === undefined
    ? undefined
    : { amount, asset, payTo }
}
