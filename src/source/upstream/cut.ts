import { isRefusal, type Refusal } from '../../format/refusal.js'

/**
 * The bytes from `start` up to `end` (exclusive) out of all. `rest` behind them is left unread, or read where only the whole
 * can be proven: then a refusal at its end is still the last word.
 */
export async function* cut(
  pieces: AsyncIterable<Uint8Array | Refusal>,
  start: number,
  end: number,
  rest: 'leave' | 'read',
): AsyncGenerator<Uint8Array | Refusal, undefined> {
  let at = 0
  for await (const piece of pieces) {
    if (isRefusal(piece)) {
      yield piece
      return undefined
    }
    const from = Math.max(start - at, 0)
    const to = Math.min(end - at, piece.length)
    at += piece.length
    if (to > from) yield piece.subarray(from, to)
    if (rest === 'leave' && at >= end) return undefined
  }
  return undefined
}
