import { idBytes } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import { parseTransactionText } from '../format/transaction.js'
import { equalBytes, sha256 } from './digest.js'
import { verifyTransaction } from './transaction-proof.js'

/** Why a posted transaction (JSON) is invalid, in a sentence; undefined where it is valid as far as it can be checked here. */
export function faultOfPosted(body: Uint8Array): string | undefined {
  const transaction = parseTransactionText(Buffer.from(body).toString('utf8'))
  if (isRefusal(transaction)) return `Invalid ${transaction.message}`
  if (!equalBytes(sha256(transaction.signature), idBytes(transaction.id))) {
    return 'Invalid signature: the id is not its SHA-256'
  }
  // What only nodes can check is left to them.
  if (transaction.denomination !== 0 && transaction.format === 1) return undefined
  const verified = verifyTransaction(transaction)
  return verified === true ? undefined : `Invalid signature: ${verified.message}`
}
