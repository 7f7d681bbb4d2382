import type { ItemFilter } from '../../config/item-filter.js'
import type { Address } from '../actor/mailbox-address.js'
import type { Id } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import type { Transactions } from '../source/roots/transaction-headers.js'
import type { SourceReply, SourceRequest } from '../source/source-messages.js'
import { transactionSubject } from './chain-rows.js'
import { matches } from './filter.js'

/** The part of what the store may take that is filled with bundles which nobody requested yet. */
const filledShare = 0.9

export interface KeptBundlesParts {
  readonly source: Pick<Address<SourceRequest, SourceReply>, 'ask'>
  readonly transactions: Pick<Transactions, 'header'>
  /** Bundles that are kept; absent: all, as long as there is room. */
  readonly filter: ItemFilter | undefined
  /** Bytes that the store may take, and bytes that it takes. */
  readonly maxBytes: number
  readonly usedBytes: () => number
}

/**
 * Has bundles fetched into the store before they are opened. Their items are then served from them, and opener and verifier read
 * the same bytes, which were fetched once.
 */
export class KeptBundles {
  constructor(private readonly parts: KeptBundlesParts) {}

  /**
   * Resolves when the bundle is in the store and proven. It also resolves where it should not or cannot be stored now, or where
   * `signal` aborts: then it is read without the store. Never rejects.
   */
  async bring(id: Id, signal: AbortSignal): Promise<void> {
    if (!(await this.#isWanted(id, signal)) || signal.aborted) return
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        signal.removeEventListener('abort', finish)
        resolve()
      }
      signal.addEventListener('abort', finish)
      void this.parts.source.ask({ kind: 'fetch-proven', id }).then(finish)
    })
  }

  async #isWanted(id: Id, signal: AbortSignal): Promise<boolean> {
    const { filter, transactions, usedBytes, maxBytes } = this.parts
    if (filter?.kind === 'never') return false
    const transaction = await transactions.header(id, { signal })
    if (isRefusal(transaction)) return false
    if (filter !== undefined) return matches(filter, transactionSubject(transaction))
    return usedBytes() + transaction.dataSize <= maxBytes * filledShare
  }
}
