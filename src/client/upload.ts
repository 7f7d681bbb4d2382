import type { PaymentAccount } from './account.js'
import type { TopUpResult } from './account-answers.js'
import { wincOf } from './amounts.js'
import { plainBytes } from './bytes.js'
import { type ChunkingOptions, checkChunking, goesInParts } from './chunking.js'
import { ClientError } from './errors.js'
import type { FundingMode } from './funding.js'
import type { Payer } from './paid-request.js'
import { allBytes } from './payload.js'
import { forgetUpload, type PreparedItem, placeKey } from './prepare.js'
import { checkReceipt, type UploadReceipt } from './receipt-proof.js'
import type { ResumeStore } from './resume-store.js'
import { fieldsOfAnswer, type RemoteService, type ServiceAnswer } from './service.js'
import { addressOfOwner, type ClientSigner } from './signer.js'
import type { Emit } from './task.js'
import { waited } from './timing.js'

/** A receipt, and what the service adds to it for items that share credits or were paid in USDC. */
export interface UploadResult extends UploadReceipt {
  readonly createdApproval?: Readonly<Record<string, unknown>>
  readonly revokedApprovals?: readonly Readonly<Record<string, unknown>>[]
  /** The top-up that was made for it, where the funding mode makes one and credits did not suffice. */
  readonly cryptoFundResult?: TopUpResult
}

export interface UploadParts {
  readonly service: RemoteService
  /** The first of the gateways. */
  readonly gateway: RemoteService
  readonly account: PaymentAccount
  readonly store: ResumeStore
  readonly signer: ClientSigner | undefined
  readonly token: string
  /** Address of the key that receipts are signed by. */
  serviceAddress(): Promise<string | undefined>
}

/** Loaded by those who pay in USDC only: it would be a tenth of what everybody loads. */
export const loadPaidRequest = () => import('./paid-request.js')
/** Few uploads are paid for by a top-up of their own: the rest does not load it. */
export const loadFunding = () => import('./funding.js')

/** The most that one upload may cost by x402 by default, in micro-USDC: 0.10 USDC. */
const defaultMUSDCMax = 100_000n

export interface SendOptions extends ChunkingOptions {
  readonly paidBy?: readonly string[]
  readonly fundingMode?: FundingMode
  readonly signal?: AbortSignal | undefined
  /**
   * Hears of the checked receipt before the upload is forgotten: what is written here is never uploaded and paid a second time,
   * wherever the program ends.
   */
  readonly onReceipt?: ((receipt: UploadResult) => Promise<void>) | undefined
}

/** Sends a signed item, pays for it by the funding mode, and checks the receipt. Repeated calls are charged once. */
export async function sendItem(
  parts: UploadParts,
  item: PreparedItem,
  options: SendOptions,
  emit: Emit,
): Promise<UploadResult> {
  const { store, signer, token } = parts
  const { fundingMode = { mode: 'credits' }, signal } = options
  const paidBy = options.paidBy ?? []
  checkChunking(options)
  if (fundingMode.mode === 'on-demand') (await loadFunding()).checkBuffer(fundingMode)
  emit({ type: 'upload', processedBytes: 0, totalBytes: item.source.size })
  const cryptoFundResult =
    fundingMode.mode === 'on-demand' ? await topUpIfShort(parts, item, fundingMode, signal) : undefined
  const payer = payerOf(fundingMode, signer, store)
  const big = goesInParts(item.source.size, options)
  const fields = big
    ? await (await import('./multi-part.js')).uploadInParts({
        ...parts,
        item,
        options,
        paidBy,
        payer,
        signal,
        emit,
        token: payer ? 'base-usdc' : token,
      })
    : await sendWhole(parts, item, options, payer)
  emit({ type: 'upload', processedBytes: item.source.size, totalBytes: item.source.size })
  const receipt = await checkedReceipt(parts, item, fields)
  const result = cryptoFundResult === undefined ? receipt : { ...receipt, cryptoFundResult }
  await options.onReceipt?.(result)
  await forgetUpload(store, item.resumeKey, parts.service.url)
  return result
}

function payerOf(mode: FundingMode, signer: ClientSigner | undefined, store: ResumeStore): Payer | undefined {
  if (mode.mode !== 'x402') return undefined
  if (signer === undefined)
    throw new ClientError('no-signer', 'x402 needs a signer', 'give the client an EVM key')
  return { signer, store, maxMUSDCAmount: mode.maxMUSDCAmount ?? defaultMUSDCMax }
}

