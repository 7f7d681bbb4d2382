import type { Clock } from '../../actor/clock.js'
import type { Address } from '../../actor/mailbox-address.js'
import type { Following, Tip } from '../../actor/shared.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import { Effort } from '../../catalog/effort.js'
import type { ChainIndex } from '../../catalog/index-reader.js'
import { rowAttributes } from '../../catalog/indexed.js'
import { type Id, idBytes, idOfBytes, parseId } from '../../format/id.js'
import { isRefusal } from '../../format/refusal.js'
import type { IngestReply, IngestRequest } from '../../ingest/ingest-messages.js'
import type { ExportReply, ExportRequest } from '../../parquet/export-protocol.js'
import { isBundle } from '../../source/roots/learned.js'
import { malformedOrder, type OrderAnswer, type OrderCall } from './order.js'

/** What orders about the index need. */
export interface IndexOrderParts {
  readonly ingest: Address<IngestRequest | ExportRequest, IngestReply | ExportReply>
  readonly keeper: Address<CatalogRequest, CatalogReply>
  readonly index: ChainIndex
  readonly tip: Tip
  /** Blocks at the end of the chain that a fork may still take away. */
  readonly forkDepth: number
  readonly following: Following
  readonly clock: Clock
}

/** `ANS-104`, as gateways of the network number formats of bundles. */
const formatId = 1

/** Fields of a bundle that those gateways have and this one does not: null, so that programs that read them go on working. */
const unknown = {
  unbundleFilterId: null,
  indexFilterId: null,
  previousUnbundleFilterId: null,
  previousIndexFilterId: null,
  firstQueuedAt: null,
  lastQueuedAt: null,
  firstSkippedAt: null,
  lastSkippedAt: null,
  firstUnbundledAt: null,
  lastUnbundledAt: null,
  firstFullyIndexedAt: null,
  lastFullyIndexedAt: null,
  firstRetriedAt: null,
  lastRetriedAt: null,
  duplicatedDataItemCount: null,
}

/** State of a bundle. 404 where it is not a bundle by its tags, does not wait to be opened, and never was opened. */
export async function bundleStatus(
  { ingest, index, clock }: IndexOrderParts,
  { rest }: OrderCall,
): Promise<OrderAnswer> {
  const id = parseId(rest)
  if (id === undefined) return malformedOrder('Must provide a valid bundle id')
  const reply = await ingest.ask({ kind: 'waiting', id })
  if (isRefusal(reply)) return { status: 503, body: reply.message, retryAfterSeconds: 1 }
  if (reply.kind !== 'waiting') throw new Error('the index answered something else')
  index.refresh()
  const { waits, attempts, dueMs } = reply
  const count = index.count({ bundledIn: [idBytes(id)] }, new Effort(5000, 20, clock))
  if (!waits && count === 0 && !isBundleHere(index, id)) return { status: 404, body: 'Bundle not found' }
  const row = index.row(idBytes(id))
  const root = row === undefined ? undefined : index.rootOf(row)
  const body = {
    id,
    state: waits ? 'queued' : count === 0 ? 'known' : 'unbundled',
    formatId,
    rootTransactionId: root === undefined ? null : idOfBytes(root.id),
    // Null where there are too many to count quickly.
    dataItemCount: count ?? null,
    matchedDataItemCount: count ?? null,
    importAttemptCount: attempts + (waits ? 0 : 1),
    retryAttemptCount: attempts,
    ...unknown,
    ...(dueMs === undefined ? {} : { nextAttemptAt: Math.floor(dueMs / 1000) }),
  }
  return { status: 200, body }
}

function isBundleHere(index: IndexOrderParts['index'], id: Id): boolean {
  const row = index.row(idBytes(id))
  return row !== undefined && isBundle(rowAttributes(index, row).header?.tags ?? [])
}

/**
 * Sizes of tables, shared numbers, and the few blocks that a fork may still remove. Nothing long is counted, so it may be
 * called each second. `stable` counts what lies deeper.
 */
export function debug({ index, tip, forkDepth, following, clock }: IndexOrderParts): object {
  index.refresh()
  const { rows, blocks, pending } = index.counts()
  const top = index.topHeight()
  const { state, bundlesWaiting, missing, itemIndexedMs } = following
  const fresh = top === undefined ? [] : index.blocks(top - forkDepth + 1, top, true, forkDepth)
  const stableBlocks = blocks - fresh.length
  const [first] = index.blocks(0, Number.MAX_SAFE_INTEGER, false, 1)
  const newTxs = fresh.reduce((sum, block) => sum + block.transactionCount, pending)
  const counts = { rows, pending, stableBlocks, newBlocks: fresh.length, newTxs }
  const heights = {
    ...(first === undefined || top === undefined || stableBlocks === 0
      ? {}
      : { minStable: first.height, maxStable: top - forkDepth }),
    ...(top === undefined ? {} : { minNew: fresh.at(-1)?.height, maxNew: top }),
    ...(tip.height < 0 ? {} : { tip: tip.height }),
  }
  const indexed = itemIndexedMs === 0 ? {} : { maxNewDataItemIndexedAt: Math.floor(itemIndexedMs / 1000) }
  return {
    db: {
      counts: { ...counts, missingTxs: missing, bundlesWaiting },
      heights,
      timestamps: { now: Math.floor(clock.now() / 1000), ...indexed },
      errors: state === 'halted' ? ['a fork is too deep: the index stands still'] : [],
      warnings: missing > 0 ? [`${missing} transactions of indexed blocks are missing`] : [],
    },
  }
}
