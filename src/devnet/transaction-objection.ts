import type { TransactionRow, Wallet } from './chain-store.js'
import { costOf } from './growth.js'

/** State of the chain against which an arriving transaction is checked. */
export interface Circumstances {
  readonly wallet: Wallet
  /** Winston that the owner's waiting transactions will take. */
  readonly waitingWinston: bigint
  /** Is this one of the last blocks? */
  readonly isRecent: (anchor: string) => boolean
  readonly leastReward: bigint
}

/** Why a valid transaction cannot be mined now, as nodes word it; undefined where it can. */
export function objection(row: TransactionRow, now: Circumstances): string | undefined {
  if (BigInt(row.reward) < now.leastReward) {
    return `Transaction verification failed. The reward must be at least ${now.leastReward} winston.`
  }
  if (row.quantity !== '0' && row.target === row.owner) {
    return 'Transaction verification failed. A wallet cannot send to itself.'
  }
  if (row.quantity !== '0' && row.target === '') return 'Transaction verification failed. There is no target.'
  if (row.anchor !== now.wallet.last && !now.isRecent(row.anchor)) return 'Invalid anchor (last_tx).'
  if (costOf(row) + now.waitingWinston > BigInt(now.wallet.balance)) {
    return 'Waiting TXs exceed balance for wallet.'
  }
  return undefined
}
