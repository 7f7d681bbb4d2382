import type { Clock } from '../actor/clock.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import { pendingHeight } from '../catalog/row-key.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { l1Ranges, readL1Band } from './l1-band.js'
import { buildL1 } from './l1-build.js'
import { l1Kind, type Shelved } from './protocol.js'
import type { Shelf } from './shelf.js'

export interface L1Schedule {
  /** Text that names the publisher: part of the bands' ids. */
  readonly publisher: string
  readonly signatures: boolean
  /** Blocks at the index's end that a fork may still take away. */
  readonly forkDepth: number
}

/**
 * Builds the Parquet bands that the shelf lacks for what the index holds and no fork can change, each put in place as it is
 * done; `built` hears of each. A new band supersedes those whose heights lie in its own. Returns the first refusal: what was
 * built before it stays.
 */
export async function buildL1Bands(
  index: ChainIndex,
  shelf: Shelf,
  schedule: L1Schedule,
  clock: Clock,
  built: (id: string, transactions: number) => void,
  signal?: AbortSignal,
): Promise<Refusal | undefined> {
  index.refresh()
  const [lowest] = index.blocks(0, pendingHeight - 1, false, 1)
  const top = (index.topHeight() ?? -1) - schedule.forkDepth - 1
  if (lowest === undefined) return undefined
  for (const [from, to] of l1Ranges(lowest.height, top)) {
    const there = await l1Shelved(shelf)
    if (there.some(({ range }) => range[0] === from && range[1] === to)) continue
    const inside = there.filter(({ range }) => range[0] >= from && range[1] <= to)
    const draft = await shelf.draft()
    const { publisher, signatures } = schedule
    const order = { from, to, publisher, signatures, supersedes: inside.map(({ band }) => band.id) }
    try {
      const made = await buildL1(index, draft, order, clock, signal)
      if (isRefusal(made)) return made
      await shelf.place(draft, 'own', l1Kind.index, made.id)
      built(made.id, made.band.tables.transactions.rows)
    } finally {
      await shelf.discard(draft)
    }
  }
  return undefined
}

async function l1Shelved(
  shelf: Shelf,
): Promise<{ readonly band: Shelved; readonly range: readonly [number, number] }[]> {
  const found = []
  for (const band of await shelf.list('own')) {
    if (band.index !== l1Kind.index) continue
    const read = await readL1Band(band.folder)
    if (!isRefusal(read)) found.push({ band, range: read.heightRange })
  }
  return found
}
