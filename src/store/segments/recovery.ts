import { createHash } from 'node:crypto'
import type { Disk, OpenFile } from './disk.js'
import { payloadOffset, type SegmentPlace, segmentName } from './place.js'
import { headOfRecordBytes, readRecordHead, recordBytes, recordSlotBytes } from './record.js'

/** The payload at a place, compared with its header and its digest; undefined where it is not what it should be. */
export function soundPayload(
  disk: Disk,
  file: OpenFile,
  place: SegmentPlace,
  digest: Uint8Array,
): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(place.sizeBytes)
  if (disk.read(file, bytes, payloadOffset(place)) < bytes.length) return undefined
  return Buffer.compare(createHash('sha256').update(bytes).digest(), digest) === 0 ? bytes : undefined
}

/** The same of a disk that may fail: what cannot be read is not sound. */
export function readSound(
  disk: Disk,
  file: OpenFile,
  place: SegmentPlace,
  digest: Uint8Array,
): Buffer | undefined {
  try {
    return soundPayload(disk, file, place, digest)
  } catch {
    return undefined // it is fetched anew when somebody asks, which is what is done about damage, too
  }
}

/** What lies behind the last record that the index knows of a segment. */
export interface Tail {
  readonly found: readonly { readonly digest: Uint8Array; readonly place: SegmentPlace }[]
  /** Where the last sound record ends. */
  readonly end: number
}

/**
 * Reads on behind the last record that the index knows, at most so many bytes: a killed process may have written more than it
 * said. It ends at the first record that is not whole. Throws where the disk fails.
 */
export function readTail(disk: Disk, file: OpenFile, segment: number, from: number, maxBytes: number): Tail {
  const found: { digest: Uint8Array; place: SegmentPlace }[] = []
  const sizeBytes = disk.sizeOf(file)
  const head = Buffer.alloc(headOfRecordBytes)
  for (let at = from; at < sizeBytes; ) {
    if (disk.read(file, head, at) < head.length) return { found, end: at }
    const record = readRecordHead(head)
    if (record === undefined || record.file !== segment || record.kind !== 'content')
      return { found, end: at }
    const { roomBytes, payloadBytes } = record
    const end = at + headOfRecordBytes + roomBytes + payloadBytes
    if (end > sizeBytes || end - from > maxBytes) return { found, end: at }
    const place = { segment, slot: at / recordSlotBytes, roomBytes, sizeBytes: payloadBytes }
    const digest = new Uint8Array(record.digest)
    if (soundPayload(disk, file, place, digest) === undefined) return { found, end: at }
    found.push({ digest, place })
    at += recordBytes(roomBytes, payloadBytes)
  }
  return { found, end: sizeBytes }
}

/** Opens the file of a segment; undefined where there is none. */
export function openSegment(disk: Disk, folder: string, segment: number): OpenFile | undefined {
  try {
    return disk.open(`${folder}/${segmentName(segment)}`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
