import { crc32 } from 'node:zlib'
import { headOfRecordBytes, recordSlotBytes } from './segment-record.js'

/** Where a payload lies in the segments. It never changes while the segment is there: no byte of a segment is written twice. */
export interface SegmentPlace {
  readonly segment: number
  /** The record begins at this multiple of 512 bytes. */
  readonly slot: number
  /** Room between the record's header and the payload: content has none, in that of a chunk lies its proof. */
  readonly roomBytes: number
  readonly sizeBytes: number
}

/** Where in its segment the payload begins. */
export function payloadOffset({ slot, roomBytes }: SegmentPlace): number {
  return slot * recordSlotBytes + headOfRecordBytes + roomBytes
}

/** Whether a payload lies there, named by its SHA-256; else a chunk. */
export function isContent({ roomBytes }: SegmentPlace): boolean {
  return roomBytes === 0
}

const placeBytes = 16
const sumBytes = 4

/**
 * A place as bytes: four u32, little-endian: segment, slot, room, size; and the CRC-32 of the digest and those. A bit that
 * changes on the disk must not lead to the bytes of another payload: a segment of this run is believed without being hashed.
 */
export function encodePlace(
  { segment, slot, roomBytes, sizeBytes }: SegmentPlace,
  digest: Uint8Array,
): Uint8Array {
  const bytes = Buffer.allocUnsafe(placeBytes + sumBytes)
  bytes.writeUInt32LE(segment, 0)
  bytes.writeUInt32LE(slot, 4)
  bytes.writeUInt32LE(roomBytes, 8)
  bytes.writeUInt32LE(sizeBytes, 12)
  bytes.writeUInt32LE(sumOf(bytes, digest), placeBytes)
  return bytes
}

function sumOf(bytes: Buffer, digest: Uint8Array): number {
  return crc32(bytes.subarray(0, placeBytes), crc32(digest))
}

/** The place of this digest in these bytes; undefined where they are none, or damaged. Older ones have no sum. */
export function decodePlace(record: Uint8Array, digest: Uint8Array): SegmentPlace | undefined {
  const bytes = Buffer.from(record.buffer, record.byteOffset, record.byteLength)
  if (bytes.length === placeBytes + sumBytes) {
    if (bytes.readUInt32LE(placeBytes) !== sumOf(bytes, digest)) return undefined
  } else if (bytes.length !== placeBytes) return undefined
  return {
    segment: bytes.readUInt32LE(0),
    slot: bytes.readUInt32LE(4),
    roomBytes: bytes.readUInt32LE(8),
    sizeBytes: bytes.readUInt32LE(12),
  }
}

/** Numbers of segments are below it: numbers in shared memory have 31 bits. */
const segmentsEnd = 2 ** 31

/** The number of the next segment as bytes: u32, little-endian, and its CRC-32. */
export function encodeNext(segment: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeUInt32LE(segment, 0)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 4)), 4)
  return bytes
}

/** The number in these bytes; undefined where they are damaged. Those of an earlier version have no sum. */
export function decodeNext(record: Uint8Array): number | undefined {
  const bytes = Buffer.from(record.buffer, record.byteOffset, record.byteLength)
  const isWhole = bytes.length === 8 && bytes.readUInt32LE(4) === crc32(bytes.subarray(0, 4))
  if (!isWhole && bytes.length !== 4) return undefined
  const segment = bytes.readUInt32LE(0)
  return segment > 0 && segment < segmentsEnd ? segment : undefined
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
