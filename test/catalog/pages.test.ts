import assert from 'node:assert/strict'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { Effort } from '../../src/catalog/effort.js'
import type { ChainIndex } from '../../src/catalog/index-reader.js'
import type { Selection } from '../../src/catalog/selection.js'
import { fc } from '../property.js'
import { anySelection, anyStep, History } from './history.js'
import { earlyFlush, filesOnly, type ModelRow, openHouse, tireless } from './index-model.js'

/** An effort that is spent after so many steps, and never by time. */
const tired = (steps: number): Effort => new Effort(steps, 600_000, systemClock)

interface Walk {
  readonly wanted: Selection
  readonly backwards: boolean
  readonly limit: number
  readonly steps: number
}

/** Pages that ended early. */
let cut = 0

/** One page: the ids on it, and where the next one begins. */
function page(
  index: ChainIndex,
  { wanted, backwards, limit, steps }: Walk,
  after: Uint8Array | undefined,
): { ids: string[]; next: Uint8Array | undefined } {
  const request = { backwards, limit, ...(after === undefined ? {} : { after }) }
  const { entries, more, place } = index.rows(wanted, request, tired(steps))
  const next = place ?? entries.at(-1)?.key
  if (place !== undefined) cut += 1
  if (more) {
    assert.ok(next !== undefined, 'where there is more there is a place to go on from')
    const order = after === undefined ? 1 : Buffer.compare(next, after) * (backwards ? -1 : 1)
    assert.ok(order > 0, 'a page moves on, however small the effort is')
  }
  return {
    ids: entries.map(({ id }) => Buffer.from(id).toString('base64url')),
    next: more ? next : undefined,
  }
}

/** All pages; `meanwhile` runs between two of them. */
async function walk(index: ChainIndex, walked: Walk, meanwhile?: () => Promise<void>): Promise<string[]> {
  const ids: string[] = []
  for (let after: Uint8Array | undefined, turn = 0; turn < 10_000; turn += 1) {
    const found = page(index, walked, after)
    ids.push(...found.ids)
    if (found.next === undefined) return ids
    after = found.next
    await meanwhile?.()
  }
  throw new Error('the pages come to no end')
}

/** Few conditions, so that many rows are found. */
const someSelection: fc.Arbitrary<Selection> = fc
  .tuple(
    anySelection,
    fc.subarray(['owners', 'tags', 'bundledIn', 'minHeight', 'maxHeight'], { maxLength: 2 }),
  )
  .map(([wanted, kept]) => Object.fromEntries(Object.entries(wanted).filter(([name]) => kept.includes(name))))

const anyWalk: fc.Arbitrary<Walk> = fc.record({
  wanted: fc.oneof(
    anySelection,
    someSelection,
    someSelection.map((wanted) => ({ ...wanted, minSeen: 4999 })),
    someSelection.map((wanted) => ({ ...wanted, minSeen: 5001 })),
  ),
  backwards: fc.boolean(),
  limit: fc.integer({ min: 1, max: 9 }),
  steps: fc.constantFrom(0, 1, 3, 10, 40),
})

function expected({ model }: History, { wanted, backwards }: Walk): string[] {
  // The model knows nothing of when a row was seen: all of them at 5,000 s.
  const rows = (wanted.minSeen ?? 0) > 5000 ? [] : model.select(wanted)
  const ids = rows.map(({ id }) => id)
  return backwards ? ids.reverse() : ids
}

t.test('pages that end early, put together, are the whole list in order, each row once', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyStep, { maxLength: 40 }),
      fc.array(anyWalk, { minLength: 5, maxLength: 12 }),
      fc.constantFrom(undefined, filesOnly),
      fc.constantFrom(undefined, earlyFlush),
      async (steps, walks, spill, flush) => {
        const house = openHouse(spill, undefined, flush)
        const history = new History()
        for (const step of steps) await house.apply(history.play(step))
        for (const walked of walks) {
          assert.deepEqual(await walk(house.index, walked), expected(history, walked))
          const count = house.index.count(walked.wanted, tired(walked.steps))
          if (count !== undefined) assert.equal(count, expected(history, walked).length)
          assert.equal(house.index.count(walked.wanted, tireless()), expected(history, walked).length)
        }
        await house.close()
      },
    ),
    { numRuns: 40 },
  )
  assert.ok(cut > 0, `only ${cut} pages ended early`)
})

const placeOf = ({ height, index }: ModelRow): string => `${height} ${index}`

t.test('while the chain grows and forks, rows that stay where they are come exactly once', async () => {
  let stayed = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyStep, { minLength: 10, maxLength: 40 }),
      fc.array(anyStep, { maxLength: 15 }),
      anyWalk,
      fc.constantFrom(undefined, earlyFlush),
      async (before, between, walked, flush) => {
        const house = openHouse(undefined, undefined, flush)
        const history = new History()
        for (const step of before) await house.apply(history.play(step))
        const select = (): Map<string, string> => {
          const wanted = new Set(expected(history, walked))
          const rows = [...history.model.rows.values()].filter(({ id }) => wanted.has(id))
          return new Map(rows.map((row) => [row.id, placeOf(row)]))
        }
        // Where each row stood at any time, and those that never moved.
        const still = select()
        const ever = new Map([...still].map(([id, place]) => [id, new Set([place])]))
        const steps = [...between]
        const ids = await walk(house.index, walked, async () => {
          const step = steps.shift()
          if (step === undefined) return
          await house.apply(history.play(step))
          const now = select()
          for (const [id, place] of still) if (now.get(id) !== place) still.delete(id)
          for (const [id, place] of now) ever.set(id, (ever.get(id) ?? new Set()).add(place))
        })
        for (const id of still.keys()) {
          assert.equal(ids.filter((one) => one === id).length, 1, 'a row that stayed comes once')
        }
        for (const id of new Set(ids)) {
          const times = ids.filter((one) => one === id).length
          assert.ok(times <= (ever.get(id)?.size ?? 0), 'no row comes more often than it had places')
        }
        stayed += still.size
        await house.close()
      },
    ),
    { numRuns: 25 },
  )
  assert.ok(stayed > 0, `only ${stayed} rows stayed`)
})
