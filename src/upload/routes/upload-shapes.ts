import type { PathParameters, Shapes } from '../../http/openapi.js'
import type { BodyShape, Schema, Shape } from '../../http/operation.js'
import {
  amount,
  anyNumber,
  anyObject,
  formOf,
  idText,
  jsonBody,
  listOf,
  orNull,
  plainText,
  textForm,
  wholeForm,
} from '../../http/schemas.js'

/** What goes in and out of the upload service, for its description. */

const bytes: BodyShape = { type: 'application/octet-stream' }
const nothing: BodyShape = { ...bytes, isOptional: true }

const receiptMembers = {
  id: idText,
  timestamp: wholeForm,
  version: textForm,
  deadlineHeight: wholeForm,
  public: textForm,
  signature: textForm,
  owner: idText,
  winc: amount,
  dataCaches: listOf(textForm),
  fastFinalityIndexes: listOf(textForm),
}
const receipt = formOf(receiptMembers, { createdApproval: anyObject, revokedApprovals: listOf(anyObject) })
/** The receipt of an item that was paid for alone; that of a free one is as any other. */
const paidReceipt = formOf(receiptMembers, {
  payer: textForm,
  x402PaymentTxId: textForm,
  mUSDCPaid: amount,
  x402Payment: anyObject,
  receipt: anyObject,
})
const usdcOffer = jsonBody(
  formOf({ x402Version: wholeForm, accepts: listOf(anyObject), error: textForm }, { message: textForm }),
)
const usdcPrice = {
  token: textForm,
  currency: textForm,
  network: textForm,
  byteCount: wholeForm,
  usdcAmount: amount,
  x402Version: wholeForm,
  payment: anyObject,
}
const sold: Shape = { takes: bytes, gives: paidReceipt, answers: { 402: usdcOffer } }
const item: Shape = { takes: bytes, gives: receipt }
const price: Shape = { answers: { 200: plainText } }
const place: Readonly<Record<string, Schema>> = {
  startOffsetInRootBundle: wholeForm,
  rawContentLength: wholeForm,
  payloadContentType: textForm,
  payloadDataStart: wholeForm,
  payloadContentLength: wholeForm,
}
const info = formOf(
  {
    version: textForm,
    addresses: formOf({ arweave: idText }),
    gateway: textForm,
    gateways: listOf(textForm),
    freeUploadLimitBytes: wholeForm,
    freeTier: formOf({ lifetimeBytes: wholeForm, ipBytes: wholeForm, maxItemBytes: wholeForm }),
    limits: formOf({ maxItemBytes: wholeForm }),
  },
  { sandbox: formOf({ keepSeconds: wholeForm }) },
)
const state: Schema = {
  enum: [
    'ASSEMBLING',
    'VALIDATING',
    'FINALIZING',
    'FINALIZED',
    'UNDERFUNDED',
    'INVALID',
    'APPROVAL_FAILED',
    'REVOKE_FAILED',
  ],
}
const bounds = { min: wholeForm, max: wholeForm }

const usdcShapes: Shapes = {
  ...Object.fromEntries(
    ['upload', 'data-item'].flatMap((family) =>
      ['signed', 'unsigned'].flatMap((kind) =>
        ['', '/{network}'].map((end) => [`POST /x402/${family}/${kind}${end}`, sold]),
      ),
    ),
  ),
  'GET /price/x402/data-item/{token}/{byteCount}': { gives: formOf(usdcPrice) },
  'GET /price/x402/data/{token}/{byteCount}': {
    gives: formOf(
      {
        ...usdcPrice,
        rawDataSize: wholeForm,
        userTagCount: wholeForm,
        systemTagCount: wholeForm,
        totalTagCount: wholeForm,
        estimatedDataItemSize: wholeForm,
        overhead: wholeForm,
      },
      { winstonCost: amount },
    ),
  },
}

const health = formOf(
  { status: { enum: ['ok', 'unhealthy'] }, uptime: anyNumber, date: textForm },
  { reasons: listOf(textForm), warnings: listOf(textForm) },
)

