import type { Shapes } from '../../http/openapi.js'
import type { Schema, Shape } from '../../http/operation.js'
import {
  amount,
  anyNumber,
  anyObject,
  formOf,
  jsonBody,
  listOf,
  mapOf,
  orNull,
  plainText,
  textForm,
  truth,
  wholeForm,
} from '../../http/schemas.js'

/** What goes in and out of the payment service, for its description. */

const fee = formOf(
  { name: textForm, operator: textForm, operatorMagnitude: anyNumber },
  { description: textForm, adjustmentAmount: { type: ['string', 'number'] }, currencyType: textForm },
)
const adjustments = listOf(anyObject)
export const approvalForm = formOf(
  {
    approvalDataItemId: textForm,
    approvedAddress: textForm,
    payingAddress: textForm,
    approvedWincAmount: amount,
    usedWincAmount: amount,
    creationDate: textForm,
  },
  { expirationDate: textForm, inactiveReason: textForm, inactiveDate: textForm, revokeDataItemId: textForm },
)
const shares = { givenApprovals: listOf(approvalForm), receivedApprovals: listOf(approvalForm) }
/** Members of an answer that is a page of a list. */
export const pagedForm = { hasMore: truth, cursor: orNull(textForm) }
const balance: Shape = {
  gives: formOf({
    winc: amount,
    balance: amount,
    controlledWinc: amount,
    effectiveBalance: amount,
    ...shares,
  }),
}
const info: Shape = { gives: formOf({ version: textForm, addresses: mapOf(textForm), gateway: textForm }) }
const bytePrice: Shape = { gives: formOf({ winc: amount, adjustments }, { fees: listOf(fee) }) }
const topUpResult = formOf(
  { message: textForm },
  {
    creditedTransaction: anyObject,
    pendingTransaction: anyObject,
    failedTransaction: anyObject,
  },
)
const topUp: Shape = {
  takes: { ...jsonBody(formOf({ tx_id: textForm })) },
  gives: topUpResult,
  answers: { 202: jsonBody(topUpResult) },
}
const limit = formOf({
  minimumPaymentAmount: wholeForm,
  maximumPaymentAmount: wholeForm,
  suggestedPaymentAmounts: listOf(wholeForm),
  stripeMinimumPaymentAmount: wholeForm,
  zeroDecimalCurrency: truth,
})
const historyItem: Schema = formOf({
  type: { enum: ['crypto', 'fiat'] },
  wincCredited: amount,
  date: textForm,
})

export const paymentShapes: Shapes = {
  'GET /v1/redeem': {
    gives: formOf(
      { message: textForm, userBalance: amount, userAddress: textForm },
      { userCreationDate: textForm },
    ),
  },
  'GET /': info,
  'GET /info': info,
  'GET /v1': info,
  'GET /v1/info': info,
  'GET /health': { answers: { 200: plainText } },
  'GET /v1/price/bytes/{bytes}': bytePrice,
  'GET /v1/price/{bytes}': bytePrice,
  'GET /v1/price/{currency}/{amount}': {
    gives: formOf(
      { winc: amount, fees: listOf(fee), actualPaymentAmount: { type: ['string', 'number'] } },
      { adjustments, quotedPaymentAmount: anyNumber, usdEquivalent: textForm },
    ),
  },
  'GET /price/{token}/{bytes}': { answers: { 200: plainText } },
  'GET /v1/rates': {
    gives: formOf({ winc: amount, fiat: mapOf(anyNumber), adjustments, fees: listOf(fee) }),
  },
  'GET /v1/rates/{currency}': { gives: formOf({ currency: textForm, rate: anyNumber }) },
  'GET /v1/currencies': { gives: formOf({ supportedCurrencies: listOf(textForm), limits: mapOf(limit) }) },
  'GET /v1/countries': { gives: listOf(textForm) },
  'GET /v1/balance': balance,
  'GET /v1/account/balance': balance,
  'GET /v1/account/balance/{token}': balance,
  'GET /account/balance': balance,
  'GET /account/balance/{token}': balance,
  'POST /v1/account/balance/{token}': topUp,
  'POST /account/balance/{token}': topUp,
  'GET /v1/account/free': { gives: formOf({ bytesRemaining: orNull(wholeForm) }) },
  'GET /v1/account/payments': {
    gives: formOf({ payments: listOf(historyItem), ...pagedForm }),
  },
  'GET /v1/account/approvals': {
    gives: formOf({ approvals: listOf(approvalForm), amount, ...pagedForm }, { expiresBy: textForm }),
  },
  'GET /v1/account/approvals/get': { gives: formOf({ ...shares, ...pagedForm }) },
  'GET /v1/top-up/{method}/{address}/{currency}/{amount}': {
    gives: formOf({ topUpQuote: anyObject, paymentSession: anyObject }, { adjustments, fees: listOf(fee) }),
  },
}

const accepts = listOf(anyObject)
const usdcOffer = jsonBody(formOf({ x402Version: wholeForm, accepts, error: textForm }))
const wallet = '{signatureType}/{address}'

/** Where USDC is taken. */
export const usdcShapes: Shapes = {
  [`GET /v1/x402/price/${wallet}`]: { gives: formOf({ x402Version: wholeForm, accepts }) },
  [`POST /v1/x402/top-up/${wallet}`]: {
    takes: { ...jsonBody(formOf({}, { bytes: wholeForm })), isOptional: true },
    gives: formOf(
      { success: truth, creditsGranted: amount, paymentId: textForm, txHash: textForm, network: textForm },
      { balance: amount },
    ),
    answers: { 402: usdcOffer },
  },
  [`POST /v1/x402/payment/${wallet}`]: {
    takes: jsonBody(
      formOf(
        {},
        {
          paymentHeader: textForm,
          dataItemId: textForm,
          byteCount: wholeForm,
          mode: { enum: ['payg', 'topup', 'hybrid'] },
        },
      ),
    ),
    gives: formOf({
      success: truth,
      paymentId: textForm,
      txHash: textForm,
      network: textForm,
      mode: textForm,
      wincPaid: amount,
      wincReserved: amount,
      wincCredited: amount,
    }),
    answers: { 402: usdcOffer },
  },
  'POST /v1/x402/finalize': {
    takes: jsonBody(formOf({ dataItemId: textForm, actualByteCount: wholeForm })),
    gives: formOf({
      success: truth,
      actualByteCount: wholeForm,
      refundWinc: amount,
      status: { enum: ['confirmed', 'refunded', 'fraud_penalty'] },
    }),
  },
}
