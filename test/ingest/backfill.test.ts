/** Gaps of the index below its top: blocks that were removed because their rows are damaged. */
import t from 'tap'
import { silentLog } from '../../src/actor/log.js'
import { Backfill, type BackfillParts } from '../../src/ingest/backfill.js'
import { eventually } from '../eventually.js'

const idOf = (height: number): string => `block ${height}`

/** Blocks by their heights. */
class Blocks {
  readonly heights = new Set([5, 10, 11, 12, 13, 14, 15, 16])
  forks = 0
  lowestMended: number | undefined

  drop(height: number): void {
    this.heights.delete(height)
    this.forks += 1
    this.lowestMended = Math.min(this.lowestMended ?? height, height)
  }

  refresh(): void {
    // It is always of now.
  }

  topHeight(): number {
    return Math.max(...this.heights)
  }

  block(height: number) {
    return this.heights.has(height) ? { height, id: idOf(height), previous: idOf(height - 1) } : undefined
  }

  linkedDown(height: number): number {
    let lowest = height
    while (this.heights.has(lowest - 1)) lowest -= 1
    return lowest
  }
}

t.test('blocks that were dropped are fetched again, and no gap below them', async (t) => {
  const index = new Blocks()
  const wanted: number[] = []
  index.drop(13)
  const supply = {
    take: async (height: number) => {
      wanted.push(height)
      return { block: { hash: idOf(height), previous: idOf(height - 1), height }, transactions: [] }
    },
    drop: () => undefined,
    clear: () => undefined,
  }
  const parts = {
    supply,
    queue: { index, write: async (act: () => unknown) => act() },
    intake: {
      remember: () => 0,
      blockWords: (blocks: readonly { readonly block: { readonly height: number } }[]) => {
        for (const { block } of blocks) index.heights.add(block.height)
        return blocks
      },
    },
    meters: { of: () => ({ add: () => undefined }) },
    // Above what is linked already.
    onImported: () => {
      if (index.forks === 1) index.drop(15)
    },
    clock: { now: () => 0 },
    log: silentLog,
  }
  const backfill = new Backfill(parts as unknown as BackfillParts, undefined)
  const run = backfill.run()
  await eventually('both gaps are filled', () => index.heights.size === 8)
  await backfill.stop()
  await run.catch((error: unknown) => t.match(error, { name: 'AbortError' }))
  t.ok(wanted.includes(13) && wanted.includes(15), `fetched ${wanted}`)
  t.ok(Math.min(...wanted) >= 10)
})
