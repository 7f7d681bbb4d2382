import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { FlushLimits } from '../../src/catalog/segment-upkeep.js'
import { fc } from '../property.js'
import { anySelection, anyStep, History, type Step } from './history.js'
import { filesOnly, openHouse, readAll, tireless } from './index-model.js'

/** Rows leave the tables after a few blocks, and segments are merged all the time. */
const anyFlush: fc.Arbitrary<FlushLimits> = fc.record({
  rows: fc.constantFrom(1, 3, 8),
  forkDepth: fc.constantFrom(0, 1, 4),
  rowsEach: fc.constantFrom(1, 3, 100),
  wordsEach: fc.constantFrom(1, 20, 1000),
  clearing: fc.constantFrom({ dropMax: 2, entriesEach: 3 }, { dropMax: 1000, entriesEach: 10 }),
  isLast: fc.boolean(),
  merges: fc.constantFrom({ segmentsAlike: 2, levelMax: 2 }, { segmentsAlike: 3, levelMax: 1 }),
})

const anyQuestion = fc.record({
  wanted: anySelection,
  limit: fc.integer({ min: 1, max: 9 }),
  backwards: fc.boolean(),
})

/** Segments that were seen, and tables that changed roles, so that the test proves something. */
let segments = 0
let swaps = 0
let moved = 0
let merged = 0
let removed = 0

t.test('rows that left the tables are found like all others, whatever happens to the chain', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyStep, { minLength: 5, maxLength: 60, size: 'max' }),
      fc.array(anyQuestion, { minLength: 5, maxLength: 12 }),
      fc.constantFrom(undefined, filesOnly),
      anyFlush,
      fc.array(fc.nat(8), { minLength: 1, maxLength: 20 }),
      async (steps: Step[], questions, spill, flush, pauses) => {
        const house = openHouse(spill, undefined, flush)
        const history = new History()
        for (const [at, step] of steps.entries()) {
          await house.apply(history.play(step))
          // Flushes and merges go on, by some steps.
          for (let turns = pauses[at % pauses.length] ?? 0; turns > 0; turns -= 1) await setImmediate()
          house.index.refresh()
          if ((house.tables.sets.state.frozen?.hiddenRows ?? 0) > 0) moved += 1
          const question = questions[at % questions.length]
          if (question !== undefined && at % 3 === 0) ask(question)
        }
        for (let turns = 0; turns < 40; turns += 1) await setImmediate()
        const live = house.tables.segments.all()
        segments += live.length
        swaps += house.tables.sets.state.swaps
        merged += live.filter(({ number }) => number > live.length).length
        removed += live.filter(({ isRemoved }) => isRemoved !== undefined).length
        for (const question of questions) ask(question)
        const { rows, pending } = house.index.counts()
        assert.equal(rows, history.model.rows.size)
        assert.equal(
          pending,
          [...history.model.rows.values()].filter(({ height }) => height === undefined).length,
        )
        await house.close()

        function ask({
          wanted,
          limit,
          backwards,
        }: typeof anyQuestion extends fc.Arbitrary<infer One> ? One : never) {
          const expected = history.model.select(wanted).map(({ id }) => id)
          if (backwards) expected.reverse()
          assert.deepEqual(readAll(house.index, wanted, backwards, limit), expected)
          assert.equal(house.index.count(wanted, tireless()), expected.length)
        }
      },
    ),
    { numRuns: 40 },
  )
  assert.ok(
    segments > 50 && merged > 10 && removed > 10 && swaps > 50 && moved > 10,
    `${segments} segments, ${merged} merged, ${removed} with removed rows, ${swaps} swaps, ${moved} looks at half-empty tables`,
  )
})
