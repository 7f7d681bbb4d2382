import { SluiceClient, type UploadOptions } from '../../src/client/client.js'
import { uploadFolder } from '../../src/client/folder.js'
import type { SendTokens } from '../../src/client/funding.js'
import { fileStore } from '../../src/client/node/file-store.js'
import { fileSource, readFolder } from '../../src/client/node/files.js'
import type { ClientSigner } from '../../src/client/signer.js'
import type { ClientOperations, UploadWords } from './client-operations.js'

export interface Places {
  readonly upload: string
  readonly payment: string
  readonly gateway: string
}

/** The names of the callbacks that are called, as they are called. */
export function listening(
  names: readonly string[],
  heard: Set<string> | undefined,
): Record<string, () => void> {
  return Object.fromEntries(names.map((name) => [name, () => void heard?.add(name)]))
}

export const itemCallbacks = [
  'onProgress',
  'onSuccess',
  'onError',
  'onUploadProgress',
  'onUploadSuccess',
  'onUploadError',
  'onSigningProgress',
  'onSigningSuccess',
  'onSigningError',
]
export const folderCallbacks = [
  'onFileStart',
  'onFileProgress',
  'onFileComplete',
  'onFileError',
  'onFolderProgress',
  'onFolderSuccess',
  'onFolderError',
]

function optionsOf({ tags, target, anchor, paidBy, isChunked, heard }: UploadWords = {}): UploadOptions {
  return {
    dataItemOpts: {
      ...(tags && { tags }),
      ...(target !== undefined && { target }),
      ...(anchor !== undefined && { anchor }),
      ...(paidBy && { paidBy }),
    },
    ...(isChunked === true && { chunkingMode: 'force' as const }),
    events: listening(itemCallbacks, heard),
  }
}

/** Our client. */
export function ourOperations(
  places: Places,
  signer: ClientSigner,
  sendTokens: SendTokens,
): ClientOperations {
  const { upload: uploadUrl, payment: paymentUrl, gateway } = places
  const services = { uploadUrl, paymentUrl, gatewayUrls: [gateway], signer }
  const client = new SluiceClient(services)
  const usd = (amount: number): { currency: string; amount: number } => ({ currency: 'usd', amount })
  return {
    getBalance: () => client.getBalance(),
    getFreeStatus: () => client.getFreeStatus(),
    getPaymentHistory: (given) => client.getPaymentHistory(given),
    getUploadCosts: (bytes) => client.getUploadCosts({ bytes }),
    getWincForFiat: (cents, promoCodes = []) => client.getWincForFiat({ amount: usd(cents), promoCodes }),
    getWincForToken: (tokenAmount) => client.getWincForToken({ tokenAmount }),
    getFiatEstimateForBytes: (byteCount, currency) => client.getFiatEstimateForBytes({ byteCount, currency }),
    getTokenPriceForBytes: (byteCount) => client.getTokenPriceForBytes({ byteCount }),
    getFiatToAR: (currency) => client.getFiatToAR({ currency }),
    getFiatRates: () => client.getFiatRates(),
    getSupportedCurrencies: () => client.getSupportedCurrencies(),
    getSupportedCountries: () => client.getSupportedCountries(),
    createCheckoutSession: (cents, owner) => client.createCheckoutSession({ amount: usd(cents), owner }),
    submitFundTransaction: (txId) => client.submitFundTransaction({ txId }),
    topUpWithTokens: (tokenAmount) =>
      client.topUpWithTokens({ tokenAmount: BigInt(tokenAmount), sendTokens, pollMs: 500 }),
    upload: (data, words) => client.upload({ data, ...optionsOf(words) }).result,
    uploadFile: async (path, words) =>
      client.uploadFile({ file: await fileSource(path), ...optionsOf(words) }).result,
    async uploadFolder(path, store) {
      const { files } = await readFolder(path)
      const heard = new Set<string>()
      const events = listening(folderCallbacks, heard)
      const resuming = new SluiceClient({ ...services, resume: fileStore(store) })
      const { fileResponses, manifestResponse, ...rest } = await uploadFolder(resuming, { files, events })
      const receipts = fileResponses.flatMap(({ receipt }) => receipt ?? [])
      return {
        ...rest,
        fileResponses: receipts,
        manifestResponse: manifestResponse?.receipt,
        heard: [...heard].sort(),
      }
    },
    uploadSignedDataItem: (bytes) =>
      client.uploadSignedDataItem({
        dataItemStreamFactory: () => bytes,
        dataItemSizeFactory: () => bytes.length,
      }).result,
    uploadRawX402Data: (data) => client.uploadRawX402Data({ data, tags: [{ name: 'A', value: 'b' }] }),
    shareCredits: (given) => client.shareCredits(given),
    revokeCredits: (revokedAddress) => client.revokeCredits({ revokedAddress }),
    getCreditShareApprovals: (userAddress) => client.getCreditShareApprovals({ userAddress }),
  }
}
