/** `sluice/client`: uploads, credits, folders. Runs in Node, Deno, Bun, browsers and their workers. */
export { PaymentAccount } from './account.js'
export type {
  CheckoutSession,
  CreditApproval,
  CreditBalance,
  CreditShares,
  CreditSharesPage,
  CurrencyAmount,
  FiatEstimate,
  FiatQuote,
  FiatRates,
  HistoryItem,
  HistoryPage,
  TokenQuote,
  TopUpResult,
  UploadCost,
} from './account-answers.js'
export { creditsText, dollarsText } from './amounts.js'
export type { ChunkingOptions } from './chunking.js'
export {
  networks,
  type ServiceAddresses,
  SluiceClient,
  type SluiceOptions,
  type UploadOptions,
} from './client.js'
export { ClientError, type ErrorCode } from './errors.js'
export { type FolderFile, type FolderOptions, type FolderResult, uploadFolder } from './folder.js'
export { chainLayer, type FileKey, type FolderIndexLayer, keyText, serviceLayer } from './folder-index.js'
export type { FundingMode, SendTokens, TopUpRequest } from './funding.js'
export { readItemHead, type SignedHead } from './item-layout.js'
export { isOwnersItem } from './item-proof.js'
export type { PayloadSource, UploadData } from './payload.js'
export { type DataItemOptions, signedItem } from './prepare.js'
export { creditsPageOf, quoteUploads, type UploadQuote } from './quote.js'
export { checkReceipt, isReceiptSigned, receiptSigner, type UploadReceipt } from './receipt-proof.js'
export { memoryStore, type ResumeStore, webStore } from './resume-store.js'
export type { ArweaveJwk } from './rsa.js'
export {
  type ArweaveWallet,
  addressOfOwner,
  type ClientSigner,
  type EthereumWallet,
  type SolanaWallet,
  signerOfArweave,
  signerOfArweaveWallet,
  signerOfEd25519,
  signerOfEthereum,
  signerOfEthereumWallet,
  signerOfSolana,
  signerOfSolanaWallet,
} from './signer.js'
export type { TextTag } from './tags.js'
export { type ProgressEvent, type UploadEvents, UploadTask } from './task.js'
export type { UploadResult } from './upload.js'
