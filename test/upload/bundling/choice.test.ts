import t from 'tap'
import { idOfBytes } from '../../../src/format/id.js'
import { sha256 } from '../../../src/proof/digest.js'
import { chooseItems } from '../../../src/upload/bundling/choice.js'
import type { AcceptedItem } from '../../../src/upload/records/uploads.js'
import { fc } from '../../property.js'

function itemsOf(name: string, sizes: readonly number[]): AcceptedItem[] {
  return sizes.map((sizeBytes, at) => ({
    id: idOfBytes(sha256(Buffer.from(`${name} ${at}`))),
    headerSize: 10,
    owner: name,
    receivedMs: 1,
    deadlineHeight: 1,
    winc: '0',
    place: { file: 1, offset: 1000 * at, sizeBytes },
  }))
}

const rules = { itemsMax: 100, bytesMax: 10_000 }
const many = (count: number, size = 10): number[] => new Array<number>(count).fill(size)

t.test('what is paid for goes first, and a quarter is for free items', async (t) => {
  const count = (paid: number[], free: number[], isFreeOwed = false): [number, number, boolean, boolean] => {
    const lines = { paid: itemsOf('paid', paid), free: itemsOf('free', free) }
    const { items, isFull, isFreeOwed: isNext } = chooseItems(lines, rules, isFreeOwed)
    const of = (name: string): number => items.filter(({ owner }) => owner === name).length
    return [of('paid'), of('free'), isFull, isNext]
  }
  t.strictSame(count([], []), [0, 0, false, false])
  t.strictSame(count([10], many(5000)), [1, 99, true, false])
  t.strictSame(count(many(500), many(5000)), [75, 25, true, false])
  t.strictSame(count(many(500), [10]), [99, 1, true, false])
  t.strictSame(count(many(100), []), [100, 0, true, false])
  t.strictSame(count(many(99), []), [99, 0, false, false])
  t.strictSame(count(many(9, 2000), many(5000)), [3, 97, true, false], 'a quarter of the bytes, too')
  t.strictSame(count(many(2, 50_000), many(10)), [1, 0, true, true], 'a large item rides alone')
  t.strictSame(
    count(many(2, 50_000), many(10), true),
    [0, 10, true, false],
    'and the next bundle is of free ones',
  )
  t.strictSame(count([50_000], [], true), [1, 0, false, false])
})

t.test('a choice keeps its bounds, takes all that fits, and each line in its order', async () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 3000 }), { maxLength: 150 })
  fc.assert(
    fc.property(sizes, sizes, fc.boolean(), (paidSizes, freeSizes, isFreeOwed) => {
      const [paid, free] = [itemsOf('paid', paidSizes), itemsOf('free', freeSizes)]
      const { items, sizeBytes, isFull } = chooseItems({ paid, free }, rules, isFreeOwed)
      const isIn = new Set(items.map(({ id }) => id))
      const inOrder = [paid, free].every((line) => {
        const taken = line.filter(({ id }) => isIn.has(id)).length
        return line.slice(0, taken).every(({ id }) => isIn.has(id))
      })
      const sum = items.reduce((total, { place }) => total + place.sizeBytes, 0)
      const isWhole = items.length === paid.length + free.length
      return (
        inOrder &&
        sizeBytes === sum &&
        items.length <= rules.itemsMax &&
        (sizeBytes <= rules.bytesMax || items.length === 1) &&
        (isFull ? items.length > 0 : isWhole)
      )
    }),
    { numRuns: 200 },
  )
})
