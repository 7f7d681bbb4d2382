import { type Dispatcher, request } from 'undici'
import { abortAfter } from '../actor/clock.js'
import { expected } from '../format/bug.js'
import { readBodyUpTo } from './announce.js'
import type { IncomingPiece } from './piece-store.js'
import { blockBytes, fileOfPiece, type Torrent } from './torrent.js'

/** An HTTP server that has a torrent's files (BEP 19): `<base><torrent name>/<file>`, requested in ranges. */
export interface WebSeed {
  /** Ends with a slash. */
  readonly base: string
  readonly dispatcher: Dispatcher
  readonly timeoutMs: number
}

/** Result of the request for a piece. `absent`: the server does not have the file, so it gets no more requests. */
export type Carried = 'carried' | 'absent' | 'failed'

/** Fetches the bytes of one piece into `intake`, block by block, by `take`. */
export async function carryPiece(
  { base, dispatcher, timeoutMs }: WebSeed,
  torrent: Torrent,
  intake: IncomingPiece,
  take: (begin: number, bytes: Uint8Array) => boolean,
  end: AbortSignal,
): Promise<Carried> {
  const file = fileOfPiece(torrent, intake.piece)
  if (file === undefined) return 'absent'
  const start = (intake.piece - file.firstPiece) * torrent.pieceBytes
  const last = start + intake.bytes.length - 1
  try {
    const signal = AbortSignal.any([end, abortAfter(timeoutMs)])
    const headers = { range: `bytes=${start}-${last}`, 'user-agent': 'sluice' }
    const answer = await request(`${base}${torrent.name}/${file.name}`, { dispatcher, signal, headers })
    const isWhole = answer.statusCode === 200 && start === 0 && intake.bytes.length === file.sizeBytes
    if (answer.statusCode !== 206 && !isWhole) {
      answer.body.on('error', () => 'dropped on purpose').destroy()
      return answer.statusCode === 404 ? 'absent' : 'failed'
    }
    const bytes = await readBodyUpTo(answer.body, intake.bytes.length)
    if (bytes?.length !== intake.bytes.length) return 'failed'
    for (let begin = 0; begin < bytes.length; begin += blockBytes) {
      if (!take(begin, bytes.subarray(begin, begin + blockBytes))) return 'failed'
    }
    return 'carried'
  } catch (error) {
    expected(error)
    // Unreachable, stalled or broken off: requested again later, unless peers deliver the piece first.
    return 'failed'
  }
}
