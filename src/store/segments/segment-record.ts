import { crc32 } from 'node:zlib'

/**
 * How a record lies in a segment, and in a file of the durable log: a header of 72 bytes, room for words about the payload
 * (`meta`), the payload. It begins at a multiple of 512 bytes. Numbers are little-endian:
 *
 * ```
 *  0  u32  magic "SLSG"          24  u32  CRC-32 of the meta
 *  4  u8   version, 1            28  u32  number of the file: a record in a file of another number is none
 *  5  u8   kind                  32  32   SHA-256 of the payload
 *  6  u16  front, see below      64  u32  CRC-32 of bytes 0 to 63
 *  8  f64  bytes of the payload  68  u32  0
 * 16  u32  bytes of the room behind the header
 * 20  u32  bytes of the meta in that room
 * ```
 *
 * Where the front is not 0 the digest is in two parts (`SplitDigest`); older releases wrote 0 alone, and take others for torn.
 */
export const headOfRecordBytes = 72
const magic = 0x47534c53
const version = 1

/** Records begin at multiples of it: so one bit for each such place can say something of each record. */
export const recordSlotBytes = 512

/**
 * `alone`: the only record of its file, written when its payload was durable already. `chunk`: a proven chunk, with its proof as
 * meta; in place of a digest stands its name (`nameOfChunk`). `withdrawn`: one of the log whose uploader was refused after it was
 * written: it is passed over, and its lengths say where the next one begins. Older releases take both for torn.
 */
const kinds = { content: 1, accepted: 2, alone: 3, chunk: 4, withdrawn: 5 } as const
export type RecordKind = keyof typeof kinds
const kindOf: Readonly<Record<number, RecordKind>> = {
  1: 'content',
  2: 'accepted',
  3: 'alone',
  4: 'chunk',
  5: 'withdrawn',
}

/**
 * A digest of a payload whose rest, behind its first `frontBytes`, has a digest already: the SHA-256 of those first bytes and of
 * the SHA-256 of the rest. It says as much as one of all the bytes, and the rest is not hashed twice.
 */
export interface SplitDigest {
  readonly frontBytes: number
  readonly digest: Uint8Array
}

/** SHA-256 of all bytes, or one in two parts. */
export type RecordDigest = Uint8Array | SplitDigest

/** The two parts of a digest, whichever it is. Throws a RangeError where the front is none. */
export function splitOf(digest: RecordDigest): SplitDigest {
  if (digest instanceof Uint8Array) return { frontBytes: 0, digest }
  const { frontBytes } = digest
  if (Number.isInteger(frontBytes) && frontBytes > 0 && frontBytes < 2 ** 16) return digest
  throw new RangeError(`${frontBytes} bytes are no front of a digest`)
}

export interface RecordHead {
  readonly kind: RecordKind
  readonly payloadBytes: number
  readonly roomBytes: number
  readonly metaBytes: number
  /** CRC-32. */
  readonly metaSum: number
  readonly file: number
  /** 0: the digest is the SHA-256 of the payload; else it is in two parts. */
  readonly frontBytes: number
  readonly digest: Uint8Array
}

/** Bytes that a record takes in its file. */
export function recordBytes(roomBytes: number, payloadBytes: number): number {
  return Math.ceil((headOfRecordBytes + roomBytes + payloadBytes) / recordSlotBytes) * recordSlotBytes
}

/** The sum that stands in a header for its meta. */
export function sumOfMeta(meta: Uint8Array): number {
  return crc32(meta)
}

/** Writes a header to the start of `into`. */
export function writeRecordHead(into: Buffer, header: RecordHead): void {
  into.writeUInt32LE(magic, 0)
  into.writeUInt8(version, 4)
  into.writeUInt8(kinds[header.kind], 5)
  into.writeUInt16LE(header.frontBytes, 6)
  into.writeDoubleLE(header.payloadBytes, 8)
  into.writeUInt32LE(header.roomBytes, 16)
  into.writeUInt32LE(header.metaBytes, 20)
  into.writeUInt32LE(header.metaSum, 24)
  into.writeUInt32LE(header.file, 28)
  into.set(header.digest, 32)
  into.writeUInt32LE(crc32(into.subarray(0, 64)), 64)
  into.writeUInt32LE(0, 68)
}

/** The header at the start of `bytes`; undefined where there is none, or a damaged one. The digest is a view. */
export function readRecordHead(bytes: Buffer): RecordHead | undefined {
  if (bytes.length < headOfRecordBytes || bytes.readUInt32LE(0) !== magic || bytes.readUInt8(4) !== version)
    return undefined
  if (crc32(bytes.subarray(0, 64)) !== bytes.readUInt32LE(64)) return undefined
  const kind = kindOf[bytes.readUInt8(5)]
  const payloadBytes = bytes.readDoubleLE(8)
  const roomBytes = bytes.readUInt32LE(16)
  const metaBytes = bytes.readUInt32LE(20)
  if (kind === undefined || !Number.isSafeInteger(payloadBytes) || payloadBytes < 0 || metaBytes > roomBytes)
    return undefined
  const [metaSum, file, frontBytes] = [bytes.readUInt32LE(24), bytes.readUInt32LE(28), bytes.readUInt16LE(6)]
  const digest = bytes.subarray(32, 64)
  return { kind, payloadBytes, roomBytes, metaBytes, metaSum, file, frontBytes, digest }
}
