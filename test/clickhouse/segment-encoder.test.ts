import t from 'tap'
import { type LiveSegment, rowOf } from '../../src/catalog/segment-rows.js'
import { RowBinaryWriter } from '../../src/clickhouse/row-binary.js'
import { SegmentEncoder } from '../../src/clickhouse/segment-encoder.js'
import { writeRow } from '../../src/clickhouse/stable-row.js'
import type { Segment } from '../../src/index/segment.js'
import { merged, segmentOf } from '../index/model.js'
import { plainRow, row, unique } from '../index/rows.js'
import { fc } from '../property.js'
import { scratch } from '../scratch.js'

const folder = scratch('segment-encoder')
const block = { id: Buffer.alloc(48, 1), previous: Buffer.alloc(48, 2), timestamp: 1_700_000_000 }
const blockText = new RowBinaryWriter(256)
blockText.bytes(block.id)
blockText.u32(block.timestamp)
blockText.bytes(block.previous)
const insertedSeconds = 1_800_000_000

/** A key that is another one for each address, and none for some. */
function keyOf(owner: Uint8Array): Buffer {
  return (owner[0] ?? 0) % 3 === 0 ? Buffer.alloc(0) : Buffer.alloc(33, owner[0])
}

function text(bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(bytes.length), bytes])
}

/** What each row is written as: without an object, and by its object. */
function* bothWays(segment: Segment): Generator<[fast: string, plain: string]> {
  const live: LiveSegment = { number: 0, segment, isRemoved: undefined, span: undefined }
  const encoder = new SegmentEncoder(segment, ({ bytes, from, to }) =>
    text(keyOf(bytes.subarray(from + 1, to))),
  )
  const [fast, plain] = [new RowBinaryWriter(64), new RowBinaryWriter(64)]
  for (let number = 0; number < segment.count; number += 1) {
    const one = rowOf(live, number)
    const root = Buffer.alloc(number % 4 === 0 ? 0 : 32, number)
    const hasKey = one.signatureType !== undefined && one.signatureType !== 1
    const ownerKey = hasKey ? keyOf(one.owner) : Buffer.alloc(0)
    fast.reset()
    plain.reset()
    const { height, place, seenSeconds } = segment.groups.of(number)
    encoder.load(number)
    const about = { block: blockText.written, root: text(root), insertedSeconds }
    const isWritten = encoder.write(fast, height, place, seenSeconds, about)
    const isMeant = writeRow(plain, one, { block, root, ownerKey, insertedSeconds })
    yield [`${isWritten} ${fast.written.toString('hex')}`, `${isMeant} ${plain.written.toString('hex')}`]
  }
}

t.test('rows of segments are written as rows are', (t) => {
  const agree = fc.property(fc.array(row, { minLength: 1, maxLength: 30 }), (rows) => {
    const all = unique(rows)
    const whole = segmentOf(folder, all)
    const half = [all.filter((_, at) => at % 2 === 0), all.filter((_, at) => at % 2 === 1)]
    const parts = half.filter((some) => some.length > 0).map((some) => segmentOf(folder, some))
    const joined = merged(
      folder,
      parts.map((segment) => ({ segment })),
    )
    for (const segment of [whole, joined])
      for (const [fast, plain] of bothWays(segment)) if (fast !== plain) return false
    return true
  })
  fc.assert(agree, { numRuns: 60 })
  t.end()
})

t.test('also where words are more than are kept, and longer', (t) => {
  const long = Buffer.alloc(6000, 'long')
  const rows = Array.from({ length: 3000 }, (_, number) =>
    plainRow(number, {
      tags: [
        { name: Buffer.from('content-TYPE'), value: Buffer.from(`text/${Math.floor(number / 2)}`) },
        { name: Buffer.from('Content-Type'), value: Buffer.from('second') },
        { name: Buffer.alloc(200, 'n'), value: Buffer.alloc(3000, String(Math.floor(number / 2))) },
        { name: Buffer.from('Long'), value: long },
      ],
    }),
  )
  let count = 0
  for (const [fast, plain] of bothWays(segmentOf(folder, unique(rows)))) {
    if (fast === plain) count += 1
  }
  t.equal(count, 3000)
  t.end()
})
