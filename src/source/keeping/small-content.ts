import type { Clock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { WrittenChunks } from '../../chain/segment-chunks.js'
import { SegmentMarks, type SharedSegments } from '../../store/segments/segment-marks.js'
import { SegmentReader } from '../../store/segments/segment-reader.js'
import { SegmentStore, segmentDefaults } from '../../store/segments/segment-store.js'
import { SmallBlobs } from '../../store/segments/small-blobs.js'

/** How many records are looked at between two messages of the thread, where room is made while nothing comes in. */
const tendRecords = 128

/** The segments as their one writer has them. */
export interface SmallContent {
  readonly blobs: SmallBlobs
  readonly chunks: WrittenChunks
  readonly store: SegmentStore
  /** From now on `act` hears of payloads that went with their segment. */
  onEvicted(act: (digests: readonly Uint8Array[]) => void): void
  close(): Promise<void>
}

/**
 * Opens the segments for writing. Payloads for which `isPinned` is true never go with their segment. Throws where their folder
 * cannot be used at all.
 */
export function openSmallContent(
  { folder, shape, memory, maxBytes, freeMinBytes }: SharedSegments,
  clock: Clock,
  log: Log,
  isPinned: (digest: Uint8Array) => boolean = () => false,
): SmallContent {
  const marks = new SegmentMarks(memory, shape)
  const payloadMaxBytes = Math.min(segmentDefaults.payloadMaxBytes, Math.floor(shape.segmentBytes / 8))
  const { commitMs } = segmentDefaults
  let evicted: (digests: readonly Uint8Array[]) => void = () => undefined
  const onEvicted = (digests: readonly Uint8Array[]): void => evicted(digests)
  const rules = { folder, payloadMaxBytes, freeMinBytes, commitMs, maxBytes: () => maxBytes, onEvicted }
  const store = SegmentStore.open({ ...rules, isPinned }, marks, clock, log)
  const reader = new SegmentReader(folder, marks, clock)
  const timer = clock.every(1000, () => tend(store))
  return {
    blobs: new SmallBlobs(folder, store, reader, payloadMaxBytes),
    chunks: new WrittenChunks(store, reader),
    store,
    onEvicted(act) {
      evicted = act
    },
    async close() {
      timer.cancel()
      await reader.close()
      await store.close()
    },
  }
}

/** One step a second is enough where nothing comes in: what comes in makes its own room. */
function tend(store: SegmentStore): void {
  store.tend(tendRecords)
}
