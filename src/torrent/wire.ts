/**
 * The wire protocol of BitTorrent peers over TCP: the handshake and messages of BEP 3, with the extensions of BEP 6
 * (fast), BEP 10 (extension messages) and BEP 52 (hashes). Bytes to values and back; no socket here.
 */

const protocolName = Buffer.from('\x13BitTorrent protocol', 'latin1')

export const handshakeBytes = 68

/** Bits of the handshake's eight reserved bytes. */
const extensionBit = [5, 0x10] as const
const fastBit = [7, 0x04] as const
const v2Bit = [7, 0x10] as const

export interface Handshake {
  /** 20 bytes: SHA-1 of the info, or the first 20 of its SHA-256. */
  readonly infohash: Buffer
  readonly peerId: Buffer
  readonly extensions: boolean
  readonly fast: boolean
  readonly v2: boolean
}

/** Our side of a handshake: it announces every extension that is supported here. */
export function encodeHandshake(infohash: Uint8Array, peerId: Uint8Array): Buffer {
  const reserved = Buffer.alloc(8)
  for (const [index, bit] of [extensionBit, fastBit, v2Bit]) reserved[index]! |= bit
  return Buffer.concat([protocolName, reserved, infohash, peerId])
}

/** Reads the first 68 bytes of a peer; undefined where it is another protocol, which shows in the first 20. */
export function decodeHandshake(bytes: Buffer): Handshake | undefined {
  if (!isHandshake(bytes)) return undefined
  const has = ([index, bit]: readonly [number, number]): boolean => (bytes[20 + index]! & bit) !== 0
  return {
    infohash: Buffer.from(bytes.subarray(28, 48)),
    peerId: Buffer.from(bytes.subarray(48, 68)),
    extensions: has(extensionBit),
    fast: has(fastBit),
    v2: has(v2Bit),
  }
}

/** Whether bytes, fewer than a handshake has or not, begin like one. */
export function isHandshake(bytes: Buffer): boolean {
  const length = Math.min(bytes.length, protocolName.length)
  return bytes.compare(protocolName, 0, length, 0, length) === 0
}

/** A block: part of a piece. `length` is checked by the caller: the protocol allows 16 KiB. */
export interface BlockSpan {
  readonly piece: number
  readonly begin: number
  readonly length: number
}

/** The fields of a hash request, which its answers repeat. */
export interface HashSpan {
  /** 32 bytes, the root of a file's tree. */
  readonly root: Buffer
  /** 0: leaves of 16 KiB. */
  readonly baseLayer: number
  readonly index: number
  readonly length: number
  readonly proofLayers: number
}

/** Byte strings in messages share the memory that was read into: copy what is to be kept. */
export type Message =
  | { readonly kind: 'keep-alive' | 'choke' | 'unchoke' | 'interested' | 'not-interested' }
  | { readonly kind: 'have-all' | 'have-none' }
  | { readonly kind: 'have'; readonly piece: number }
  | { readonly kind: 'bitfield'; readonly bits: Buffer }
  | ({ readonly kind: 'request' | 'cancel' | 'reject' } & BlockSpan)
  | { readonly kind: 'piece'; readonly piece: number; readonly begin: number; readonly bytes: Buffer }
  | { readonly kind: 'extended'; readonly id: number; readonly payload: Buffer }
  | ({ readonly kind: 'hash-request' | 'hash-reject' } & HashSpan)
  | ({ readonly kind: 'hashes'; readonly hashes: Buffer } & HashSpan)
  /** Ignored here: DHT ports, suggestions, and unknown messages. */
  | { readonly kind: 'other' }

const bare = {
  0: 'choke',
  1: 'unchoke',
  2: 'interested',
  3: 'not-interested',
  14: 'have-all',
  15: 'have-none',
} as const
const blocks = { 6: 'request', 8: 'cancel', 16: 'reject' } as const
const hashIds = { 21: 'hash-request', 22: 'hashes', 23: 'hash-reject' } as const

const hashSpanBytes = 48

function has<Table extends object>(table: Table, key: PropertyKey): key is keyof Table {
  return Object.hasOwn(table, key)
}

/** One message without its length; undefined where its size does not fit its id. */
export function decodeMessage(body: Buffer): Message | undefined {
  if (body.length === 0) return { kind: 'keep-alive' }
  const id = body[0]!
  const rest = body.subarray(1)
  if (has(bare, id)) return rest.length === 0 ? { kind: bare[id] } : undefined
  if (id === 4) return rest.length === 4 ? { kind: 'have', piece: rest.readUInt32BE(0) } : undefined
  if (id === 5) return { kind: 'bitfield', bits: rest }
  if (has(blocks, id)) return rest.length === 12 ? { kind: blocks[id], ...readBlock(rest) } : undefined
  if (id === 7) {
    if (rest.length < 8) return undefined
    const [piece, begin] = [rest.readUInt32BE(0), rest.readUInt32BE(4)]
    return { kind: 'piece', piece, begin, bytes: rest.subarray(8) }
  }
  if (id === 20) {
    return rest.length === 0 ? undefined : { kind: 'extended', id: rest[0]!, payload: rest.subarray(1) }
  }
  if (!has(hashIds, id)) return { kind: 'other' }
  if (rest.length < hashSpanBytes) return undefined
  const span = readHashSpan(rest)
  const hashes = rest.subarray(hashSpanBytes)
  const kind = hashIds[id]
  if (kind === 'hashes') return hashes.length % 32 === 0 ? { kind, ...span, hashes } : undefined
  return hashes.length === 0 ? { kind, ...span } : undefined
}

