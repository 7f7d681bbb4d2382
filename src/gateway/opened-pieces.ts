import type { Piece } from '../http/exchange.js'
import type { OpenedContent } from '../source/reading/transfer-client.js'

/**
 * True where the whole body is here and was hashed: the fetcher shows the last byte only after it compared the digest. A digest
 * in the attributes is no proof, because it may come from the index. An unchecked copy in the store is no proof either.
 */
export function isHashed({ attributes, content, span, source }: OpenedContent): boolean {
  const { digest, size } = attributes
  if (digest === undefined || source === 'cache' || span.start > 0 || span.end < size) return false
  return size === 0 || content.read(size - 1, size) !== undefined
}

/** True where what was opened can give this piece. */
export function isInside(piece: Piece, { span }: OpenedContent): boolean {
  return 'bytes' in piece || (piece.start >= span.start && piece.end <= span.end)
}
