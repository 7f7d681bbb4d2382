import { encodeBase64url } from '../format/base64url.js'

/** What a route answers. A body of pieces is written as fast as the client takes it. */
export interface NodeReply {
  readonly status: number
  readonly type: string
  readonly body: string | Uint8Array | Iterable<Uint8Array>
}

/** An answer of the devnet's node as plain text. */
export function textReply(body: string, status = 200): NodeReply {
  return { status, type: 'text/plain; charset=utf-8', body }
}

/** An answer of the devnet's node as JSON. */
export function jsonReply(body: unknown, status = 200): NodeReply {
  return { status, type: 'application/json', body: JSON.stringify(body) }
}

export const notFound = textReply('Not Found.', 404)

/** Base64url of bytes that come in pieces cut anywhere. */
export function* base64urlPieces(pieces: Iterable<Uint8Array>): Generator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array()
  for (const piece of pieces) {
    const bytes = Buffer.concat([rest, piece])
    const whole = bytes.length - (bytes.length % 3)
    rest = bytes.subarray(whole)
    yield Buffer.from(encodeBase64url(bytes.subarray(0, whole)), 'latin1')
  }
  yield Buffer.from(encodeBase64url(rest), 'latin1')
}
