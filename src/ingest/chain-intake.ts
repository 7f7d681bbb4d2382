import type { ItemFilter } from '../../config/item-filter.js'
import type { Log } from '../actor/log.js'
import type { CatalogRequest } from '../catalog/catalog-messages.js'
import type { BlockInput } from '../catalog/index-protocol.js'
import { packTransactions } from '../catalog/pack.js'
import { type Id, idBytes } from '../format/id.js'
import type { Transaction } from '../format/transaction.js'
import { sha256 } from '../proof/digest.js'
import { ownerOf } from '../proof/transaction-proof.js'
import { isBundle } from '../source/roots/learned.js'
import type { Agenda } from './agenda.js'
import { encodeBundleTask } from './bundle-tasks.js'
import { blockInput, transactionAttributes, transactionInput, transactionSubject } from './chain-rows.js'
import { matches } from './filter.js'
import type { BroughtBlock, SuppliedTransaction } from './supply.js'
import { blockEvent, indexedEvent, type WebhookEvent } from './webhook-events.js'
import type { Webhooks } from './webhooks.js'

/** A transaction that a block lists and no node gave yet, as the agenda keeps it. */
export interface Missing {
  readonly height: number
  /** The block that lists it. */
  readonly block: string
  readonly index: number
}

/** Key of a missing transaction: its block's height (u32) and its id. */
export function missingKey(height: number, id: Id): Buffer {
  const key = Buffer.alloc(36)
  key.writeUInt32BE(height)
  key.set(idBytes(id), 4)
  return key
}

/** Logs that so many bundles or missing transactions were refused because their agenda is full. */
export function sayRefused(refused: number, log: Pick<Log, 'error'>): void {
  if (refused > 0)
    log.error({ refused }, 'the queue of the index is full: bundles or missing transactions are not indexed')
}

/**
 * What follows from new blocks and transactions: messages for the catalog, and bundles and missing transactions on
 * the agendas.
 */
export class Intake {
  constructor(
    private readonly bundles: Agenda,
    private readonly missing: Agenda,
    private readonly unbundle: ItemFilter,
    private readonly webhooks?: Webhooks,
  ) {}

  /**
   * Puts the bundles and missing transactions of these blocks on the agendas. They are on disk before the blocks are
   * in the index, so that a kill between the two loses nothing. Returns how many were refused because an agenda is
   * full.
   */
  remember(blocks: readonly BroughtBlock[], nowMs: number): number {
    const gaps = blocks.flatMap(({ block, missing }) =>
      missing.map(({ id, index }) => {
        const gap: Missing = { height: block.height, block: block.hash, index }
        return { key: missingKey(block.height, id), value: Buffer.from(JSON.stringify(gap)) }
      }),
    )
    const transactions = blocks.flatMap((one) => one.transactions.map(({ transaction }) => transaction))
    const refused = this.missing.put(gaps, nowMs) + this.rememberBundles(transactions, nowMs)
    for (const { block, transactions: placed } of blocks) this.announce(block.height, placed, block)
    return refused
  }

  /** Notifies receivers of transactions of a block, and of the block where it is given. */
  announce(
    height: number,
    transactions: readonly SuppliedTransaction[],
    block?: BroughtBlock['block'],
  ): void {
    if (this.webhooks === undefined) return
    const { index, blocks } = this.webhooks.options
    const events: WebhookEvent[] = transactions
      .map(({ transaction }) => transactionSubject(transaction))
      .filter((subject) => matches(index, subject))
      .map((subject) => indexedEvent(subject, height))
    if (block !== undefined && blocks) events.push(blockEvent(blockInput(block)))
    this.webhooks.announce(events)
  }

  /**
   * Puts the transactions that are bundles and match the filter on the agenda; returns how many were refused because
   * it is full.
   */
  rememberBundles(transactions: readonly Transaction[], nowMs: number): number {
    const wanted = transactions.filter((transaction) => {
      const { tags, dataSize } = transaction
      return dataSize > 0 && isBundle(tags) && matches(this.unbundle, transactionSubject(transaction))
    })
    return this.bundles.put(
      wanted.map((transaction) => ({
        key: idBytes(transaction.id),
        value: encodeBundleTask({
          owner: sha256(ownerOf(transaction)),
          sizeBytes: transaction.dataSize,
        }),
      })),
      nowMs,
    )
  }

  /** The message that puts blocks into the index, with the attributes that the headers of their transactions give. */
  blockWords(blocks: readonly BroughtBlock[]): CatalogRequest {
    const requests = blocks.flatMap(({ block, transactions }): CatalogRequest[] => {
      const input: BlockInput = blockInput(block)
      return [
        { kind: 'index-block', block: input, transactions: pack(transactions) },
        learn(transactions, block.height),
      ]
    })
    return { kind: 'all', requests }
  }

  /** The message that puts late transactions into a block of the index. */
  lateWords(height: number, transactions: readonly SuppliedTransaction[]): CatalogRequest {
    const late: CatalogRequest = { kind: 'index-transactions', height, transactions: pack(transactions) }
    return { kind: 'all', requests: [late, learn(transactions, height)] }
  }
}

function pack(transactions: readonly SuppliedTransaction[]): Uint8Array {
  return packTransactions(transactions.map(transactionInput))
}

function learn(transactions: readonly SuppliedTransaction[], height: number): CatalogRequest {
  const attributes = transactions.map(({ transaction }) => transactionAttributes(transaction, height))
  return { kind: 'learn', attributes }
}