async function topUpIfShort(
  { account, token, store, service }: UploadParts,
  item: PreparedItem,
  mode: Extract<FundingMode, { mode: 'on-demand' }>,
  signal: AbortSignal | undefined,
): Promise<TopUpResult | undefined> {
  const size = item.source.size
  const info = fieldsOfAnswer(await service.ask({ path: '/v1/info', signal }), 'the info')
  const { bytesRemaining } = await account.getFreeStatus()
  const isSmall = size <= Number(info.freeUploadLimitBytes ?? 0)
  if (bytesRemaining === null || (isSmall && size <= bytesRemaining)) return undefined
  const [cost] = await account.getUploadCosts({ bytes: [size] })
  if (cost === undefined || cost.winc === '0') return undefined
  return (await loadFunding()).fundOnDemand(
    account,
    token,
    store,
    placeKey(item.resumeKey, 'topup', service.url),
    wincOf(cost.winc),
    mode,
    signal,
  )
}

async function sendWhole(
  { service, token }: UploadParts,
  item: PreparedItem,
  { paidBy = [], signal }: SendOptions,
  payer: Payer | undefined,
): Promise<Readonly<Record<string, unknown>>> {
  const body = plainBytes(await allBytes(item.source))
  const headers = {
    'content-type': 'application/octet-stream',
    ...(paidBy.length > 0 ? { 'x-paid-by': paidBy.join(',') } : {}),
  }
  const request = { method: 'POST' as const, headers, body, signal }
  if (payer === undefined)
    return receiptFields(service, await service.ask({ ...request, path: `/v1/tx/${token}` }), item, signal)
  const { askPaid } = await loadPaidRequest()
  const paid = { ...request, path: '/v1/x402/upload/signed' }
  const answer = await askPaid(service, paid, placeKey(item.resumeKey, 'payment', service.url), payer)
  return receiptFields(service, answer, item, signal)
}

/** How often and how long to poll the status of an item that another request is just bringing. */
const statusTries = 20
const statusPauseMs = 500

/** The receipt of an answer. A 202 may have none: the item is there or comes by another request; its status is requested. */
async function receiptFields(
  service: RemoteService,
  answer: ServiceAnswer,
  item: PreparedItem,
  signal: AbortSignal | undefined,
): Promise<Readonly<Record<string, unknown>>> {
  const { json } = answer
  const fields = (json ?? {}) as Record<string, unknown>
  if (typeof fields.receipt === 'object' && fields.receipt !== null) return { ...fields, ...fields.receipt }
  if ('signature' in fields) return fields
  if (answer.status !== 202) return fieldsOfAnswer(answer, 'the receipt')
  const { id } = item.header
  for (let tried = 0; tried < statusTries; tried++) {
    const state = await service.ask({ path: `/v1/tx/${id}/status`, signal, accepted: [200, 404] })
    if (state.status === 200) break
    await waited(statusPauseMs, signal)
  }
  const advice = 'nothing was charged again; the receipt is that of the first upload'
  throw new ClientError('rejected', `the service has ${id} already and gives no second receipt`, advice, {
    id,
    status: 202,
  })
}

async function checkedReceipt(
  parts: UploadParts,
  item: PreparedItem,
  fields: Readonly<Record<string, unknown>>,
): Promise<UploadResult> {
  const { id, owner } = item.header
  const texts = ['id', 'public', 'signature', 'version'].every((name) => typeof fields[name] === 'string')
  const numbers = ['timestamp', 'deadlineHeight'].every((name) => Number.isSafeInteger(fields[name]))
  if (!texts || !numbers)
    throw new ClientError(
      'malformed-answer',
      'the receipt lacks fields',
      'check the address of the service',
      { id },
    )
  const receipt = {
    dataCaches: [],
    fastFinalityIndexes: [],
    owner: addressOfOwner(owner),
    ...fields,
    winc: String(fields.winc ?? '0'),
  } as unknown as UploadResult
  await checkReceipt(receipt, id, await parts.serviceAddress())
  if (receipt.owner !== addressOfOwner(owner))
    throw new ClientError(
      'untrue',
      `the receipt names the owner ${receipt.owner}`,
      'use another upload service',
      { id },
    )
  return receipt
}
