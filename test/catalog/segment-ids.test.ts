import t from 'tap'
import type { IndexSegments } from '../../src/catalog/index-segments.js'
import { SegmentIds } from '../../src/catalog/segment-ids.js'
import type { FoundInSegment, LiveSegment } from '../../src/catalog/segment-rows.js'
import { DamagedSegment } from '../../src/index/checked-file.js'

const idOf = (at: number): Buffer => {
  const id = Buffer.alloc(32)
  // Spread evenly, as ids are.
  for (let byte = 0; byte < 32; byte += 4) id.writeUInt32BE(Math.imul(at + byte + 1, 0x9e3779b1) >>> 0, byte)
  return id
}
const prefixOf = (id: Buffer): number => id.readUInt32BE(0) * 4096 + (id.readUInt16BE(4) >> 4)

/** A segment of ids that counts how many are read, and how often one is looked for. */
function counted(number: number, from: number, count: number) {
  const seen = { read: 0, looks: 0 }
  const places = new Map(Array.from({ length: count }, (_, at) => [idOf(from + at).toString('hex'), at]))
  const segment = {
    count,
    ids: {
      *entries() {
        for (let at = 0; at < count; at += 1) {
          seen.read += 1
          yield { prefix: prefixOf(idOf(from + at)), row: at }
        }
      },
    },
    find(id: Uint8Array) {
      seen.looks += 1
      return places.get(Buffer.from(id).toString('hex')) ?? -1
    },
  }
  const live = { number, segment, isRemoved: undefined, span: undefined } as unknown as LiveSegment
  return { live, seen }
}

/** `live`: gives another list whenever one of them is another. */
const over = (live: () => readonly LiveSegment[]): SegmentIds => {
  const find = (id: Uint8Array): FoundInSegment | undefined => {
    const found = [...live()].reverse().map((one) => ({ live: one, row: one.segment.find(id) }))
    return found.find(({ row }) => row >= 0)
  }
  return new SegmentIds({ all: live, find } as unknown as IndexSegments)
}

t.test('what segments have is remembered some ids at a time, and found meanwhile', async (t) => {
  const [one, other] = [counted(1, 0, 5000), counted(2, 10_000, 5000)]
  let live: readonly LiveSegment[] = [one.live]
  const ids = over(() => live)
  for (let at = 0; at < 20_001; at += 1) ids.find(idOf(50_000 + at))
  for (let step = 1; step <= 5; step += 1) {
    ids.tend(1000)
    t.ok(one.seen.read <= step * 1000 + 1, `${one.seen.read} ids are read in ${step} steps`)
    t.equal(ids.find(idOf(4999))?.row, 4999)
  }
  for (let step = 0; step < 3; step += 1) ids.tend(1000)
  const before = one.seen.looks
  for (let at = 0; at < 5000; at += 1) t.equal(ids.find(idOf(90_000 + at)), undefined)
  t.ok(one.seen.looks - before < 500, 'most absent ids are not looked for')

  // One more segment: what was remembered goes on to count.
  live = [one.live, other.live]
  t.equal(ids.find(idOf(10_001))?.live.number, 2)
  t.equal(ids.find(idOf(17))?.live.number, 1)
  for (let step = 0; step < 30; step += 1) ids.tend(1000)
  const looks = one.seen.looks + other.seen.looks
  for (let at = 0; at < 5000; at += 1) t.equal(ids.find(idOf(120_000 + at)), undefined)
  t.ok(one.seen.looks + other.seen.looks - looks < 1000)
  t.equal(ids.find(idOf(12_000))?.row, 2000)

  // Merged: not read a second time.
  const merged = counted(3, 0, 5000)
  live = [merged.live, other.live]
  ids.moved([1], [3])
  ids.tend(1000)
  t.equal(merged.seen.read, 0)
  t.equal(ids.find(idOf(17))?.live.number, 3)
})

t.test('a segment that cannot be read is looked into each time, and holds up no other', async (t) => {
  const [damaged, sound] = [counted(1, 0, 10), counted(2, 100, 10)]
  const broken = {
    ...damaged.live,
    segment: {
      count: 10,
      ids: {
        entries: () => ({
          next() {
            throw new DamagedSegment('segment-1', 3)
          },
        }),
      },
      find: () => 5,
    },
  } as unknown as LiveSegment
  const both = [broken, sound.live]
  const ids = over(() => both)
  for (let at = 0; at < 20_001; at += 1) ids.find(idOf(105))
  for (let step = 0; step < 5; step += 1) ids.tend(100)
  t.equal(sound.seen.read, 10)
  t.equal(ids.find(idOf(7_000))?.live.number, 1)
})
