import type { Id } from '../format/id.js'
import { idBytes } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { parseTransactionText, type Transaction } from '../format/transaction.js'
import { equalBytes, sha256 } from '../proof/digest.js'
import { verifyTransaction } from '../proof/transaction-proof.js'

/**
 * `GET /tx/{id}`: the transaction that was requested, or `forged` where the answer is another one, its id is not the SHA-256
 * of its signature, or (with `signed`) its owner did not sign it.
 */
export function readTransaction(text: string, id: Id, signed: boolean, node: string): Transaction | Refusal {
  const transaction = parseTransactionText(text)
  if (isRefusal(transaction))
    return refuse('upstream', 'upstream', `${node} sent an answer that cannot be read`)
  if (transaction.id !== id || !equalBytes(sha256(transaction.signature), idBytes(id))) {
    return refuse('forged', 'upstream', `${node} answers with something else`)
  }
  if (!signed) return transaction
  // A node may leave out the data of a format-1 transaction: that is no forgery, but nothing can be verified without
  // it.
  if (transaction.format === 1 && transaction.dataSize > transaction.data.length) {
    return refuse('upstream', 'upstream', `${node} leaves out the data that the signature covers`)
  }
  const verified = verifyTransaction(transaction)
  return verified === true ? transaction : verified
}
