import type { Piece } from '../http/exchange.js'
import type { OpenedContent } from '../source/reading/transfer-client.js'

/**
 * True where the whole body is here and was hashed: the fetcher shows the last byte only after it compared the digest. A digest
 * in the attributes is no proof, because it may come from the index. An unchecked copy in the store is no proof either.
 */
export function isHashed({ attributes, content, window, source }: OpenedContent): boolean {
  const { digest, size } = attributes
  if (digest === undefined || source === 'cache' || window.start > 0 || window.end < size) return false
  return size === 0 || content.read(size - 1, size) !== undefined
}

/** True where what was opened can give this piece. */
export function isInside(piece: Piece, { window }: OpenedContent): boolean {
  return 'bytes' in piece || (piece.start >= window.start && piece.end <= window.end)
}