const once: Shapes = {
  ...usdcShapes,
  'GET /': { gives: info },
  'GET /info': { gives: info },
  'GET /health': { answers: { 200: plainText } },
  'GET /healthcheck': { gives: health, answers: { 503: jsonBody(health) } },
  'GET /livez': { gives: health },
  'GET /price/{byteCount}': price,
  'GET /price/{token}/{byteCount}': price,
  'GET /account/balance': price,
  'GET /account/balance/{token}': price,
  'POST /tx': item,
  'POST /tx/{token}': item,
  'GET /tx/{id}/status': {
    gives: formOf(
      {
        status: { enum: ['CONFIRMED', 'FINALIZED', 'FAILED'] },
        info: { enum: ['new', 'pending', 'permanent', 'failed'] },
        winc: amount,
      },
      { bundleId: idText, reason: textForm, ...place },
    ),
  },
  'GET /tx/{id}/offsets': { gives: formOf({ rootBundleId: idText }, place) },
  'GET /account/free': {
    gives: formOf({
      bytesRemaining: orNull(wholeForm),
      rangeBytesRemaining: orNull(wholeForm),
      itemOverheadBytes: wholeForm,
    }),
  },
  'POST /check-missing': {
    takes: jsonBody(formOf({ owner: idText, sha256: listOf(textForm) })),
    gives: anyObject,
  },
  'GET /chunks/{token}/-1/-1': {
    gives: formOf({ id: textForm, ...bounds, chunkSize: wholeForm }),
    answers: { 400: jsonBody(anyObject) },
  },
  'GET /chunks/{token}/{uploadId}/-1': {
    gives: formOf(
      { id: textForm, ...bounds, size: wholeForm, chunks: listOf({ type: 'array', items: wholeForm }) },
      { failedReason: textForm },
    ),
  },
  'GET /chunks/{token}/{uploadId}/status': {
    gives: formOf({ status: state, timestamp: wholeForm }, { receipt, reason: textForm }),
  },
  'POST /chunks/{token}/{uploadId}/-1': { takes: nothing, gives: receipt },
  'POST /chunks/{token}/{uploadId}/finalize': { takes: nothing, gives: receipt, answers: { 202: plainText } },
  'POST /chunks/{token}/{uploadId}/{offset}': { takes: bytes, answers: { 200: plainText } },
  'GET /upload': { gives: formOf({ protocol: textForm, limits: anyObject }) },
  'POST /upload': { takes: nothing, gives: receipt, answers: { 201: undefined } },
  'GET /upload/{uploadId}': {
    gives: formOf(
      { id: textForm, state: textForm, offset: wholeForm, expires: textForm },
      { length: orNull(wholeForm), reason: textForm, receipt },
    ),
  },
  'PATCH /upload/{uploadId}': {
    takes: { type: 'application/partial-upload', isOptional: true },
    gives: receipt,
    answers: { 409: { type: 'application/problem+json', schema: anyObject } },
  },
}

/** The same at the root and below /v1. */
export const uploadShapes: Shapes = {
  ...once,
  ...Object.fromEntries(
    Object.entries(once).map(([key, shape]) => {
      const [method = '', path = ''] = key.split(' ')
      return [`${method} /v1${path === '/' ? '' : path}`, shape]
    }),
  ),
}

const anId = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'

/** What may stand in braces in a path of the upload service, and in the query. */
export const uploadParameters: PathParameters = {
  id: { description: 'Id of a data item', example: anId },
  uploadId: {
    description: 'Name of an upload in parts',
    example: '00000000-0000-4000-8000-000000000000',
  },
  offset: { description: 'Where the part begins in the item, in bytes', example: '0' },
  chunkSize: { description: 'Bytes of all parts but the last, from 5 MiB to 500 MiB', example: '5242880' },
  totalBytes: { description: 'Bytes of the whole item, where it is paid for in USDC', example: '1000' },
  address: {
    description: 'A wallet: whose credits are shown, or that gets back what is not used',
    example: anId,
  },
  signatureType: { description: 'How that wallet signs: a number', example: '1' },
  byteCount: { description: 'Bytes of the whole signed item', example: '107520' },
  network: { description: 'A chain, which decides nothing', example: 'base' },
  tags: { description: 'How many tags the item will have', example: '2' },
  contentType: { description: 'Type of the data', example: 'text/plain' },
  script: { description: 'Name of a file of the upload page', example: 'page.js' },
  token: { description: 'A currency, which decides nothing but for kyve', example: 'arweave' },
}
