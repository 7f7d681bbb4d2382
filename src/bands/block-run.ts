import { placeBlock, type Torrent } from '../format/torrent.js'
import type { Block } from './wire.js'

/** Takes blocks off the front of a queue that lie in one file, each behind the one before: one read brings them all. */
export function takeRun(queue: Block[], torrent: Torrent, blocksMax: number): readonly Block[] {
  let count = 0
  let next: { file: object; position: number } | undefined
  for (const block of queue) {
    const place = placeBlock(torrent, block.piece, block.begin, block.length)
    const follows = next === undefined || (place?.file === next.file && place.position === next.position)
    if (count === blocksMax || place === undefined || !follows) break
    next = { file: place.file, position: place.position + block.length }
    count += 1
  }
  return queue.splice(0, count)
}
