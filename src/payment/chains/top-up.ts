import type { LedgerRecord } from '../../ledger/ledger-port.js'
import type { TokenName } from '../prices/rates.js'

/**
 * A payment on a chain, from its first report on. While it is pending, all fields but its chain, token and id are only what was
 * seen at the report. Times are milliseconds since 1970, by the clock of the service.
 */
export interface TopUp {
  readonly state: 'pending' | 'credited' | 'failed'
  readonly chain: string
  readonly token: TokenName
  readonly id: string
  /** In the token's smallest unit. */
  readonly quantity: string
  readonly winc: string
  readonly usdEquivalent: string
  readonly sender: string
  /** Who was paid. Records of earlier versions have no recipient and no beneficiary. */
  readonly recipient?: string
  /** Whom the sender names for the credits, as he writes it. */
  readonly beneficiary?: string
  /** The wallet that gets the credits. */
  readonly wallet: string
  readonly createdMs: number
  /** When `winc` was computed. Records of earlier versions have none: it was at `createdMs`. */
  readonly pricedMs?: number
  readonly height?: number
  /** How many times it was credited: after a reorganization that took it away it may come again. */
  readonly timesCredited: number
  readonly why?: string
  /** Since when no node has it in a block. */
  readonly missingMs?: number
}

export const topUpKind = 'topup'
/** Names of the payments that are looked at again: pending ones, and credited ones that are not deep enough to be sure. */
export const watchedKind = 'topup-watched'
/** Names of those among them that were seen in a block. */
export const minedKind = 'topup-mined'

/** The key of a payment's record. */
export function topUpKey(chain: string, id: string): string {
  // Hashes of EVM chains and of Cosmos are hexadecimal, in any case of letters.
  return `${chain}:${id.startsWith('0x') || chain === 'kyve' ? id.toLowerCase() : id}`
}

/** A payment as it is stored (JSON): the names of three fields are those of the first version. */
export type StoredTopUp = Omit<TopUp, 'beneficiary' | 'wallet' | 'timesCredited'> & {
  readonly aim?: string
  readonly destination: string
  readonly credits: number
}

/** Reads what `encodeTopUp` wrote. */
export function readTopUp(record: LedgerRecord): TopUp {
  const {
    aim,
    destination: wallet,
    credits: timesCredited,
    ...rest
  } = JSON.parse(record.value) as StoredTopUp
  return { ...rest, ...(aim === undefined ? {} : { beneficiary: aim }), wallet, timesCredited }
}

/** The value of a payment's record. */
export function encodeTopUp(topUp: TopUp): string {
  const { beneficiary, wallet: destination, timesCredited: credits, ...rest } = topUp
  const aim = beneficiary === undefined ? {} : { aim: beneficiary }
  return JSON.stringify({ ...rest, ...aim, destination, credits } satisfies StoredTopUp)
}
