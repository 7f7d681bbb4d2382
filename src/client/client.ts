import { encodeBase64url } from '../format/base64url.js'
import { PaymentAccount } from './account.js'
import type { TopUpResult } from './account-answers.js'
import { utf8 } from './bytes.js'
import { ClientError } from './errors.js'
import type { TopUpRequest } from './funding.js'
import { allBytes, type PayloadSource, payloadOf, type UploadData } from './payload.js'
import { platformFetch } from './platform-fetch.js'
import { type DataItemOptions, placeKey, preparedFromSource, prepareItem, shortName } from './prepare.js'
import { checkReceipt, type UploadReceipt } from './receipt-proof.js'
import { memoryStore, type ResumeStore } from './resume-store.js'
import { type FetchLike, fieldsOfAnswer, RemoteService, type RetryOptions } from './service.js'
import type { ClientSigner } from './signer.js'
import { type UploadEvents, UploadTask } from './task.js'
import {
  loadFunding,
  loadPaidRequest,
  type SendOptions,
  sendItem,
  type UploadParts,
  type UploadResult,
} from './upload.js'

/** Where the services are. */
export interface ServiceAddresses {
  readonly uploadUrl: string
  readonly paymentUrl: string
  /** Gateways, the first one preferred. */
  readonly gatewayUrls: readonly string[]
}

/** The services of the public network, and those of a program on this machine (`sluice start`). */
export const networks = {
  mainnet: {
    uploadUrl: 'https://upload.ardrive.io',
    paymentUrl: 'https://payment.ardrive.io',
    gatewayUrls: ['https://arweave.net', 'https://permagate.io', 'https://ar-io.dev'],
  },
  local: {
    uploadUrl: 'http://127.0.0.1:3001',
    paymentUrl: 'http://127.0.0.1:3002',
    gatewayUrls: ['http://127.0.0.1:3000'],
  },
} as const satisfies Record<string, ServiceAddresses>

export interface SluiceOptions extends Partial<ServiceAddresses> {
  /** `mainnet` by default. Single addresses win over it. */
  readonly network?: keyof typeof networks
  readonly signer?: ClientSigner
  /** The word for what credits are bought with; the signer's own by default. */
  readonly token?: string
  readonly fetch?: FetchLike
  /** Remembers uploads under way; in memory by default. */
  readonly resume?: ResumeStore
  readonly retry?: RetryOptions
  /** Address of the key that must sign receipts; the one that the service names, unless given. */
  readonly serviceAddress?: string
}

export interface UploadOptions extends Omit<SendOptions, 'paidBy'> {
  readonly dataItemOpts?: DataItemOptions
  readonly events?: UploadEvents
}

/** Uploads, credits and prices. Operations have the names of the interface; what needs a key rejects without a signer. */
export class SluiceClient extends PaymentAccount {
  readonly addresses: ServiceAddresses
  readonly #options: SluiceOptions
  readonly #parts: UploadParts
  #serviceAddress: Promise<string | undefined> | undefined

