import { ok } from 'node:assert/strict'
import t from 'tap'
import { parseRange } from '../../src/format/range.js'
import { fc } from '../property.js'

const ranges = (...pairs: [number, number][]) => ({
  kind: 'ranges',
  ranges: pairs.map(([start, end]) => ({ start, end })),
})
const whole = (why: string) => ({ kind: 'none', why })
const malformed = { kind: 'malformed' }
const unsatisfiable = { kind: 'unsatisfiable' }

const cases: readonly (readonly [field: string | undefined, size: number, answer: object])[] = [
  [undefined, 10, whole('absent')],
  ['bytes=0-0', 10, ranges([0, 0])],
  ['bytes=0-', 10, ranges([0, 9])],
  ['bytes=2-4', 10, ranges([2, 4])],
  ['bytes=2-400', 10, ranges([2, 9])],
  ['bytes=9-9', 10, ranges([9, 9])],
  ['bytes=10-', 10, unsatisfiable],
  ['bytes=-3', 10, ranges([7, 9])],
  ['bytes=-30', 10, ranges([0, 9])],
  ['bytes=-0', 10, unsatisfiable],
  ['bytes=0-', 0, unsatisfiable],
  ['bytes=-5', 0, unsatisfiable],
  ['BYTES=1-2', 10, ranges([1, 2])],
  ['bytes=0-1,4-5', 10, ranges([0, 1], [4, 5])],
  ['bytes=4-5,0-1', 10, ranges([4, 5], [0, 1])],
  ['bytes=0-1 ,\t4-5', 10, ranges([0, 1], [4, 5])],
  ['bytes= 0-1', 10, ranges([0, 1])],
  ['bytes=,0-1,,', 10, ranges([0, 1])],
  ['bytes=0-1,20-30', 10, ranges([0, 1])],
  ['bytes=0-0,0-0', 10, ranges([0, 0], [0, 0])],
  ['bytes=0-,0-', 10, whole('flood')],
  ['bytes=0-8,1-2', 10, whole('flood')],
  ['bytes=00000000000000000000000000000000000002-3', 10, ranges([2, 3])],
  ['bytes=2-99999999999999999999999999999999999999', 10, ranges([2, 9])],
  ['bytes=99999999999999999999999999999999999999-', 10, unsatisfiable],
  ['bytes=-99999999999999999999999999999999999999', 10, ranges([0, 9])],
  [`bytes=0-${'9'.repeat(400)}`, 10, ranges([0, 9])],
  ['bytes=99999999999999999999999999999999999999-99999999999999999999999999999999999998', 10, malformed],
  ['items=0-1', 10, whole('unit')],
  ['=0-1', 10, whole('unit')],
  ['bytes', 10, malformed],
  ['', 10, malformed],
  ['bytes=', 10, malformed],
  ['bytes=,', 10, malformed],
  ['bytes=-', 10, malformed],
  ['bytes=a-b', 10, malformed],
  ['bytes=5-3', 10, malformed],
  ['bytes=0-1,5-3', 10, malformed],
  ['bytes=+1-2', 10, malformed],
  ['bytes=1 - 2', 10, malformed],
  ['bytes=1--2', 10, malformed],
  ['bytes=0x1-2', 10, malformed],
  ['bytes=1.0-2', 10, malformed],
  ['bytes=1-2;3-4', 10, malformed],
  ['bytes=\u00a01-2', 10, malformed],
]

for (const [field, size, answer] of cases) {
  t.test(
    `${JSON.stringify(field)?.slice(0, 60)} of ${size} bytes is ${JSON.stringify(answer)}`,
    async (t) => {
      t.strictSame(parseRange(field, size), answer)
    },
  )
}

t.test("a flood of small ranges is answered whole, and the cap is the caller's", async (t) => {
  const field = `bytes=${Array.from({ length: 65 }, (_, i) => `${i * 2}-${i * 2}`).join(',')}`
  t.strictSame(parseRange(field, 10_000), whole('flood'))
  t.equal(parseRange(field, 10_000, 65).kind, 'ranges')
})

t.test('long runs of blanks and commas take no time to speak of', async (t) => {
  const blanks = ' '.repeat(1_000_000)
  t.strictSame(parseRange(`bytes=${blanks}x`, 10), malformed)
  t.strictSame(parseRange(`bytes=0-1${blanks}x`, 10), malformed)
  t.strictSame(parseRange(`bytes=${','.repeat(1_000_000)}1-2`, 10), ranges([1, 2]))
})

t.test('every answer lies inside the representation and never exceeds it', async (t) => {
  const number = fc.oneof(fc.nat(30), fc.nat(), fc.constant(''))
  const spec = fc.tuple(number, number).map(([a, b]) => `${a}-${b}`)
  const field = fc.array(spec, { maxLength: 8 }).map((specs) => `bytes=${specs.join(',')}`)
  fc.assert(
    fc.property(field, fc.nat(40), (text, size) => {
      const answer = parseRange(text, size)
      if (answer.kind !== 'ranges') return
      let total = 0
      for (const { start, end } of answer.ranges) {
        ok(start >= 0 && start <= end && end < size)
        total += end - start + 1
      }
      ok(total <= size)
    }),
  )
  t.pass('held for every sample')
})
