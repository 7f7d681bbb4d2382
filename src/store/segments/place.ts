import { headOfRecordBytes, recordSlotBytes } from './record.js'

/** Where a payload lies in the segments. It never changes while the segment is there: no byte of a segment is written twice. */
export interface SegmentPlace {
  readonly segment: number
  /** The record begins at this multiple of 512 bytes. */
  readonly slot: number
  /** Room between the record's header and the payload. */
  readonly roomBytes: number
  readonly sizeBytes: number
}

/** Where in its segment the payload begins. */
export function payloadOffset({ slot, roomBytes }: SegmentPlace): number {
  return slot * recordSlotBytes + headOfRecordBytes + roomBytes
}

const placeBytes = 16

/** A place as bytes: four u32, little-endian: segment, slot, room, size. */
export function encodePlace({ segment, slot, roomBytes, sizeBytes }: SegmentPlace): Uint8Array {
  const bytes = Buffer.allocUnsafe(placeBytes)
  bytes.writeUInt32LE(segment, 0)
  bytes.writeUInt32LE(slot, 4)
  bytes.writeUInt32LE(roomBytes, 8)
  bytes.writeUInt32LE(sizeBytes, 12)
  return bytes
}

/** The place in these bytes; undefined where they are none. */
export function decodePlace(record: Uint8Array): SegmentPlace | undefined {
  if (record.length < placeBytes) return undefined
  const bytes = Buffer.from(record.buffer, record.byteOffset, record.byteLength)
  return {
    segment: bytes.readUInt32LE(0),
    slot: bytes.readUInt32LE(4),
    roomBytes: bytes.readUInt32LE(8),
    sizeBytes: bytes.readUInt32LE(12),
  }
}

/** Name of the file of a segment. */
export function segmentName(segment: number): string {
  return `${String(segment).padStart(10, '0')}.segment`
}

/** The number in the name of a segment's file; undefined where it is none. */
export function readSegmentName(name: string): number | undefined {
  return /^\d{10}\.segment$/.test(name) ? Number(name.slice(0, 10)) : undefined
}

/** Whether two places are one. */
export function samePlace(one: SegmentPlace | undefined, other: SegmentPlace): boolean {
  return one?.segment === other.segment && one.slot === other.slot
}
