import type { Address } from '../../actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import type { ChainIndex } from '../../catalog/index-reader.js'
import { packTransactions } from '../../catalog/pack.js'
import { idBytes } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { parseTransaction, type Transaction } from '../../format/transaction.js'
import { pendingInput, transactionAttributes } from '../../ingest/chain-rows.js'
import { verifyTransaction } from '../../proof/transaction-proof.js'
import { done, malformedOrder, type Order, type OrderAnswer, type OrderCall } from './order.js'

export interface OptimisticOrderParts {
  readonly keeper: Address<CatalogRequest, CatalogReply>
  readonly index: ChainIndex
  /** False: the order answers 403. */
  readonly isEnabled: boolean
}

/** Each is verified on this thread in some 0.1 ms, up to 2 ms for large keys. */
const transactionsMax = 100
const bodyMaxBytes = 10_000_000
/** Fields that are needed to verify it. */
const needed = ['id', 'owner', 'signature', 'last_tx'] as const

/**
 * Announces transactions that were posted elsewhere, before a node lists them. They are pending until their block comes.
 */
export function optimisticOrder(parts: OptimisticOrderParts): Order {
  return {
    method: 'POST',
    path: 'queue-optimistic-tx',
    summary: 'Announces transactions that no node has announced',
    statuses: [200, 403, 503],
    bodyMaxBytes,
    act: (call) => queue(parts, call),
  }
}

async function queue(
  { keeper, index, isEnabled }: OptimisticOrderParts,
  { body }: OrderCall,
): Promise<OrderAnswer> {
  if (!isEnabled) return { status: 403, body: 'Optimistic tx indexing is disabled' }
  const given: readonly unknown[] = Array.isArray(body) ? body : [body]
  if (given.length === 0) return malformedOrder('Must provide a transaction header')
  if (given.length > transactionsMax)
    return malformedOrder(`Too many transaction headers: ${transactionsMax} at most`)
  index.refresh()
  const transactions: Transaction[] = []
  for (const one of given) {
    const read = verified(one)
    if (isRefusal(read)) return malformedOrder(read.message)
    // Transactions that the index has already are left as they are: more is known of them.
    if (index.row(idBytes(read.id)) === undefined) transactions.push(read)
  }
  const rows = transactions.map(pendingInput)
  const attributes = transactions.map((transaction) => transactionAttributes(transaction, undefined))
  const reply = await keeper.ask({
    kind: 'all',
    requests: [
      { kind: 'index-pending', transactions: packTransactions(rows, 'came') },
      { kind: 'learn', attributes },
    ],
  })
  if (!isRefusal(reply)) return done('Optimistic transaction(s) indexed')
  return { status: 503, body: reply.message, retryAfterSeconds: 1 }
}

function verified(given: unknown): Transaction | Refusal {
  const fields = (typeof given === 'object' && given !== null ? given : {}) as Readonly<
    Record<string, unknown>
  >
  const missing = needed.find((name) => typeof fields[name] !== 'string')
  if (missing !== undefined)
    return { refused: 'malformed', fault: 'client', message: `Must provide '${missing}'` }
  const transaction = parseTransaction(given)
  if (isRefusal(transaction)) return transaction
  const held = verifyTransaction(transaction)
  return held === true ? transaction : held
}
