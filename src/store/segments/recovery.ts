import { sha256 } from '../../proof/digest.js'
import { provesChunk } from './chunk-words.js'
import type { Disk, OpenFile } from './disk.js'
import { type SegmentPlace, segmentName } from './place.js'
import {
  headOfRecordBytes,
  type RecordHead,
  readRecordHead,
  recordBytes,
  recordSlotBytes,
  sumOfMeta,
} from './segment-record.js'

/** A record as it was read, found sound. The bytes are its own. */
export interface SoundRecord {
  readonly payload: Buffer
  /** Present for a chunk alone. */
  readonly chunkWords?: Buffer
}

/**
 * Whether a record's bytes are what its name says: those of its digest, or a chunk that its own proof holds for. `words`: the
 * meta. For whatever may have been written by a process that was killed, or lay on a disk since.
 */
export function isSoundRecord(
  head: RecordHead,
  name: Uint8Array,
  words: Uint8Array,
  payload: Uint8Array,
): boolean {
  if (Buffer.compare(head.digest, name) !== 0) return false
  if (head.kind === 'chunk') return sumOfMeta(words) === head.metaSum && provesChunk(name, words, payload)
  return head.kind === 'content' && Buffer.compare(sha256(payload), name) === 0
}

/** The record at a place, compared with its header and its name; undefined where it is not what it should be. */
function soundRecord(
  disk: Disk,
  file: OpenFile,
  place: SegmentPlace,
  name: Uint8Array,
): SoundRecord | undefined {
  const bytes = Buffer.allocUnsafe(headOfRecordBytes + place.roomBytes + place.sizeBytes)
  if (disk.read(file, bytes, place.slot * recordSlotBytes) < bytes.length) return undefined
  const head = readRecordHead(bytes)
  if (head === undefined || !isOfPlace(head, place)) return undefined
  const chunkWords = bytes.subarray(headOfRecordBytes, headOfRecordBytes + head.metaBytes)
  const payload = bytes.subarray(headOfRecordBytes + place.roomBytes)
  if (!isSoundRecord(head, name, chunkWords, payload)) return undefined
  return head.kind === 'chunk' ? { payload, chunkWords } : { payload }
}

/** Whether a header is that of the record that is expected at a place. */
export function isOfPlace(head: RecordHead, { segment, roomBytes, sizeBytes }: SegmentPlace): boolean {
  return head.file === segment && head.payloadBytes === sizeBytes && head.roomBytes === roomBytes
}

/** The same of a disk that may fail: what cannot be read is not sound. */
export function readSound(
  disk: Disk,
  file: OpenFile,
  place: SegmentPlace,
  name: Uint8Array,
): SoundRecord | undefined {
  try {
    return soundRecord(disk, file, place, name)
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
 * stated. It ends at the first record that is not whole. Throws where the disk fails.
 */
export function readTail(disk: Disk, file: OpenFile, segment: number, from: number, maxBytes: number): Tail {
  const found: { digest: Uint8Array; place: SegmentPlace }[] = []
  const sizeBytes = disk.sizeOf(file)
  const head = Buffer.alloc(headOfRecordBytes)
  for (let at = from; at < sizeBytes; ) {
    if (disk.read(file, head, at) < head.length) return { found, end: at }
    const record = readRecordHead(head)
    if (record === undefined || record.file !== segment) return { found, end: at }
    const { roomBytes, payloadBytes } = record
    const end = at + headOfRecordBytes + roomBytes + payloadBytes
    if (end > sizeBytes || end - from > maxBytes) return { found, end: at }
    const place = { segment, slot: at / recordSlotBytes, roomBytes, sizeBytes: payloadBytes }
    const digest = new Uint8Array(record.digest)
    if (soundRecord(disk, file, place, digest) === undefined) return { found, end: at }
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