function readBlock(bytes: Buffer): BlockSpan {
  return { piece: bytes.readUInt32BE(0), begin: bytes.readUInt32BE(4), length: bytes.readUInt32BE(8) }
}

function readHashSpan(bytes: Buffer): HashSpan {
  return {
    root: bytes.subarray(0, 32),
    baseLayer: bytes.readUInt32BE(32),
    index: bytes.readUInt32BE(36),
    length: bytes.readUInt32BE(40),
    proofLayers: bytes.readUInt32BE(44),
  }
}

/** Ids of messages without a body. */
export const plainIds = {
  choke: 0,
  unchoke: 1,
  interested: 2,
  'have-all': 14,
  'have-none': 15,
} as const

function framed(id: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = parts.reduce((sum, part) => sum + part.length, 1)
  const head = Buffer.alloc(5)
  head.writeUInt32BE(body)
  head[4] = id
  return Buffer.concat([head, ...parts])
}

function words(...numbers: readonly number[]): Buffer {
  const bytes = Buffer.alloc(numbers.length * 4)
  for (const [index, number] of numbers.entries()) bytes.writeUInt32BE(number, index * 4)
  return bytes
}

/** Whole messages, length and all; each a buffer of its own. */
export const encode = {
  keepAlive: (): Buffer => Buffer.alloc(4),
  plain: (kind: keyof typeof plainIds): Buffer => framed(plainIds[kind]),
  have: (piece: number): Buffer => framed(4, words(piece)),
  bitfield: (bits: Uint8Array): Buffer => framed(5, bits),
  request: ({ piece, begin, length }: BlockSpan): Buffer => framed(6, words(piece, begin, length)),
  cancel: ({ piece, begin, length }: BlockSpan): Buffer => framed(8, words(piece, begin, length)),
  reject: ({ piece, begin, length }: BlockSpan): Buffer => framed(16, words(piece, begin, length)),
  extended: (id: number, ...payload: readonly Uint8Array[]): Buffer =>
    framed(20, Buffer.from([id]), ...payload),
  hashRequest: (span: HashSpan): Buffer => framed(21, span.root, hashWords(span)),
  hashes: (span: HashSpan, hashes: Uint8Array): Buffer => framed(22, span.root, hashWords(span), hashes),
  hashReject: (span: HashSpan): Buffer => framed(23, span.root, hashWords(span)),
}

function hashWords({ baseLayer, index, length, proofLayers }: HashSpan): Buffer {
  return words(baseLayer, index, length, proofLayers)
}

/** Bytes in front of a block in its message: length, id, piece, begin. */
export const pieceHeadBytes = 13

/** Writes that head into `target`. */
export function writePieceHead(target: Buffer, at: number, { piece, begin, length }: BlockSpan): void {
  target.writeUInt32BE(9 + length, at)
  target[at + 4] = 7
  target.writeUInt32BE(piece, at + 5)
  target.writeUInt32BE(begin, at + 9)
}

/**
 * Cuts a stream into messages. A length above `messageMaxBytes` is refused when it is read, before anything is
 * buffered for it. Holds at most one unfinished message and one chunk.
 */
export class Frames {
  #rest: Buffer = Buffer.alloc(0)

  constructor(private readonly messageMaxBytes: number) {}

  /** Takes a chunk and calls `take` with each whole message. Returns false where a message is refused or `take` returns false. */
  push(chunk: Buffer, take: (message: Message) => boolean): boolean {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    let at = 0
    while (bytes.length - at >= 4) {
      const length = bytes.readUInt32BE(at)
      if (length > this.messageMaxBytes) return false
      if (bytes.length - at - 4 < length) break
      const message = decodeMessage(bytes.subarray(at + 4, at + 4 + length))
      at += 4 + length
      if (message === undefined || !take(message)) return false
    }
    // Copied: the socket reuses its buffer after this call.
    this.#rest = at === bytes.length ? Buffer.alloc(0) : Buffer.from(bytes.subarray(at))
    return true
  }
}

/** BEP 3: a bit for each piece, the first one in the highest bit. */
export function bitfield(pieces: number, here: readonly number[]): Buffer {
  const bits = Buffer.alloc(Math.ceil(pieces / 8))
  for (const piece of here) bits[piece >> 3]! |= 0x80 >> (piece & 7)
  return bits
}
