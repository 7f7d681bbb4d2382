import { type Dispatcher, request } from 'undici'
import { blockBytes, fileOfPiece, type Torrent } from '../format/torrent.js'
import { readBody } from './announce.js'
import type { Intake } from './piece-store.js'

/** An HTTP server that has a torrent's files (BEP 19): `<base><torrent name>/<file>`, asked for ranges. */
export interface WebSeed {
  /** Ends with a slash. */
  readonly base: string
  readonly dispatcher: Dispatcher
  readonly timeoutMs: number
}

/** What came of asking for a piece. `absent`: this server will not have it, as it says itself. */
export type Carried = 'carried' | 'absent' | 'failed'

/** Brings the bytes of one piece into `intake`, block by block, by `take`. Never rejects. */
export async function carryPiece(
  { base, dispatcher, timeoutMs }: WebSeed,
  torrent: Torrent,
  intake: Intake,
  take: (begin: number, bytes: Uint8Array) => boolean,
  end: AbortSignal,
): Promise<Carried> {
  const file = fileOfPiece(torrent, intake.piece)
  if (file === undefined) return 'absent'
  const start = (intake.piece - file.firstPiece) * torrent.pieceBytes
  const last = start + intake.bytes.length - 1
  try {
    const signal = AbortSignal.any([end, AbortSignal.timeout(timeoutMs)])
    const headers = { range: `bytes=${start}-${last}`, 'user-agent': 'sluice' }
    const answer = await request(`${base}${torrent.name}/${file.name}`, { dispatcher, signal, headers })
    const isWhole = answer.statusCode === 200 && start === 0 && intake.bytes.length === file.sizeBytes
    if (answer.statusCode !== 206 && !isWhole) {
      answer.body.on('error', () => 'dropped on purpose').destroy()
      return answer.statusCode === 404 ? 'absent' : 'failed'
    }
    const bytes = await readBody(answer.body, intake.bytes.length)
    if (bytes?.length !== intake.bytes.length) return 'failed'
    for (let begin = 0; begin < bytes.length; begin += blockBytes) {
      if (!take(begin, bytes.subarray(begin, begin + blockBytes))) return 'failed'
    }
    return 'carried'
  } catch {
    // Away, stalled, broken off: asked again later, or not at all when others are quicker.
    return 'failed'
  }
}
