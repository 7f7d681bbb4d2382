import { createReadStream, statSync } from 'node:fs'
import type { ClientOperations, UploadWords } from './client-operations.js'
import { folderCallbacks, itemCallbacks, listening, type Places } from './our-client.js'

type Given = Readonly<Record<string, unknown>>

/** What of the library is used; it is too large to be a dependency for its types. */
type Turbo = Readonly<Record<string, (given?: unknown) => Promise<unknown>>>

export interface TurboLibrary {
  readonly TurboFactory: {
    authenticated(given: Given): Turbo
    unauthenticated(given: Given): Turbo
  }
  USD(amount: number): unknown
  createMemoryFolderIndex(): object
  readonly OnDemandFunding: new (given: Given) => object
  readonly X402Funding: new (given: Given) => object
}

function optionsOf({ tags, target, anchor, paidBy, isChunked, heard }: UploadWords = {}): Given {
  return {
    dataItemOpts: { tags, target, anchor, paidBy },
    ...(isChunked === true && { chunkingMode: 'force' }),
    events: listening(itemCallbacks, heard),
  }
}

/** The client that the network uses, unmodified. */
export function turboOperations(
  library: TurboLibrary,
  places: Places & { readonly rpc?: string },
  key: {
    readonly privateKey: unknown
    readonly address: string
    readonly token: string
    readonly tokenTools?: object
  },
): ClientOperations {
  const { address: nativeAddress, ...own } = key
  const { TurboFactory, USD, createMemoryFolderIndex } = library
  const services = {
    uploadServiceConfig: { url: places.upload },
    paymentServiceConfig: { url: places.payment },
    gatewayUrl: places.rpc ?? places.gateway,
  }
  const turbo = TurboFactory.authenticated({ ...services, ...own })
  // Raw uploads are for one token only there, whoever asks.
  const raw = TurboFactory.unauthenticated({ ...services, token: 'base-usdc' })
  const indexes = new Map<string, object>()
  const call = (name: string, given?: unknown): Promise<unknown> => {
    const operation = turbo[name]
    if (operation === undefined) throw new Error(`the library has no ${name}`)
    return operation.call(turbo, given)
  }
  return {
    getBalance: () => call('getBalance'),
    getFreeStatus: () => call('getFreeStatus'),
    getPaymentHistory: (given) => call('getPaymentHistory', given),
    getUploadCosts: (bytes) => call('getUploadCosts', { bytes }),
    getWincForFiat: (cents, promoCodes = []) =>
      call('getWincForFiat', { amount: USD(cents / 100), promoCodes, nativeAddress }),
    getWincForToken: (tokenAmount) => call('getWincForToken', { tokenAmount }),
    getFiatEstimateForBytes: (byteCount, currency) =>
      call('getFiatEstimateForBytes', { byteCount, currency }),
    getTokenPriceForBytes: (byteCount) => call('getTokenPriceForBytes', { byteCount }),
    getFiatToAR: (currency) => call('getFiatToAR', { currency }),
    getFiatRates: () => call('getFiatRates'),
    getSupportedCurrencies: () => call('getSupportedCurrencies'),
    getSupportedCountries: () => call('getSupportedCountries'),
    createCheckoutSession: (cents, owner) =>
      call('createCheckoutSession', { amount: USD(cents / 100), owner }),
    submitFundTransaction: (txId) => call('submitFundTransaction', { txId }),
    topUpWithTokens: (tokenAmount) => call('topUpWithTokens', { tokenAmount }),
    upload: (data, words) => call('upload', { data, ...optionsOf(words) }),
    uploadFile: async (path, words) => {
      const { size } = statSync(path)
      const fileStreamFactory = () => createReadStream(path)
      return call('uploadFile', { fileStreamFactory, fileSizeFactory: () => size, ...optionsOf(words) })
    },
    async uploadFolder(folderPath, store) {
      const folderIndex = indexes.get(store) ?? createMemoryFolderIndex()
      indexes.set(store, folderIndex)
      const heard = new Set<string>()
      const events = listening(folderCallbacks, heard)
      const result = (await call('uploadFolder', { folderPath, folderIndex, events })) as object
      return { ...result, heard: [...heard].sort() }
    },
    uploadSignedDataItem: (bytes) =>
      call('uploadSignedDataItem', {
        dataItemStreamFactory: () => Buffer.from(bytes),
        dataItemSizeFactory: () => bytes.length,
      }),
    uploadRawX402Data: async (data) =>
      raw.uploadRawX402Data?.call(raw, { data, tags: [{ name: 'A', value: 'b' }] }),
    shareCredits: (given) => call('shareCredits', given),
    revokeCredits: (revokedAddress) => call('revokeCredits', { revokedAddress }),
    getCreditShareApprovals: (userAddress) => call('getCreditShareApprovals', { userAddress }),
  }
}
