import type { Shapes } from '../../http/openapi.js'
import type { BodyShape, Schema } from '../../http/operation.js'
import {
  amount,
  anyNumber,
  anyObject,
  formOf,
  jsonBody,
  listOf,
  textForm,
  truth,
  wholeForm,
} from '../../http/schemas.js'
import { pagedForm } from '../requests/payment-shapes.js'

/** What goes in and out where names are sold, for the description of the payment service. */

const wish = {
  name: textForm,
  intent: textForm,
  type: { enum: ['permabuy', 'lease'] },
  years: wholeForm,
  increaseQty: wholeForm,
  processId: textForm,
}
const rate: Schema = { type: ['string', 'number'] }
const failure = { failedDate: textForm, failedReason: textForm }
const purchase = formOf(
  {
    owner: textForm,
    nonce: textForm,
    wincQty: amount,
    mARIOQty: rate,
    usdArRate: rate,
    usdArioRate: rate,
    paidBy: listOf(textForm),
    messageId: textForm,
    status: { enum: ['pending', 'success', 'failed'] },
  },
  { ...wish, antId: textForm, ...failure },
)
const receiptMembers = {
  purchaseReceipt: purchase,
  arioWriteResult: formOf({ id: textForm }),
  nonce: textForm,
}
const receipt = formOf(receiptMembers)
const actionMembers = {
  nonce: textForm,
  action: textForm,
  status: { enum: ['pending', 'completed', 'failed'] },
}
const actionExtras = { messageId: textForm, antId: textForm, ...failure }
const action = formOf(actionMembers, actionExtras)
const optional = (body: BodyShape): BodyShape => ({ ...body, isOptional: true })

export const nameShapes: Shapes = {
  'GET /v1/arns/price/{intent}/{name}': {
    gives: formOf({ winc: amount, mARIO: amount }, { fiatEstimate: anyObject }),
  },
  'GET /v1/arns/quote/{method}/{address}/{currency}/{intent}/{name}': {
    gives: formOf({
      purchaseQuote: formOf(
        {
          nonce: textForm,
          owner: textForm,
          wincQty: amount,
          mARIOQty: anyNumber,
          paymentAmount: anyNumber,
          quotedPaymentAmount: anyNumber,
          currencyType: textForm,
          quoteExpirationDate: textForm,
          quoteCreationDate: textForm,
          paymentProvider: textForm,
          usdArRate: textForm,
          usdArioRate: textForm,
        },
        { ...wish, excessWincAmount: amount },
      ),
      paymentSession: anyObject,
      adjustments: listOf(anyObject),
      fees: listOf(anyObject),
    }),
  },
  'POST /v1/arns/purchase/{intent}/{name}': {
    takes: optional(jsonBody(anyObject)),
    gives: receipt,
    answers: { 202: jsonBody(receipt) },
  },
  'GET /v1/arns/purchase/{nonce}': { gives: purchase },
  'GET /v1/arns/my-names/{address}': {
    gives: formOf({
      names: listOf(
        formOf(
          { name: textForm, antId: textForm, intent: textForm, purchaseDate: textForm, custodial: truth },
          { type: textForm, years: wholeForm },
        ),
      ),
      ...pagedForm,
    }),
  },
  'GET /v1/arns/actions/{action}/price': { gives: formOf({ action: textForm, wincQty: amount }) },
  'POST /v1/arns/actions/{action}': {
    takes: jsonBody(anyObject),
    gives: action,
    answers: { 202: jsonBody(action) },
  },
  'GET /v1/arns/actions/{nonce}': { gives: action },
  'GET /v1/arns/held/{antId}': {
    gives: formOf(
      {
        name: textForm,
        antId: textForm,
        owner: textForm,
        controllers: listOf(textForm),
        isServiceController: truth,
        type: { enum: ['permabuy', 'lease'] },
        undernameLimit: wholeForm,
        records: listOf(anyObject),
        ...pagedForm,
      },
      { endDate: textForm },
    ),
  },
  'POST /v1/arns/actions/{nonce}/sign': {
    takes: optional(jsonBody(anyObject)),
    gives: formOf({ ...actionMembers, alreadyCompleted: truth }, actionExtras),
  },
}
