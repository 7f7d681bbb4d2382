import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Clock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import type { Disk } from '../../../src/store/segments/disk.js'
import { marksBytes, SegmentMarks } from '../../../src/store/segments/segment-marks.js'
import { SegmentReader } from '../../../src/store/segments/segment-reader.js'
import { SegmentStore } from '../../../src/store/segments/segment-store.js'

export const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()

/** Time stands still: nothing happens by itself. */
export const stillClock: Clock = {
  now: () => 0,
  monotonic: () => 0,
  after: () => ({ cancel: () => undefined }),
  every: () => ({ cancel: () => undefined }),
}

/** Bytes of a payload, always the same for the same numbers. */
export function payloadOf(sizeBytes: number, seed: number): Buffer {
  const bytes = Buffer.alloc(sizeBytes)
  let state = (seed * 2_654_435_761 + 1) >>> 0
  for (let at = 0; at < sizeBytes; at += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    bytes[at] = state >>> 24
  }
  return bytes
}

export interface RigOptions {
  readonly segmentBytes: number
  readonly maxBytes: number
  readonly payloadMaxBytes?: number
  readonly pinned?: ReadonlySet<string>
  readonly disk?: Disk
}

/** A store with a reader beside it, as the source thread and an edge thread have them. */
export class SegmentRig {
  readonly marks: SegmentMarks
  readonly store: SegmentStore
  readonly reader: SegmentReader
  readonly evicted: Uint8Array[] = []

  constructor(
    readonly folder: string,
    { segmentBytes, maxBytes, ...options }: RigOptions,
  ) {
    const shape = { cells: Math.ceil(maxBytes / segmentBytes) * 2 + 64, segmentBytes }
    this.marks = new SegmentMarks(new SharedArrayBuffer(marksBytes(shape)), shape)
    const rules = {
      folder: join(folder, 'segments'),
      payloadMaxBytes: options.payloadMaxBytes ?? Math.floor(segmentBytes / 4),
      maxBytes: () => maxBytes,
      freeMinBytes: 0,
      commitMs: 50,
      isPinned: (digest: Uint8Array) => options.pinned?.has(Buffer.from(digest).toString('hex')) ?? false,
      onEvicted: (digests: readonly Uint8Array[]) => void this.evicted.push(...digests),
    }
    this.store = SegmentStore.open(rules, this.marks, stillClock, silentLog, options.disk)
    this.reader = new SegmentReader(rules.folder, this.marks, stillClock)
  }

  /** The bytes, as an edge thread would send them: only after they were verified. `ask`: counted as a use. */
  async get(digest: Uint8Array, ask = true): Promise<Buffer | undefined> {
    const place = this.store.find(digest)
    const content = place === undefined ? undefined : this.reader.open(place, digest)
    if (content === undefined) return undefined
    try {
      if (!(await content.verify())) return undefined
      if (ask) content.spare()
      const pieces: Buffer[] = []
      for (let at = 0; at < content.sizeBytes; ) {
        const piece = content.read(at, content.sizeBytes)
        if (piece === undefined && !(await content.ready(at, content.sizeBytes))) return undefined
        if (piece === undefined) continue
        pieces.push(Buffer.from(piece))
        at += piece.length
      }
      return Buffer.concat(pieces)
    } finally {
      content.close()
    }
  }

  /** Closes what a kill would close, and writes nothing more. */
  async die(): Promise<void> {
    await this.reader.close()
  }

  async close(): Promise<void> {
    await this.reader.close()
    await this.store.close()
  }
}
