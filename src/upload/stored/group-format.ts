import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import { type RecordDigest, splitOf } from '../../store/segments/segment-record.js'
import { isSealed, sealBytes, sealOf } from './seal.js'

/**
 * Accepted items lie in groups in the object store. A group is one object that never changes: a head, then the bytes of its
 * items, one behind another. Integers are little-endian.
 *
 *     "SLACPT01" | bytes of the head u32 | bytes of the directory u32 | count u32 | directory | metas | seal 32
 *     directory: for each item  id 32 | offset in the object u48 | size u48 | bytes before the payload u32 | front u16 |
 *                digest 32 | bytes of its meta u16 | length of the content type u8 | content type
 *     metas: for each item the record that the log of uploads has of it (JSON)
 *     seal: HMAC-SHA-256 of all before it, by a key that is made by the wallet of the service
 *
 * The directory's bytes are counted from the beginning of the object. `front` and digest: as in `SplitDigest`.
 */
const magic = Buffer.from('SLACPT01')
const beginBytes = 20
const fixedBytes = 32 + 6 + 6 + 4 + 2 + 32 + 2 + 1

/** Bounds of what is written, and of what is believed of others. */
export const groupMaxBytes = 8 * 1024 * 1024
export const groupItemsMax = 4096
/** Bytes of all metas of a group: each has some 400 bytes, and 60 KiB at most. */
export const groupMetaMaxBytes = 4 * 1024 * 1024
export const groupHeadMaxBytes = 8 * 1024 * 1024

/** Where an item lies in its group. */
export interface GroupPlace {
  readonly offset: number
  /** Bytes of the item, header included. */
  readonly sizeBytes: number
  readonly headerSize: number
  /** '' where none is known. */
  readonly contentType: string
}

export interface GroupEntry extends GroupPlace {
  readonly id: Id
  readonly digest: RecordDigest
  readonly metaBytes: number
}

export interface GroupItem extends Omit<GroupPlace, 'offset'> {
  readonly id: Id
  readonly digest: RecordDigest
  readonly meta: Uint8Array
}

export interface GroupHead {
  readonly bytes: Buffer
  /** Bytes of the head that a reader needs who wants no records of items. */
  readonly directoryBytes: number
  /** Where each item begins. */
  readonly offsets: readonly number[]
}

function typeOf({ contentType }: { readonly contentType: string }): Buffer {
  return Buffer.from(contentType, 'latin1').subarray(0, 255)
}

/** The head of a group with these items, in this order. */
export function encodeGroupHead(items: readonly GroupItem[], key: Uint8Array): GroupHead {
  const directoryBytes = items.reduce((sum, item) => sum + fixedBytes + typeOf(item).length, beginBytes)
  const headBytes = items.reduce((sum, { meta }) => sum + meta.length, directoryBytes) + sealBytes
  const bytes = Buffer.alloc(headBytes)
  bytes.set(magic, 0)
  bytes.writeUInt32LE(headBytes, 8)
  bytes.writeUInt32LE(directoryBytes, 12)
  bytes.writeUInt32LE(items.length, 16)
  const offsets: number[] = []
  let [at, metaAt, offset] = [beginBytes, directoryBytes, headBytes]
  for (const item of items) {
    const type = typeOf(item)
    const { frontBytes, digest } = splitOf(item.digest)
    bytes.set(idBytes(item.id), at)
    bytes.writeUIntLE(offset, at + 32, 6)
    bytes.writeUIntLE(item.sizeBytes, at + 38, 6)
    bytes.writeUInt32LE(item.headerSize, at + 44)
    bytes.writeUInt16LE(frontBytes, at + 48)
    bytes.set(digest, at + 50)
    bytes.writeUInt16LE(item.meta.length, at + 82)
    bytes.writeUInt8(type.length, at + 84)
    bytes.set(type, at + fixedBytes)
    bytes.set(item.meta, metaAt)
    offsets.push(offset)
    at += fixedBytes + type.length
    metaAt += item.meta.length
    offset += item.sizeBytes
  }
  bytes.set(sealOf(bytes.subarray(0, headBytes - sealBytes), key), headBytes - sealBytes)
  return { bytes, directoryBytes, offsets }
}

/** Reads a directory out of the first bytes of a group; undefined where it is malformed: nothing of it is believed then. */
export function decodeDirectory(bytes: Buffer, totalBytes: number): GroupEntry[] | undefined {
  if (bytes.length < beginBytes || !bytes.subarray(0, magic.length).equals(magic)) return undefined
  const [headBytes, directoryBytes, count] = [8, 12, 16].map((at) => bytes.readUInt32LE(at)) as [
    number,
    number,
    number,
  ]
  if (directoryBytes > bytes.length || directoryBytes > headBytes || count > groupItemsMax) return undefined
  const entries: GroupEntry[] = []
  let [at, offset] = [beginBytes, headBytes]
  for (let number = 0; number < count; number += 1) {
    if (at + fixedBytes > directoryBytes) return undefined
    const entry = entryAt(bytes, at)
    // Items lie one behind another, and the last one ends where the object does.
    if (entry === undefined || entry.offset !== offset) return undefined
    entries.push(entry)
    at += fixedBytes + entry.contentType.length
    offset += entry.sizeBytes
  }
  return at === directoryBytes && offset === totalBytes ? entries : undefined
}

function entryAt(bytes: Buffer, at: number): GroupEntry | undefined {
  const end = at + fixedBytes + bytes.readUInt8(at + 84)
  const contentType = bytes.toString('latin1', at + fixedBytes, end)
  const [offset, sizeBytes, headerSize] = [
    bytes.readUIntLE(at + 32, 6),
    bytes.readUIntLE(at + 38, 6),
    bytes.readUInt32LE(at + 44),
  ]
  // It becomes a header line.
  if (end > bytes.length || headerSize > sizeBytes || !/^[\x20-\x7e]*$/.test(contentType)) return undefined
  const frontBytes = bytes.readUInt16LE(at + 48)
  const digest = Buffer.from(bytes.subarray(at + 50, at + 82))
  return {
    id: idOfBytes(bytes.subarray(at, at + 32)),
    offset,
    sizeBytes,
    headerSize,
    contentType,
    digest: frontBytes === 0 ? digest : { frontBytes, digest },
    metaBytes: bytes.readUInt16LE(at + 82),
  }
}

/** An entry of a head whose seal is right. */
export interface SealedEntry extends GroupEntry {
  readonly meta: Uint8Array
}

/** Reads a whole head; undefined where it is malformed, or this service has not sealed it. */
export function decodeGroupHead(
  bytes: Buffer,
  totalBytes: number,
  key: Uint8Array,
): SealedEntry[] | undefined {
  const entries = decodeDirectory(bytes, totalBytes)
  const headBytes = entries === undefined ? 0 : bytes.readUInt32LE(8)
  if (entries === undefined || headBytes > bytes.length || headBytes < sealBytes) return undefined
  const body = bytes.subarray(0, headBytes - sealBytes)
  if (!isSealed(body, bytes.subarray(headBytes - sealBytes, headBytes), key)) return undefined
  let at = bytes.readUInt32LE(12)
  const sealed = entries.map((entry) => {
    const meta = body.subarray(at, at + entry.metaBytes)
    at += entry.metaBytes
    return { ...entry, meta }
  })
  return at === body.length ? sealed : undefined
}
