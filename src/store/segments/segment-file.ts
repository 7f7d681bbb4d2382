import type { Disk, OpenFile } from './disk.js'
import { type SegmentPlace, segmentName } from './place.js'
import {
  headOfRecordBytes,
  recordBytes,
  recordSlotBytes,
  sumOfMeta,
  writeRecordHead,
} from './segment-record.js'

/** What lies together is written in one call up to this size; above, copying would cost more than the second call. */
const togetherMaxBytes = 65_536

const none = new Uint8Array(0)

/** What is to be written. */
export interface NewRecord {
  /** SHA-256 of the payload; of a chunk its name. */
  readonly name: Uint8Array
  /** The payload, in order. */
  readonly parts: readonly Uint8Array[]
  readonly sizeBytes: number
  /** The words of a chunk (`encodeChunkWords`). Absent: content. */
  readonly chunkWords?: Uint8Array
}

/** Bytes that it takes in a segment. */
export function bytesOfRecord({ chunkWords = none, sizeBytes }: NewRecord): number {
  return recordBytes(chunkWords.length, sizeBytes)
}

/** One for all: memory made for each record costs more than the writing, because V8 has to find out when it is garbage. */
const together = Buffer.allocUnsafeSlow(headOfRecordBytes + togetherMaxBytes)

/** The segment that is written to: only at its end, and never twice at one place. */
export class SegmentFile {
  #end = 0

  private constructor(
    private readonly disk: Disk,
    readonly segment: number,
    readonly sizeBytes: number,
    private readonly file: OpenFile,
  ) {}

  /** A new file, with all its room. Throws where the disk refuses. */
  static create(disk: Disk, folder: string, segment: number, sizeBytes: number): SegmentFile {
    return new SegmentFile(
      disk,
      segment,
      sizeBytes,
      disk.create(`${folder}/${segmentName(segment)}`, sizeBytes),
    )
  }

  /** Whether a record of so many bytes has room. */
  hasRoom(bytes: number): boolean {
    return this.#end + bytes <= this.sizeBytes
  }

  /** Appends a record. Throws where the disk refuses; then nothing may be appended any more. */
  append(record: NewRecord): SegmentPlace {
    const { name, sizeBytes, chunkWords: meta = none } = record
    const at = this.#end
    const roomBytes = meta.length
    const head = Buffer.allocUnsafe(headOfRecordBytes)
    writeRecordHead(head, {
      kind: record.chunkWords === undefined ? 'content' : 'chunk',
      payloadBytes: sizeBytes,
      roomBytes,
      metaBytes: roomBytes,
      metaSum: sumOfMeta(meta),
      file: this.segment,
      frontBytes: 0,
      digest: name,
    })
    // The header comes last: without it there is no record.
    if (roomBytes + sizeBytes <= togetherMaxBytes) this.#writeTogether([head, meta, ...record.parts], at)
    else {
      let position = at + headOfRecordBytes
      for (const part of [meta, ...record.parts]) {
        if (part.length > 0) this.disk.write(this.file, part, position)
        position += part.length
      }
      this.disk.write(this.file, head, at)
    }
    this.#end = at + bytesOfRecord(record)
    return { segment: this.segment, slot: at / recordSlotBytes, roomBytes, sizeBytes }
  }

  #writeTogether(parts: readonly Uint8Array[], at: number): void {
    let end = 0
    for (const part of parts) {
      together.set(part, end)
      end += part.length
    }
    this.disk.write(this.file, together.subarray(0, end), at)
  }

  close(): void {
    this.disk.close(this.file)
  }
}
