import type { ItemFilter } from '../../config/item-filter.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { isBundle } from '../source/roots/learned.js'
import { Ahead } from './ahead.js'
import type { RootStream } from './bundle-bytes.js'
import { type FoundItem, itemSubject } from './chain-rows.js'
import { matches } from './filter.js'
import { HeldBytes, HeldItems } from './held-items.js'
import type { IndexQueue } from './index-queue.js'
import { ItemBatch, isRootKnown, type OpenedRoot } from './item-batch.js'
import type { ItemJudge } from './item-judge.js'
import { BundleWalk } from './walk.js'
import type { Webhooks } from './webhooks.js'

/** What of a bundle is wanted. */
export interface OpeningRules {
  /** Bundles that are opened. */
  readonly unbundle: ItemFilter
  /** Items that are indexed and served. */
  readonly index: ItemFilter
  readonly depthMax: number
  /** Entries of one bundle and those open inside it: some 200 bytes each. */
  readonly entriesMax: number
  /**
   * Bytes of memory for headers of nested items that wait until the item around them is verified, in all bundles of a thread
   * together (`HeldBytes`). A bundle with more is read twice.
   */
  readonly heldMaxBytes: number
}

export interface OpeningParts {
  readonly queue: IndexQueue
  /** The proven data of a root. */
  readonly open: (id: Id, signal: AbortSignal) => Promise<RootStream | Refusal>
  /** Absent: signatures of items are not verified. */
  readonly judge: Pick<ItemJudge, 'judge'> | undefined
  /** Absent: nobody gets items. */
  readonly webhooks?: Webhooks | undefined
  /** So many items were new to the index. */
  readonly onAdded: (added: number) => void
  /** Called when all bytes were read; items may still wait to be verified and indexed. */
  readonly read?: () => void
  /** Bounds the batches that are under way while the next one is collected; absent: a bound for this bundle alone. */
  readonly ahead?: Ahead
  /** What waits in all bundles that are open; absent: `heldMaxBytes` for this bundle alone. */
  readonly held?: HeldBytes
}

/** What was found in a bundle so far. */
export interface OpeningReport {
  items: number
  bad: number
  nested: number
  firstBad?: string
}

/** Why a bundle was not read to its end. */
export interface OpeningFailure {
  readonly refusal: Refusal
  /**
   * `bundle`: its bytes are malformed, and trying again would not help. `orphan`: no block here has it. `source`: its
   * bytes could not be had.
   */
  readonly cause: 'bundle' | 'orphan' | 'source'
}

/**
 * Opens one bundle as a stream and reports to the catalog every item in it whose owner signed it, and the owners of all items
 * around it. Rejects where the catalog is lost.
 */
export async function openBundle(
  parts: OpeningParts,
  rules: OpeningRules,
  id: Id,
  report: OpeningReport,
  signal: AbortSignal,
): Promise<OpeningFailure | undefined> {
  const room = parts.held ?? new HeldBytes(rules.heldMaxBytes, 1)
  const held = new HeldItems(room)
  const reading = readBundle(parts, rules, id, report, held, signal)
  const failure = await reading.finally(() => held.close())
  if (held.again === undefined || (failure !== undefined && failure.cause !== 'bundle')) return failure
  if (held.isForgetful) {
    const refusal = refuse(
      'too-large',
      'upstream',
      'more bundles inside than can be noted for a second reading',
    )
    return { refusal, cause: 'bundle' }
  }
  // Without `read`, and with a report of its own, so that nothing is counted twice.
  const known = new HeldItems(room, held.again)
  const { read: _read, ...again } = parts
  const second = readBundle(again, rules, id, { items: 0, bad: 0, nested: 0 }, known, signal)
  return second.finally(() => known.close())
}

async function readBundle(
  parts: OpeningParts,
  rules: OpeningRules,
  id: Id,
  report: OpeningReport,
  held: HeldItems,
  signal: AbortSignal,
): Promise<OpeningFailure | undefined> {
  const bad = (item: Id, refusal: Refusal): void => {
    report.bad += 1
    report.firstBad ??= `${item}: ${refusal.message}`
  }
  const { queue, judge } = parts
  if (!isRootKnown(queue, id)) {
    const refusal = refuse('unknown', 'upstream', 'the bundle is in no block of the index')
    return { refusal, cause: 'orphan' }
  }
  const root = await parts.open(id, signal)
  if (isRefusal(root)) return { refusal: root, cause: 'source' }
  // Whoever serves an item out of this bundle later need not look at its bytes again.
  const kept = judge === undefined ? undefined : root.digest
  const batch = batchOf(parts, rules, { id, digest: kept }, report, bad, held)
  const walk = new BundleWalk(
    { path: [id], start: 0, sizeBytes: root.sizeBytes },
    {
      depthMax: rules.depthMax,
      entriesMax: rules.entriesMax,
      signed: judge !== undefined,
      digested: kept !== undefined,
      opens: (item) => isBundle(item.header.tags) && matches(rules.unbundle, itemSubject(item)),
    },
    { item: (item, message) => batch.add(item, message), bad, broken: bad },
  )
  const ahead = parts.ahead ?? new Ahead(1)
  const flushing: Promise<void>[] = []
  const flush = (): void => {
    const bytes = batch.memoryBytes
    const flushed = batch.flush()
    ahead.add(flushed, bytes)
    flushing.push(flushed)
  }
  try {
    for await (const piece of root.bytes) {
      if (isRefusal(piece)) return { refusal: piece, cause: 'source' }
      walk.push(piece)
      if (!batch.isFull) continue
      await ahead.room()
      flush()
    }
    const refusal = walk.end()
    flush()
    parts.read?.()
    await Promise.all(flushing)
    return refusal === undefined ? undefined : { refusal, cause: 'bundle' }
  } finally {
    await Promise.all(flushing)
  }
}

function batchOf(
  { queue, judge, webhooks, onAdded }: OpeningParts,
  rules: OpeningRules,
  root: OpenedRoot,
  report: OpeningReport,
  bad: (item: Id, refusal: Refusal) => void,
  held: HeldItems,
): ItemBatch {
  const sound = ({ header }: FoundItem): void => {
    report.items += 1
    if (isBundle(header.tags)) report.nested += 1
  }
  return new ItemBatch(root, queue, judge, rules.index, { bad, sound, onAdded }, held, webhooks)
}
