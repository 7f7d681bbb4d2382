import { strict as assert } from 'node:assert'
import t from 'tap'
import type { SegmentRow } from '../../src/index/segment-row.js'
import { scratch } from '../scratch.js'
import { compare, compareSome, merged, rowsOf, segmentOf } from './model.js'
import { hex, plain, plainRow, unique } from './rows.js'

const folder = scratch('index-bounds')
const count = 300

/** Rows, cut into three segments, then merged: each with all that is said of them. */
function eachWay(rows: readonly SegmentRow[], look: typeof compare = compare): void {
  const parts = [0, 1, 2].map((part) => rows.filter((_, at) => at % 3 === part))
  const segments = parts.map((part) => segmentOf(folder, part))
  for (const [at, segment] of segments.entries()) look(segment, parts[at] as SegmentRow[])
  const whole = merged(
    folder,
    segments.map((segment) => ({ segment })),
  )
  look(whole, rows)
  for (const segment of [...segments, whole]) segment.close()
}

/** Bytes that no text is, the same for the same number. */
function noise(number: number, size: number): Buffer {
  const bytes = Buffer.alloc(size)
  for (let at = 0, state = number + 1; at < size; at += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    bytes[at] = state >>> 24
  }
  return bytes
}

function rowsWith(more: (number: number) => Partial<SegmentRow>, length = count): SegmentRow[] {
  return Array.from({ length }, (_, number) => plainRow(number, more(number)))
}

t.test('128 tags of 3 KiB a row', async () => {
  const tags = (number: number) =>
    Array.from({ length: 128 }, (_, at) => ({ name: noise(at, 1024), value: noise(number * 128 + at, 2048) }))
  const rows = rowsWith((number) => ({ tags: tags(number) }), 9)
  const segments = [segmentOf(folder, rows.slice(0, 5)), segmentOf(folder, rows.slice(3))]
  const whole = merged(
    folder,
    segments.map((segment) => ({ segment })),
  )
  for (const [number, row] of unique(rows).entries()) {
    assert.deepEqual(plain(whole.row(number)), plain(row))
    const { name, value } = row.tags[77]!
    assert.deepEqual(rowsOf(whole, name, value), [number])
  }
})

t.test('words that begin with each other, and words of zeros', async () => {
  eachWay(
    rowsWith(
      (number) => ({
        tags: [
          { name: Buffer.from('n'), value: Buffer.alloc(number % 40) },
          { name: Buffer.from('n'), value: Buffer.alloc(number, 'a') },
          { name: Buffer.alloc(number % 200, 'n'), value: Buffer.alloc(0) },
        ],
      }),
      240,
    ),
  )
})

t.test('names and values of no UTF-8', async () => {
  eachWay(
    rowsWith((number) => ({ tags: [{ name: noise(number % 7, 9), value: noise(number, number % 50) }] })),
  )
})

t.test('one word in all rows, and a tag that a row has many times', async () => {
  const tag = { name: Buffer.from('same'), value: Buffer.from('same') }
  eachWay(rowsWith(() => ({ tags: [tag, tag, tag], owner: Buffer.alloc(32, 9) })))
})

t.test('all words new', async () => {
  eachWay(
    rowsWith((number) => ({
      owner: noise(number, 32),
      recipient: noise(number + 10_000, 32),
      place: { parent: noise(number + 20_000, 32), rootItemOffset: 5, parentItemOffset: 3, headerSize: 1 },
      tags: [{ name: noise(number, 8), value: noise(number, 20) }],
    })),
  )
})

t.test('rows without tags, and with a thousand', async () => {
  const tags = Array.from({ length: 1000 }, (_, at) => ({
    name: Buffer.from(`t${at}`),
    value: Buffer.from('v'),
  }))
  eachWay(
    rowsWith((number) => ({ tags: number % 100 === 0 ? tags : [] })),
    compareSome,
  )
})

t.test('heights in a hostile order, and the highest of all', async () => {
  eachWay(
    rowsWith((number) => ({
      height: number % 2 === 0 ? 0xfeff_ffff - number : number % 7,
      index: number % 3 === 0 ? 0x7f_ffff : number % 5,
      seenSeconds: number % 2 === 0 ? 0xffff_ffff : 0,
    })),
  )
})

t.test('ids that differ in the last byte, or in the last bits that a table knows', async () => {
  const id = (number: number): Buffer => {
    const bytes = Buffer.alloc(32, 0xab)
    if (number % 2 === 0) bytes.writeUInt16BE(number, 30)
    else bytes.writeUInt16BE(number, 4)
    return bytes
  }
  eachWay(rowsWith((number) => ({ id: id(number), height: 1000 - number })))
})

t.test('numbers of every size', async () => {
  const sizes = [0, 1, 127, 128, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER]
  eachWay(
    rowsWith((number) => {
      const size = sizes[number % sizes.length] as number
      const other = sizes[(number + 3) % sizes.length] as number
      if (number % 2 === 0) {
        const place = {
          parent: noise(number % 9, 32),
          rootItemOffset: size,
          parentItemOffset: other,
          headerSize: size,
        }
        return { size, place }
      }
      const transfer = {
        format: 2,
        quantity: 2n ** 200n + BigInt(number),
        reward: 0n,
        dataRoot: noise(number, 32),
        weaveEnd: other,
      }
      return {
        size,
        isItem: false,
        place: undefined,
        transfer,
        signature: noise(number, 512),
        isUnjudged: true,
      }
    }),
  )
})

t.test('no row at all', async (t) => {
  const empty = segmentOf(folder, [])
  t.equal(empty.count, 0)
  t.equal(empty.find(Buffer.alloc(32)), -1)
  t.equal(empty.list(Buffer.from('x')), undefined)
  const isRemoved = (): boolean => true
  const gone = merged(folder, [{ segment: empty }, { segment: segmentOf(folder, [plainRow(1)]), isRemoved }])
  t.equal(gone.count, 0)
  t.equal(gone.ownerKey(Buffer.alloc(32)), undefined)
})

t.test('an id that is in many segments is one row, where it comes first in the chain', async (t) => {
  const places = [9, 3, 7, 3, 12]
  const segments = places.map((height) =>
    segmentOf(folder, [
      plainRow(5, { height }),
      plainRow(6, { height }),
      plainRow(5, { height: height + 1 }),
    ]),
  )
  const whole = merged(
    folder,
    segments.map((segment) => ({ segment })),
  )
  t.equal(whole.count, 2)
  t.same([whole.row(0).height, whole.row(1).height], [3, 3])
  t.equal(hex(whole.row(whole.find(plainRow(5).id)).id), hex(plainRow(5).id))
})
