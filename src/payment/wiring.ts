import type { ClientOptions } from '../admission/clients.js'
import type { ChainOptions } from '../chain/options.js'
import type { ReaderOptions } from './readers.js'
import type { SmtpOptions } from './smtp-mailer.js'
import type { StripeOptions } from './stripe-cards.js'
import type { X402Options } from './x402-desk.js'

/** What `workers/payment.ts` is started with. Answers `CreditsRequest` with `CreditsReply` on every port that comes. */
export interface PaymentThread {
  /** Opens its orders for the operator. */
  readonly adminKey: string
  /** Its row of the meter table. */
  readonly row: number
  readonly meters: SharedArrayBuffer
  readonly serve: {
    readonly host: string
    readonly port: number
    readonly stallMs: number
    readonly bodyBytesPerSecondMin: number
    readonly flowsMax: number
    readonly connectionsMax?: number
  }
  /** Whose share of the connections and requests a request uses. */
  readonly clients: ClientOptions
  readonly drainMs: number
  /** Folder of the ledger. */
  readonly ledgerPath: string
  /** The ledger is in this database, and not in the folder. */
  readonly databaseUrl?: string
  /** File of the key that signs its heads. */
  readonly headKeyPath: string
  /** The network's nodes: prices and payments. */
  readonly chain: ChainOptions
  readonly privateSecret: string
  /** Sources of prices; none: a fixed table. */
  readonly oracleUrls: readonly string[]
  readonly feePermille: number
  readonly itemMicroUsd: number
  readonly release: string
  /** Token to the address that receives payments. */
  readonly addresses: Readonly<Record<string, string>>
  readonly gateway: string
  /** File of a wallet to be made, where payments in AR have no address: on devnet. */
  readonly devnetWalletPath?: string
  readonly readers: ReaderOptions
  /** Absent: a page on this machine where `localCards`, else no cards. */
  readonly stripe?: StripeOptions
  readonly localCards: boolean
  /** Absent: no USDC is taken by x402. */
  readonly x402?: X402Options
  /** Folders of the names that are sold on this machine; absent: no names are sold. */
  readonly names?: { readonly list: string; readonly leases: string }
  /** The mail server; absent: letters stay in the outbox. */
  readonly mail?: SmtpOptions
  /** Page where gifts are redeemed; absent: the one of this service. */
  readonly giftUrl?: string
  readonly excluded: readonly string[]
  readonly recheckMs: number
  readonly lostMs: number
  /** The upload service elsewhere that counts what is free; goes before `free`. */
  readonly uploadUrl?: string
  /** What an upload service of this program gives for free, and the folder of its tables; absent: nothing is free. */
  readonly free?: {
    readonly tablesPath: string
    readonly rules: {
      readonly itemMaxBytes: number
      readonly walletBytes: number
      readonly rangeBytes: number
      readonly exemptWallets: readonly string[]
    }
  }
  readonly logLevel: string
}

/** What the thread says when it is up. */
export interface PaymentThreadSaid {
  readonly port: number
}
