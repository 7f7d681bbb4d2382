import type { LedgerRecord } from '../../ledger/ledger-port.js'
import type { TokenWord } from '../prices/rates.js'

/** A payment on a chain, from its first report on. While it is pending, all but its name is only what was seen then. */
export interface TopUp {
  readonly state: 'pending' | 'credited' | 'failed'
  readonly chain: string
  readonly token: TokenWord
  readonly id: string
  /** In the token's smallest unit. */
  readonly quantity: string
  readonly winc: string
  readonly usdEquivalent: string
  readonly sender: string
  /** Who was paid. Records of earlier versions have none, nor the next one. */
  readonly recipient?: string
  /** Whom the sender names for the credits, as he writes it. */
  readonly aim?: string
  /** The wallet that gets the credits. */
  readonly destination: string
  readonly createdMs: number
  /** When `winc` was computed, in the ledger's time; in records of earlier versions `createdMs`. */
  readonly pricedMs?: number
  readonly height?: number
  /** How often it was credited: after a reorganization that took it away it may come again. */
  readonly credits: number
  readonly why?: string
  /** Since when no node has it in a block. */
  readonly missingMs?: number
}

export const topUpKind = 'topup'
/** Those that are still looked at: pending, or credited but not deep enough to stay for sure. */
export const watchedKind = 'topup-watched'

/** The key of a payment's record. */
export function topUpKey(chain: string, id: string): string {
  // Hashes of EVM chains and of Cosmos are hexadecimal, in any case of letters.
  return `${chain}:${id.startsWith('0x') || chain === 'kyve' ? id.toLowerCase() : id}`
}

export function readTopUp(record: LedgerRecord): TopUp {
  return JSON.parse(record.value) as TopUp
}
