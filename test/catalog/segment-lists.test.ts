/** Lists of a segment: what a scan of one finds, and what two of them together make the index read. */
import t from 'tap'
import { Effort } from '../../src/catalog/effort.js'
import { localKey, localRow } from '../../src/catalog/local-key.js'
import { SegmentScan } from '../../src/catalog/row-scan.js'
import { BlockScan, listed, type Scan } from '../../src/catalog/scan.js'
import { SegmentListScan } from '../../src/catalog/segment-list-scan.js'
import { spanOf } from '../../src/catalog/segment-rows.js'
import { tagOf } from '../../src/format/tag.js'
import { tagKey } from '../../src/index/word-key.js'
import { rowsOf, segmentOf } from '../index/model.js'
import { plainRow } from '../index/rows.js'
import { fc } from '../property.js'
import { scratch } from '../scratch.js'

const rowCount = 4000
const text = (value: string): Buffer => Buffer.from(value)
const effort = (): Effort =>
  new Effort(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, { monotonic: () => 0 })

/** Half of the rows, without an order; one in `each`; neighbours; few. */
const kinds: Readonly<Record<string, (row: number) => boolean>> = {
  half: (row) => Math.imul(row, 0x9e37_79b1) < 0,
  tenth: (row) => Math.imul(row, 0x85eb_ca6b) >>> 0 < 2 ** 32 / 10,
  neighbours: (row) => row >= 1000 && row < 1600,
  few: (row) => row % 900 === 7,
}

function segment() {
  const rows = Array.from({ length: rowCount }, (_, at) => {
    const tags = Object.entries(kinds).flatMap(([name, has]) => (has(at) ? [tagOf('Kind', name)] : []))
    return plainRow(at, { height: at, index: 0, tags })
  })
  return segmentOf(scratch('index'), rows)
}

const step = fc.oneof(
  fc.record({ kind: fc.constant('seek' as const), row: fc.nat(rowCount + 5) }),
  fc.record({ kind: fc.constant('leap' as const), row: fc.nat(200) }),
  fc.record({ kind: fc.constantFrom('next' as const, 'near' as const, 'count' as const), row: fc.nat(300) }),
)

t.test('a scan of a list stands where a scan of its keys does', async (t) => {
  const whole = segment()
  for (const name of Object.keys(kinds)) {
    const list = whole.list(tagKey(text('Kind'), text(name)))
    if (list === undefined) throw new Error('no list')
    const rows = rowsOf(whole, text('Kind'), text(name))
    t.equal(list.count, rows.length)
    fc.assert(
      fc.property(fc.boolean(), fc.array(step, { maxLength: 40 }), (backwards, steps) => {
        const one = new SegmentListScan(whole.reader(list), backwards, effort())
        const other = new BlockScan(listed(Buffer.concat(rows.map(localKey))), backwards)
        let at = backwards ? rowCount + 5 : 0
        const to = (row: number): void => {
          at = backwards ? Math.min(at, row) : Math.max(at, row)
          for (const scan of [one, other]) scan.seek(localKey(Math.max(0, at)))
        }
        to(at)
        for (const { kind, row } of steps) {
          if (other.row === undefined) break
          const here = localRow(other.row)
          if (kind === 'seek') to(row)
          else if (kind === 'leap') to(backwards ? here - row : here + row)
          else if (kind === 'near') one.isNear(localKey(Math.max(0, backwards ? here - row : here + row)))
          else if (kind === 'next') for (const scan of [one, other]) scan.next()
          else if (counted(one, backwards) !== counted(other, backwards)) return false
          at = other.row === undefined ? at : localRow(other.row)
          if (one.row === undefined || other.row === undefined) return one.row === other.row
          if (!one.row.equals(other.row)) return false
        }
        return true
      }),
      { numRuns: 300 },
    )
  }
  whole.close()
})

/** Rows that are counted up to the end of all lists, block by block. */
function counted(scan: Scan, backwards: boolean): number {
  const end = localKey(backwards ? 0 : rowCount)
  let count = 0
  while (scan.row !== undefined) {
    count += (scan as BlockScan).countBlock(end)
  }
  return count
}

t.test('of two tags only the rows of the page are read', async (t) => {
  const whole = segment()
  const live = { number: 1, segment: whole, isRemoved: undefined, span: spanOf(whole) }
  const tags = ['half', 'tenth'].map((name) => ({
    name: text('Kind'),
    values: [text(name)],
    match: 'is' as const,
  }))
  for (const backwards of [false, true]) {
    let read = 0
    const row = whole.row.bind(whole)
    whole.row = (number) => {
      read += 1
      return row(number)
    }
    const [first, last] = [Buffer.alloc(16), Buffer.alloc(16, 0xff)]
    const [start, end] = backwards ? [last, first] : [first, last]
    const scan = new SegmentScan(live, { tags }, { backwards, effort: effort(), start, end })
    scan.seek(start)
    const found: number[] = []
    for (; scan.key !== undefined && found.length < 100; scan.next()) found.push(scan.read().size)
    const both = Array.from({ length: rowCount }, (_, at) => at).filter(
      (at) => kinds.half?.(at) === true && kinds.tenth?.(at) === true,
    )
    t.same(found, (backwards ? both.reverse() : both).slice(0, 100))
    t.ok(read <= 103, `${read} rows were read for ${found.length}`)
    whole.row = row
  }
  whole.close()
})
