import type { Shapes } from '../../http/openapi.js'
import type { Shape } from '../../http/operation.js'
import {
  amount,
  anyObject,
  formOf,
  jsonBody,
  listOf,
  orNull,
  plainText,
  textForm,
  truth,
  wholeForm,
} from '../../http/schemas.js'
import { approvalForm } from './payment-shapes.js'

/** Requests and answers of the routes for services and operators, for the description. */

const wallet = '{signatureType}/{address}'
const plain: Shape = { answers: { 200: plainText } }
const checked = formOf({
  userHasSufficientBalance: truth,
  bytesCostInWinc: amount,
  adjustments: listOf(anyObject),
  userBalanceInWinc: amount,
})
const difference = formOf({ what: { enum: ['card', 'chain', 'x402'] }, id: textForm, why: textForm })
const reconciliation = formOf(
  {
    day: textForm,
    atMs: wholeForm,
    cards: wholeForm,
    chains: wholeForm,
    unchecked: wholeForm,
    differences: listOf(difference),
    isCut: truth,
  },
  { usdc: wholeForm },
)
const promotion = formOf({
  code: textForm,
  permille: wholeForm,
  expiresMs: wholeForm,
  leastMicroUsd: wholeForm,
  mostMicroUsd: wholeForm,
  usesMax: wholeForm,
  isForNew: truth,
})

export const serviceShapes: Shapes = {
  'GET /v1/price-of-item': plain,
  [`GET /v1/check-balance/${wallet}`]: {
    gives: checked,
    answers: { 402: jsonBody(checked), 404: jsonBody(checked) },
  },
  [`GET /v1/reserve-balance/${wallet}`]: { answers: { 200: plainText, 409: plainText } },
  [`GET /v1/settle-balance/${wallet}`]: plain,
  [`GET /v1/refund-balance/${wallet}`]: plain,
  'GET /v1/account/approvals/create': { gives: approvalForm },
  'GET /v1/account/approvals/revoke': { gives: listOf(approvalForm) },
  'POST /v1/promotions': { takes: jsonBody(promotion), gives: promotion },
  'GET /v1/outbox': {
    gives: formOf({
      letters: listOf(
        formOf(
          {
            to: textForm,
            gift: textForm,
            winc: amount,
            message: textForm,
            createdMs: wholeForm,
            state: { enum: ['waiting', 'kept', 'sent', 'failed'] },
            tries: wholeForm,
            nextMs: wholeForm,
          },
          { why: textForm },
        ),
      ),
      cursor: orNull(textForm),
    }),
  },
  'GET /v1/reconciliations': { gives: formOf({ reconciliations: listOf(reconciliation) }) },
  'POST /v1/reconciliations/{day}': { gives: reconciliation },
}

/** Calls of another service of ours about payments in USDC. */
export const orderShapes: Shapes = {
  'POST /v1/x402/orders': {
    takes: jsonBody(formOf({ usdc: textForm, given: {} })),
    gives: anyObject,
  },
}
