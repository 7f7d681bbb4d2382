import type { Requester } from '../actor/requester.js'
import { Gathered } from '../format/gathered.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { Transaction } from '../format/transaction.js'
import { transactionDataRoot, verifyTransaction } from '../proof/transaction-proof.js'
import type { Chain } from './chain.js'

export type HeaderChain = Pick<Chain, 'transaction' | 'transactionData'>

const nothing = new Uint8Array(0)

export interface VerifiedHeader {
  /** Without data. */
  readonly transaction: Transaction
  /** The data root that its block's tree has for it: in format 1 it is in no field but computed from the data. */
  readonly treeRoot: Uint8Array
}

/**
 * The header of a mined transaction, its id and signature verified. Where the signature covers the data (format 1)
 * and the node leaves it out, the data is requested, too. `judges` false: nothing is verified.
 */
export async function verifiedHeader(
  chain: HeaderChain,
  id: Id,
  requester: Requester,
  judges = true,
): Promise<VerifiedHeader | Refusal> {
  const answer = await chain.transaction(id, { signed: false, ...requester })
  if (isRefusal(answer)) return answer
  const whole = answer.format === 2 ? { ...answer, data: nothing } : await withData(chain, answer, requester)
  if (isRefusal(whole)) return whole
  const held = judges ? verifyTransaction(whole) : true
  if (held !== true) return held
  return { transaction: { ...whole, data: nothing }, treeRoot: transactionDataRoot(whole) }
}

async function withData(
  chain: HeaderChain,
  transaction: Transaction,
  requester: Requester,
): Promise<Transaction | Refusal> {
  if (transaction.data.length === transaction.dataSize) return transaction
  const flow = await chain.transactionData(transaction.id, transaction.dataSize, requester)
  if (isRefusal(flow)) return flow
  const gathered = new Gathered(transaction.dataSize)
  for await (const piece of flow.bytes) {
    if (isRefusal(piece)) return piece
    gathered.add(piece)
  }
  return { ...transaction, data: gathered.bytes() }
}
