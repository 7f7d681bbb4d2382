import { crc32 } from 'node:zlib'
import { type Id, idBytes, idOfBytes } from '../format/id.js'
import type { Tag } from '../format/tag.js'
import type { Writable } from '../format/writable.js'
import type { Attributes, Header, ItemPlace } from './attributes.js'

/**
 * Records of the catalog as bytes. An attribute record is `version u8, flags u8, size f64` and then fields
 * `kind u8, length u32, bytes`; a reader skips kinds it does not know, so fields can be added. The last four bytes are the
 * CRC-32 of all before them; records of version 1 have none. All numbers are little-endian; offsets and sizes are f64, exact up
 * to 2^53.
 */
const recordVersion = 2
const versionWithoutSum = 1
const sumBytes = 4
const flag = { verified: 1, trusted: 2 }
/** Stands behind the path of a place that holds what the owner signed; records of earlier versions end before it. */
const signedPlace = 1
const kind = {
  contentType: 1,
  contentEncoding: 2,
  digest: 3,
  height: 4,
  place: 5,
  header: 6,
  isTransaction: 7,
}

class Writer {
  #bytes = Buffer.allocUnsafe(1024)
  #at = 0

  /** Where the next `count` bytes go. May replace the buffer: called before the buffer is taken hold of. */
  #room(count: number): number {
    const start = this.#at
    this.#at += count
    if (this.#at > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#at, this.#bytes.length * 2))
      this.#bytes.copy(larger, 0, 0, start)
      this.#bytes = larger
    }
    return start
  }

  // Room first, then the bytes: making room may put other bytes in their place.
  u8(value: number): void {
    const at = this.#room(1)
    this.#bytes.writeUInt8(value, at)
  }

  u32(value: number): void {
    const at = this.#room(4)
    this.#bytes.writeUInt32LE(value, at)
  }

  f64(value: number): void {
    const at = this.#room(8)
    this.#bytes.writeDoubleLE(value, at)
  }

  raw(bytes: Uint8Array): void {
    const at = this.#room(bytes.length)
    this.#bytes.set(bytes, at)
  }

  /** Bytes behind their length. */
  block(bytes: Uint8Array): void {
    this.u32(bytes.length)
    this.raw(bytes)
  }

  take(): Buffer {
    return this.#bytes.subarray(0, this.#at)
  }
}

class Reader {
  #at = 0
  readonly #bytes: Buffer

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get more(): boolean {
    return this.#at < this.#bytes.length
  }

  u8(): number {
    this.#at += 1
    return this.#bytes.readUInt8(this.#at - 1)
  }

  u32(): number {
    this.#at += 4
    return this.#bytes.readUInt32LE(this.#at - 4)
  }

  f64(): number {
    this.#at += 8
    return this.#bytes.readDoubleLE(this.#at - 8)
  }

