import t from 'tap'
import { joinedHeights, withHeights } from '../../src/clickhouse/heights.js'
import { fc } from '../property.js'

const heights = fc
  .tuple(fc.nat(12), fc.nat(12), fc.option(fc.nat(100), { nil: undefined }))
  .map(([from, more, rows]) => ({ from, to: from + more, rows }))

t.test('what is recorded with the heights of before is what readers join of the two', async () => {
  const agree = fc.property(heights, heights, (before, added) => {
    const whole = { ...before, version: 1 }
    const recorded = withHeights(whole, added, 2)
    // Of two records that begin at one height readers take the newer.
    const kept = recorded.from === before.from ? [recorded] : [whole, recorded]
    const seen = joinedHeights(kept)
    const right = joinedHeights([whole, { ...added, version: 2 }])
    const touch = added.from <= before.to + 1 && before.from <= added.to + 1
    const exact = added.from > before.to || before.from > added.to ? sum(added.rows, before.rows) : undefined
    return (
      seen?.from === right?.from &&
      seen?.to === right?.to &&
      (touch ? recorded.rows === exact : recorded.rows === added.rows)
    )
  })
  fc.assert(agree)
})

function sum(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : one + other
}
