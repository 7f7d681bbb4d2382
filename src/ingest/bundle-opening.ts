import type { ItemFilter } from '../../config/item-filter.js'
import type { Id } from '../format/id.js'
import { type ReadingPlace, spansFrom } from '../format/reading-place.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { isBundle } from '../source/roots/learned.js'
import { Ahead } from './ahead.js'
import type { ReadParts, RootStream } from './bundle-bytes.js'
import { type FoundItem, itemSubject } from './chain-rows.js'
import { matches } from './filter.js'
import { HeldBytes, HeldItems } from './held-items.js'
import type { IndexQueue } from './index-queue.js'
import { ItemBatch, isRootKnown, type OpenedRoot } from './item-batch.js'
import type { ItemJudge } from './item-judge.js'
import { type BundleStretch, BundleWalk, type WalkObserver } from './walk.js'
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
  /** Entries that are read at once of a bundle that is read on: 64 bytes each. */
  readonly entriesAtOnce: number
}

/** What a bundle gets of the time in which bundles are opened. */
export interface OpeningTurn {
  /** Where the reading begins; absent: at the first byte. */
  readonly from: ReadingPlace | undefined
  /**
   * Whether the reading ends before item `index`, with which it would go on later. `isOnward`: that lies behind the one with
   * which it began.
   */
  isOver(isOnward: boolean, index: number): boolean
}

export interface OpeningParts {
  readonly queue: IndexQueue
  /** The proven data of a root; `parts` of it, or all. */
  readonly open: (id: Id, signal: AbortSignal, parts?: ReadParts) => Promise<RootStream | Refusal>
  /** Absent: the whole bundle is read. */
  readonly turn?: OpeningTurn
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

/** Its turn is over before its end: what lies before this place is in the index. Absent: nothing does. */
export interface OpeningPause {
  readonly place: ReadingPlace | undefined
}

/** Undefined: it was read to its end. */
export type OpeningEnd = OpeningFailure | OpeningPause | undefined

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
): Promise<OpeningEnd> {
  const room = parts.held ?? new HeldBytes(rules.heldMaxBytes, 1)
  const held = new HeldItems(room)
  const reading = readBundle(parts, rules, id, report, held, signal)
  const end = await reading.finally(() => held.close())
  // Of a turn in which nothing was read to its end, nothing is to be indexed.
  const isLost = failureOf(end) === undefined ? isStuck(end, parts.turn) : failureOf(end)?.cause !== 'bundle'
  if (held.again === undefined || isLost) return end
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
  const { read: _read, ...again } = { ...parts, turn: sameTurn(parts.turn?.from, end) }
  const second = readBundle(again, rules, id, { items: 0, bad: 0, nested: 0 }, known, signal)
  return failureOf(await second.finally(() => known.close())) ?? end
}

/** Why it was not read to its end, where it is not only that its turn was over. */
export function failureOf(end: OpeningEnd): OpeningFailure | undefined {
  return end !== undefined && 'refusal' in end ? end : undefined
}

/** Whether a turn ended where it began. */
function isStuck(end: OpeningEnd, turn: OpeningTurn | undefined): boolean {
  return end !== undefined && 'place' in end && end.place === turn?.from
}

/** A turn for the second reading of what was read in the first one. */
function sameTurn(from: ReadingPlace | undefined, end: OpeningEnd): OpeningTurn {
  const last = end !== undefined && 'place' in end ? end.place?.index : undefined
  return { from, isOver: (_, index) => last !== undefined && index >= last }
}

async function readBundle(
  parts: OpeningParts,
  rules: OpeningRules,
  id: Id,
  report: OpeningReport,
  held: HeldItems,
  signal: AbortSignal,
): Promise<OpeningEnd> {
  const bad = (item: Id, refusal: Refusal): void => {
    report.bad += 1
    report.firstBad ??= `${item}: ${refusal.message}`
  }
  const { queue, judge, turn } = parts
  if (!isRootKnown(queue, id)) {
    const refusal = refuse('unknown', 'upstream', 'the bundle is in no block of the index')
    return { refusal, cause: 'orphan' }
  }
  const part = turn?.from && { from: turn.from, entriesMax: rules.entriesAtOnce }
  const root = await parts.open(
    id,
    signal,
    part && ((sizeBytes) => spansFrom(part.from, part.entriesMax, sizeBytes)),
  )
  if (isRefusal(root)) return { refusal: root, cause: 'source' }
  // Whoever serves an item out of this bundle later need not look at its bytes again.
  const kept = judge === undefined ? undefined : root.digest
  const batch = batchOf(parts, rules, { id, digest: kept }, report, bad, held)
  const stretch = { path: [id] as const, start: 0, sizeBytes: root.sizeBytes, part }
  const observer: WalkObserver = { item: (item, message) => batch.add(item, message), bad, broken: bad }
  const walk = walkOf(stretch, parts, rules, kept !== undefined, observer)
  return readStream(root, walk, batch, parts)
}

/** Reads until the end of the bundle, or of its turn; then all items are in the index that were found. */
async function readStream(
  root: RootStream,
  walk: BundleWalk,
  batch: ItemBatch,
  { ahead = new Ahead(1), turn, read }: OpeningParts,
): Promise<OpeningEnd> {
  const flushing: Promise<void>[] = []
  const flush = (): void => {
    const bytes = batch.memoryBytes
    const flushed = batch.flush()
    ahead.add(flushed, bytes)
    flushing.push(flushed)
  }
  try {
    let pause: OpeningPause | undefined
    for await (const piece of root.bytes) {
      if (isRefusal(piece)) return { refusal: piece, cause: 'source' }
      walk.push(piece)
      pause = pauseAt(walk, turn)
      if (pause !== undefined || walk.isBroken) break
      if (!batch.isFull) continue
      await ahead.room()
      flush()
    }
    const refusal = pause === undefined ? walk.end() : undefined
    flush()
    read?.()
    await Promise.all(flushing)
    return refusal === undefined ? pause : { refusal, cause: 'bundle' }
  } finally {
    await Promise.all(flushing)
  }
}

function walkOf(
  stretch: BundleStretch,
  { judge }: OpeningParts,
  { depthMax, entriesMax, unbundle }: OpeningRules,
  digested: boolean,
  observer: WalkObserver,
): BundleWalk {
  const opens = (item: FoundItem): boolean =>
    isBundle(item.header.tags) && matches(unbundle, itemSubject(item))
  return new BundleWalk(
    stretch,
    { depthMax, entriesMax, signed: judge !== undefined, digested, opens },
    observer,
  )
}

/** Where the reading of a bundle ends for now, if it does: its turn is over, or there are no more entries at hand. */
function pauseAt(walk: BundleWalk, turn: OpeningTurn | undefined): OpeningPause | undefined {
  const place = walk.place
  if (turn === undefined || walk.isBroken) return undefined
  if (walk.isDone) return place !== undefined && place.index < place.count ? { place } : undefined
  const isOnward = place !== undefined && place.index > (turn.from?.index ?? 0)
  if (!turn.isOver(isOnward, place?.index ?? 0)) return undefined
  return { place: isOnward ? place : turn.from }
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