  constructor(options: SluiceOptions = {}) {
    const preset = networks[options.network ?? 'mainnet']
    const fetcher = options.fetch ?? platformFetch
    const paymentUrl = options.paymentUrl ?? preset.paymentUrl
    const token = options.token ?? options.signer?.token ?? 'arweave'
    super(new RemoteService(paymentUrl, fetcher, options.retry), options.signer, token)
    const uploadUrl = options.uploadUrl ?? preset.uploadUrl
    this.addresses = { uploadUrl, paymentUrl, gatewayUrls: options.gatewayUrls ?? preset.gatewayUrls }
    this.#options = options
    const service = new RemoteService(uploadUrl, fetcher, options.retry)
    this.#parts = {
      service,
      gateway: new RemoteService(this.addresses.gatewayUrls[0] ?? '', fetcher, options.retry),
      account: this,
      store: options.resume ?? memoryStore(),
      signer: options.signer,
      token,
      serviceAddress: () => this.#receiptAddress(service),
    }
  }

  get currentSigner(): ClientSigner | undefined {
    return this.#options.signer
  }

  /** What folder uploads and the file-system layer need of this client. */
  get uploadParts(): UploadParts {
    return this.#parts
  }

  async #receiptAddress(service: RemoteService): Promise<string | undefined> {
    if (this.#options.serviceAddress !== undefined) return this.#options.serviceAddress
    this.#serviceAddress ??= service.ask({ path: '/v1/info' }).then((answer) => {
      const { addresses } = fieldsOfAnswer(answer, 'the info') as { addresses?: { arweave?: string } }
      return addresses?.arweave
    })
    try {
      return await this.#serviceAddress
    } catch (error) {
      this.#serviceAddress = undefined
      throw error
    }
  }

  #required(what: string): ClientSigner {
    if (this.#options.signer !== undefined) return this.#options.signer
    throw new ClientError('no-signer', `${what} needs a signer`, 'give the client a signer')
  }

  /** Signs content as a data item and uploads it. Await it for the receipt; iterate for progress. */
  upload({
    data,
    events,
    ...options
  }: UploadOptions & { readonly data: UploadData }): UploadTask<UploadResult> {
    return new UploadTask('item', events, async (emit) => {
      const signer = this.#required('an upload')
      const item = options.dataItemOpts ?? {}
      const source = await payloadOf(data)
      const prepared = await prepareItem(source, item, signer, this.#parts.store, emit, options.signal)
      return sendItem(this.#parts, prepared, sendOptions(options), emit)
    })
  }

  /** The same for a file: a `File` or `Blob` of browsers, or a source with its size. A missing Content-Type is its own. */
  uploadFile({
    file,
    ...options
  }: UploadOptions & { readonly file: Blob | PayloadSource }): UploadTask<UploadResult> {
    const { tags = [] } = options.dataItemOpts ?? {}
    const type = 'type' in file ? file.type : ''
    const isTyped = type === '' || tags.some(({ name }) => name.toLowerCase() === 'content-type')
    const all = isTyped ? tags : [...tags, { name: 'Content-Type', value: type }]
    return this.upload({ ...options, data: file, dataItemOpts: { ...options.dataItemOpts, tags: all } })
  }

  /** Uploads an item that was signed elsewhere. The factories may be called more than once. */
  uploadSignedDataItem({
    dataItemStreamFactory,
    dataItemSizeFactory,
    events,
    ...options
  }: Omit<UploadOptions, 'dataItemOpts'> & {
    readonly dataItemStreamFactory: () => UploadData
    readonly dataItemSizeFactory?: () => number
    readonly dataItemOpts?: Pick<DataItemOptions, 'paidBy'>
  }): UploadTask<UploadResult> {
    return new UploadTask('item', events, async (emit) => {
      const source = await payloadOf(dataItemStreamFactory())
      const size = dataItemSizeFactory?.()
      if (size !== undefined && size !== source.size)
        throw new ClientError(
          'invalid-input',
          `${source.size} bytes, not ${size}`,
          'give the size of the whole item',
        )
      return sendItem(this.#parts, await preparedFromSource(source), sendOptions(options), emit)
    })
  }

  /**
   * Uploads raw bytes that the service signs, paid in USDC; free of charge and without a signer where the
   * service gives small ones away.
   */
  async uploadRawX402Data({
    data,
    tags = [],
    maxMUSDCAmount = 100_000n,
    signal,
  }: {
    readonly data: UploadData
    readonly tags?: DataItemOptions['tags']
    readonly maxMUSDCAmount?: bigint
    readonly signal?: AbortSignal
  }): Promise<UploadReceipt> {
    const body = new Uint8Array(await allBytes(await payloadOf(data)))
    const tagText = JSON.stringify(tags)
    const headers = { 'content-type': 'application/octet-stream', 'x-data-item-tags': tagText }
    const { service, store, signer } = this.#parts
    const key = placeKey(`raw:${shortName(utf8(tagText), body)}`, 'payment', service.url)
    const request = { method: 'POST' as const, path: '/v1/x402/upload/unsigned', headers, body, signal }
    const paying = signer?.signTransfer === undefined ? undefined : { signer, ...(await loadPaidRequest()) }
    const answer =
      paying === undefined
        ? await service.ask(request)
        : await paying.askPaid(service, request, key, { signer: paying.signer, store, maxMUSDCAmount })
    const fields = fieldsOfAnswer(answer, 'the receipt')
    const nested = typeof fields.receipt === 'object' && fields.receipt !== null ? fields.receipt : {}
    const receipt = { ...fields, ...nested, winc: String(fields.winc ?? '0') } as unknown as UploadReceipt
    await checkReceipt(receipt, receipt.id, await this.#parts.serviceAddress())
    await paying?.forgetPayment(store, key, answer)
    return receipt
  }

  /** Sends tokens to the payment service and reports the transaction. `key`: repeats of one top-up have the same. */
  async topUpWithTokens({ key, ...request }: TopUpRequest & { readonly key?: string }): Promise<TopUpResult> {
    const { store, token } = this.#parts
    const name = `topup:${key ?? encodeBase64url(crypto.getRandomValues(new Uint8Array(12)))}`
    const result = await (await loadFunding()).topUp(this, token, store, name, request)
    await store.delete(name)
    return result
  }

  /** Lets another wallet upload with so many of the signer's credits. */
  async shareCredits({
    approvedAddress,
    approvedWincAmount,
    expiresBySeconds,
  }: {
    readonly approvedAddress: string
    readonly approvedWincAmount: string | bigint | number
    readonly expiresBySeconds?: number
  }): Promise<{ readonly approvalDataItemId: string; readonly approvedWincAmount: string }> {
    const expiry =
      expiresBySeconds === undefined ? [] : [{ name: 'x-expires-seconds', value: String(expiresBySeconds) }]
    const tags = [
      { name: 'x-approve-payment', value: approvedAddress },
      { name: 'x-amount', value: String(approvedWincAmount) },
      ...expiry,
    ]
    const { createdApproval } = await this.upload({
      data: freshNote(approvedAddress),
      dataItemOpts: { tags },
    })
    if (createdApproval === undefined) throw notDone('approval')
    return createdApproval as unknown as { approvalDataItemId: string; approvedWincAmount: string }
  }

  /** Takes back what another wallet has not used. */
  async revokeCredits({
    revokedAddress,
  }: {
    readonly revokedAddress: string
  }): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const tags = [{ name: 'x-delete-payment-approval', value: revokedAddress }]
    const { revokedApprovals } = await this.upload({
      data: freshNote(revokedAddress),
      dataItemOpts: { tags },
    })
    if (revokedApprovals === undefined) throw notDone('revocation')
    return revokedApprovals
  }
}

/** Content that no earlier item of this kind has: the same content and tags would be the same item for keys that sign alike. */
function freshNote(address: string): string {
  return `${address} ${encodeBase64url(crypto.getRandomValues(new Uint8Array(12)))}`
}

function notDone(what: string): ClientError {
  const found = `the item was taken, but the service tells of no ${what}`
  return new ClientError(
    'rejected',
    found,
    'look at getCreditShareApprovals; this service may not know approvals',
  )
}

function sendOptions({ dataItemOpts, ...rest }: UploadOptions): SendOptions {
  return dataItemOpts?.paidBy === undefined ? rest : { ...rest, paidBy: dataItemOpts.paidBy }
}
