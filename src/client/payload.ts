import { Gathered } from '../format/gathered.js'
import { joined, utf8 } from './bytes.js'
import { ClientError } from './errors.js'

/** Content that can be read more than once, from any place: for hashing, for sending, and for sending again. */
export interface PayloadSource {
  readonly size: number
  /** The bytes from `from` to the end, in pieces. */
  open(from: number): AsyncIterable<Uint8Array>
}

/** What callers may give as content. A stream can be read once only, so it is kept in memory: at most 100 MiB of it. */
export type UploadData = string | Uint8Array | ArrayBuffer | Blob | PayloadSource | ReadableStream<Uint8Array>

const streamBytesMax = 100 * 1024 * 1024
const pieceBytes = 4 * 1024 * 1024

/** A source of bytes at hand. */
export function sourceOfBytes(bytes: Uint8Array): PayloadSource {
  return {
    size: bytes.length,
    async *open(from) {
      for (let at = from; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
    },
  }
}

async function* piecesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel()
  }
}

/** The pieces of a stream, which is cancelled where the reader stops early. Safari's streams cannot be iterated. */
export const streamPieces = piecesOf

async function heldStream(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const gathered = new Gathered()
  for await (const piece of piecesOf(stream)) {
    if (gathered.sizeBytes + piece.length > streamBytesMax) {
      const advice =
        'give a Blob, or { size, open(from) }: long content is read twice, to sign it and to send it'
      throw new ClientError('too-large', `a stream of more than ${streamBytesMax} bytes`, advice)
    }
    gathered.add(piece)
  }
  return gathered.bytes()
}

/** The source of whatever the caller gave. */
export async function payloadOf(data: UploadData): Promise<PayloadSource> {
  if (typeof data === 'string') return sourceOfBytes(utf8(data))
  if (data instanceof Uint8Array) return sourceOfBytes(data)
  if (data instanceof ArrayBuffer) return sourceOfBytes(new Uint8Array(data))
  if (typeof Blob !== 'undefined' && data instanceof Blob) {
    return {
      size: data.size,
      open: (from) => piecesOf(data.slice(from).stream() as ReadableStream<Uint8Array>),
    }
  }
  if (data instanceof ReadableStream) return sourceOfBytes(await heldStream(data))
  return data as PayloadSource
}

/** All bytes of a source. */
export async function allBytes(source: PayloadSource): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of source.open(0)) pieces.push(piece)
  return pieces.length === 1 ? (pieces[0] as Uint8Array) : joined(...pieces)
}