  /** A view; copy what must stay. */
  raw(count: number): Buffer {
    this.#at += count
    if (this.#at > this.#bytes.length) throw new RangeError('a catalog record ends early')
    return this.#bytes.subarray(this.#at - count, this.#at)
  }

  block(): Buffer {
    return this.raw(this.u32())
  }
}

function placeBytes(place: ItemPlace): Buffer {
  const out = new Writer()
  out.raw(idBytes(place.rootId))
  out.raw(idBytes(place.parentId))
  out.f64(place.rootItemOffset)
  out.f64(place.parentItemOffset)
  out.f64(place.itemSize)
  out.f64(place.headerSize)
  out.u32(place.path.length)
  for (const id of place.path) out.raw(idBytes(id))
  if (place.isSigned === true) out.u8(signedPlace)
  return out.take()
}

function readPlace(bytes: Uint8Array): ItemPlace {
  const read = new Reader(bytes)
  const id = (): Id => idOfBytes(read.raw(32))
  const start = {
    rootId: id(),
    parentId: id(),
    rootItemOffset: read.f64(),
    parentItemOffset: read.f64(),
    itemSize: read.f64(),
    headerSize: read.f64(),
  }
  const place = { ...start, path: Array.from({ length: read.u32() }, id) }
  return read.more && read.u8() === signedPlace ? { ...place, isSigned: true } : place
}

function headerBytes(header: Header): Buffer {
  const out = new Writer()
  out.u32(header.signatureType)
  out.block(header.signature)
  out.block(header.owner)
  out.block(Buffer.from(header.ownerAddress))
  out.block(header.target)
  out.block(header.anchor)
  out.u32(header.tags.length)
  for (const tag of header.tags) {
    out.block(tag.name)
    out.block(tag.value)
  }
  return out.take()
}

function readHeader(bytes: Uint8Array): Header {
  // One copy with all fields as views. Separate copies would be in Node's pool of small buffers, which keeps 8 KiB in memory
  // while one of its bytes is in use.
  const read = new Reader(new Uint8Array(bytes))
  const start = {
    signatureType: read.u32(),
    signature: read.block(),
    owner: read.block(),
    ownerAddress: read.block().toString('latin1'),
    target: read.block(),
    anchor: read.block(),
  }
  const tags: Tag[] = Array.from({ length: read.u32() }, () => ({ name: read.block(), value: read.block() }))
  return { ...start, tags }
}

/** The record of `attributes`; the id is its key and not repeated. */
export function encodeAttributes(attributes: Attributes): Uint8Array {
  const out = new Writer()
  out.u8(recordVersion)
  out.u8((attributes.verified ? flag.verified : 0) | (attributes.trusted ? flag.trusted : 0))
  out.f64(attributes.size)
  const field = (which: number, bytes: Uint8Array): void => {
    out.u8(which)
    out.block(bytes)
  }
  if (attributes.contentType !== undefined) field(kind.contentType, Buffer.from(attributes.contentType))
  if (attributes.contentEncoding !== undefined)
    field(kind.contentEncoding, Buffer.from(attributes.contentEncoding))
  if (attributes.digest !== undefined) field(kind.digest, attributes.digest)
  if (attributes.height !== undefined) {
    const height = Buffer.alloc(8)
    height.writeDoubleLE(attributes.height)
    field(kind.height, height)
  }
  if (attributes.isTransaction) field(kind.isTransaction, new Uint8Array(0))
  if (attributes.place !== undefined) field(kind.place, placeBytes(attributes.place))
  if (attributes.header !== undefined) field(kind.header, headerBytes(attributes.header))
  out.u32(crc32(out.take()))
  return out.take()
}

/**
 * The attributes in a record; undefined where it is damaged: then nothing is known, and what is requested is fetched anew. A bit
 * that changed on the disk must not be taken for what was proven.
 */
export function attributesIn(id: Id, record: Uint8Array): Attributes | undefined {
  try {
    return decodeAttributes(id, record)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** A record without its sum. Throws a RangeError where that says that it is damaged. */
function fieldsOf(record: Uint8Array): Uint8Array {
  if (record[0] === versionWithoutSum) return record
  const end = record.length - sumBytes
  const sum = new DataView(record.buffer, record.byteOffset, record.byteLength).getUint32(end, true)
  if (sum !== crc32(record.subarray(0, end))) throw new RangeError('a damaged catalog record')
  return record.subarray(0, end)
}

/** The attributes in a record, copied out of it. Throws a RangeError on bytes that no version of this program wrote. */
export function decodeAttributes(id: Id, record: Uint8Array): Attributes {
  const read = new Reader(fieldsOf(record))
  const version = read.u8()
  if (version !== recordVersion && version !== versionWithoutSum)
    throw new RangeError(`a catalog record of version ${version}`)
  const flags = read.u8()
  const found: Writable<Attributes> = {
    id,
    size: read.f64(),
    verified: (flags & flag.verified) !== 0,
    trusted: (flags & flag.trusted) !== 0,
  }
  while (read.more) {
    const which = read.u8()
    const bytes = read.block()
    if (which === kind.contentType) found.contentType = bytes.toString('utf8')
    else if (which === kind.contentEncoding) found.contentEncoding = bytes.toString('utf8')
    else if (which === kind.digest) found.digest = new Uint8Array(bytes)
    else if (which === kind.height) found.height = bytes.readDoubleLE(0)
    else if (which === kind.place) found.place = readPlace(bytes)
    else if (which === kind.header) found.header = readHeader(bytes)
    else if (which === kind.isTransaction) found.isTransaction = true
  }
  return found
}

/** Times of use have six bytes in their order. */
const touchedEnd = 2 ** 48

/** What is known of a blob on disk. */
export interface BlobRecord {
  readonly sizeBytes: number
  /** Milliseconds since 1970. */
  readonly createdMs: number
  /** Milliseconds since 1970, to the coarseness the keeper was given. 0: it lies in a segment. */
  readonly touchedMs: number
  /** One of the ids whose content it is; unknown until something is learned of one. */
  readonly holder?: Id
}

/** Segments count the bytes and the uses of what lies in them. */
export function isInSegment({ touchedMs }: BlobRecord): boolean {
  return touchedMs === 0
}

/** A blob record: three f64, and the 32 bytes of an id where one is known. */
export function encodeBlob(blob: BlobRecord): Uint8Array {
  const { holder } = blob
  const bytes = Buffer.allocUnsafe(holder === undefined ? 24 : 56)
  bytes.writeDoubleLE(blob.sizeBytes, 0)
  bytes.writeDoubleLE(blob.createdMs, 8)
  bytes.writeDoubleLE(blob.touchedMs, 16)
  if (holder !== undefined) bytes.set(idBytes(holder), 24)
  return bytes
}

/** The size alone: most readers want nothing else of a blob record. */
export function blobSizeIn(record: Uint8Array): number {
  return new DataView(record.buffer, record.byteOffset, record.byteLength).getFloat64(0, true)
}

/** The blob record in these bytes, copied out of them. */
export function decodeBlob(record: Uint8Array): BlobRecord {
  const bytes = Buffer.from(record.buffer, record.byteOffset, record.byteLength)
  const touchedMs = bytes.readDoubleLE(16)
  return {
    sizeBytes: bytes.readDoubleLE(0),
    createdMs: bytes.readDoubleLE(8),
    // What is no time was damaged on the disk: the blob counts as one that was used long ago.
    touchedMs: Number.isInteger(touchedMs) && touchedMs >= 0 && touchedMs < touchedEnd ? touchedMs : 1,
    ...(bytes.length < 56 ? {} : { holder: idOfBytes(bytes.subarray(24, 56)) }),
  }
}

/** Key of the table in order of last use: milliseconds as 6 bytes, big-endian, then the digest. */
export function touchKey(touchedMs: number, digest: Uint8Array): Uint8Array {
  const key = Buffer.allocUnsafe(6 + digest.length)
  key.writeUIntBE(touchedMs, 0, 6)
  key.set(digest, 6)
  return key
}

/** The parts of a `touchKey`. */
export function readTouchKey(key: Uint8Array): { touchedMs: number; digest: Uint8Array } {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.byteLength)
  return { touchedMs: bytes.readUIntBE(0, 6), digest: Buffer.from(bytes.subarray(6)) }
}
