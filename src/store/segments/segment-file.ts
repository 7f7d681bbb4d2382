import type { Disk, OpenFile } from './disk.js'
import { type SegmentPlace, segmentName } from './place.js'
import { headOfRecordBytes, recordBytes, recordSlotBytes, sumOfMeta, writeRecordHead } from './record.js'

/** What lies together is written in one call up to this size; above, copying would cost more than the second call. */
const togetherMaxBytes = 65_536

const none = new Uint8Array(0)

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

  /** Whether a payload of this size has room. */
  hasRoom(sizeBytes: number): boolean {
    return this.#end + recordBytes(0, sizeBytes) <= this.sizeBytes
  }

  /** Appends a payload. Throws where the disk refuses; then nothing may be appended any more. */
  append(digest: Uint8Array, parts: readonly Uint8Array[], sizeBytes: number): SegmentPlace {
    const at = this.#end
    const head = Buffer.allocUnsafe(headOfRecordBytes)
    const lengths = { payloadBytes: sizeBytes, roomBytes: 0, metaBytes: 0, metaSum: sumOfMeta(none) }
    writeRecordHead(head, { kind: 'content', ...lengths, file: this.segment, frontBytes: 0, digest })
    if (sizeBytes <= togetherMaxBytes) {
      together.set(head)
      let end = headOfRecordBytes
      for (const part of parts) {
        together.set(part, end)
        end += part.length
      }
      this.disk.write(this.file, together.subarray(0, end), at)
    } else {
      let position = at + headOfRecordBytes
      for (const part of parts) {
        this.disk.write(this.file, part, position)
        position += part.length
      }
      this.disk.write(this.file, head, at)
    }
    this.#end = at + recordBytes(0, sizeBytes)
    return { segment: this.segment, slot: at / recordSlotBytes, roomBytes: 0, sizeBytes }
  }

  close(): void {
    this.disk.close(this.file)
  }
}
