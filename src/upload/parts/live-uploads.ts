import type { UploadAnswer } from '../requests/upload-answers.js'
import type { Holder } from '../room/held-room.js'
import type { Stage } from './multipart-record.js'
import type { PartRecords } from './part-records.js'

/** An upload that is not over: its parts, and how far its end has come where it was ordered. */
export interface LiveUpload {
  /** Size of each part by the place where it begins. */
  chunks: Map<number, number>
  readonly holder: Holder
  /** The bytes and files counted for it that are kept: the others are on their way. */
  readonly kept: { bytes: number; files: number }
  /** Parts that have come and are being kept: `chunks` does not state them yet. None begins while there is an `attempt`. */
  readonly keeping: Set<Promise<unknown>>
  /** Another machine puts it together. */
  isElsewhere: boolean
  /** When it was known last that it is open, by the monotonic clock. */
  seenMs: number
  stage: Stage
  attempt?: Promise<UploadAnswer>
  /** Somebody sees to it that it ends, however often that takes. */
  isDriven: boolean
}

/** What operators see of uploads that are not over. */
export interface ListedUploads {
  readonly open: number
  /** Bytes of all that are open. */
  readonly bytes: number
  /** The largest first. */
  readonly uploads: readonly object[]
}

/** How many are open, and the largest of them, `max` at most. */
export function listedOf(
  uploads: ReadonlyMap<string, LiveUpload>,
  records: Pick<PartRecords, 'find'>,
  max: number,
): Omit<ListedUploads, 'bytes'> {
  return { open: uploads.size, uploads: max === 0 ? [] : largest(uploads, records, max) }
}

/** Resolves when the parts are kept that were being kept. Undefined: none is, and there is nothing to wait for. */
export function partsKept({ keeping }: Pick<LiveUpload, 'keeping'>): Promise<unknown> | undefined {
  return keeping.size === 0 ? undefined : Promise.allSettled(keeping)
}

/** The first byte that is not in exactly one part, where something lies behind it; 0 where there is no part. */
export function gapIn(chunks: ReadonlyMap<number, number>): number | undefined {
  let end = 0
  for (const [offset, size] of [...chunks].sort(([a], [b]) => a - b)) {
    if (offset !== end) return Math.min(offset, end)
    end += size
  }
  return end === 0 ? 0 : undefined
}

/** Bytes of all parts. */
export function chunksSize(chunks: ReadonlyMap<number, number>): number {
  let sum = 0
  for (const size of chunks.values()) sum += size
  return sum
}

function largest(
  uploads: ReadonlyMap<string, LiveUpload>,
  records: Pick<PartRecords, 'find'>,
  max: number,
): readonly object[] {
  const all = [...uploads].sort(([, one], [, other]) => other.holder.bytes - one.holder.bytes)
  return all.slice(0, max).map(([id, live]) => {
    const record = records.find(id)
    const protocol = record?.appended === undefined ? 'parts' : 'resumable'
    const length = record?.appended?.lengthBytes
    const state = live.attempt === undefined ? record?.state : live.stage.toLowerCase()
    const { bytes } = live.holder
    return { id, protocol, state, bytes, length, parts: live.chunks.size, createdMs: record?.createdMs }
  })
}
