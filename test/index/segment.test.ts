import { existsSync, readdirSync, rmSync } from 'node:fs'
import t from 'tap'
import { openFallback } from '../../native/mapped/mapped-fallback.js'
import { tagOf } from '../../src/format/tag.js'
import { writeBatch } from '../../src/index/batch-writer.js'
import { RowBatch } from '../../src/index/row-batch.js'
import type { Segment } from '../../src/index/segment.js'
import { mergeSegments } from '../../src/index/segment-merge.js'
import type { RowsWanted } from '../../src/index/segment-pages.js'
import type { SegmentRow } from '../../src/index/segment-row.js'
import { tagKey } from '../../src/index/word-key.js'
import { fc } from '../property.js'
import { scratch } from '../scratch.js'
import { compare, comparePages, compareSome, merged, newPath, opened, segmentOf } from './model.js'
import { plainRow, row, unique } from './rows.js'

const rows = fc.array(row, { maxLength: 60 })

/** Selections of what some of the rows have. */
function selections(all: readonly SegmentRow[]): RowsWanted[] {
  const some = all.slice(0, 6)
  const heights = some.map(({ height }) => height).sort((one, other) => one - other)
  const bounds = { minHeight: heights[1] ?? 0, maxHeight: heights.at(-2) ?? 0 }
  return [
    {},
    bounds,
    { bundledIn: null },
    { bundledIn: null, ...bounds },
    { owners: some.map(({ owner }) => owner) },
    { recipients: some.map(({ recipient }) => recipient).filter(({ length }) => length > 0) },
    ...some.flatMap(({ tags, owner, place }): RowsWanted[] => [
      { owners: [owner] },
      { owners: [owner], ...(place === undefined ? {} : { bundledIn: [place.parent] }) },
      { tags: tags.slice(0, 2).map(({ name, value }) => ({ name, values: [value] })) },
      {
        tags: tags.slice(0, 1).map(({ name }) => ({ name, values: tags.map(({ value }) => value) })),
        ...bounds,
      },
    ]),
  ]
}

t.test('a segment gives back every row, and finds rows by all that they have', async () => {
  const folder = scratch('index')
  fc.assert(
    fc.property(rows, (all) => {
      const segment = segmentOf(folder, all)
      compare(segment, all)
      for (const wanted of selections(all)) comparePages([segment], all, wanted, 3)
      // What machines without the addon do.
      const copied = opened(segment.file.path, openFallback)
      compare(copied, all)
      copied.close()
      segment.close()
    }),
    { numRuns: 100 },
  )
})

t.test('segments that are merged are what their rows are, each id once', async () => {
  const folder = scratch('index')
  fc.assert(
    fc.property(fc.array(rows, { minLength: 1, maxLength: 5 }), (parts) => {
      const segments = parts.map((part) => segmentOf(folder, part))
      const all = parts.flat()
      const once = merged(
        folder,
        segments.map((segment) => ({ segment })),
      )
      compare(once, all)
      const halves = [segments.slice(0, 2), segments.slice(2)].filter(({ length }) => length > 0)
      const twice = merged(
        folder,
        halves.map((half) => ({
          segment: merged(
            folder,
            half.map((segment) => ({ segment })),
          ),
        })),
      )
      compare(twice, all)
      for (const wanted of selections(all)) comparePages([twice], all, wanted, 7)
      for (const segment of [...segments, once, twice]) segment.close()
    }),
    { numRuns: 25 },
  )
})

t.test('pages of several segments are one list in the order of the chain', async () => {
  const folder = scratch('index')
  fc.assert(
    fc.property(fc.array(rows, { minLength: 1, maxLength: 4 }), (parts) => {
      // An id twice is one row only once segments are merged, or where both say the same.
      const kept = new Set(unique(parts.flat()))
      const segments = parts.map((part) =>
        segmentOf(
          folder,
          part.filter((one) => kept.has(one)),
        ),
      )
      for (const wanted of selections(parts.flat())) comparePages(segments, [...kept], wanted, 4)
      for (const segment of segments) segment.close()
    }),
    { numRuns: 25 },
  )
})

t.test('a word that each of several segments has in one row gets a number by their merge', async (t) => {
  const folder = scratch('index')
  const tag = { name: Buffer.from('Folder'), value: Buffer.from('0b9a5c6e-0d2f-4b52-8f0e-0c8f6d2c9a11') }
  const parts = [1, 2, 3].map((number) =>
    plainRow(number, { tags: [tag, tag, tagOf('Number', String(number))] }),
  )
  const segments = parts.map((one) => segmentOf(folder, [one]))
  const key = tagKey(tag.name, tag.value)
  t.equal(segments[0]?.rows.keyStarting(0, key)?.equals(key), true)
  const sources = segments.map((segment) => ({ segment }))
  const whole = merged(folder, sources)
  compare(whole, parts)
  const { segment } = sources[0] as { segment: Segment }
  // It has the tag twice: the merge found the first one.
  t.ok(bytesOf(whole, 0) < bytesOf(segment, 0))
  t.equal(whole.words.find(key)?.mayBe, false)
})

/** Bytes of a row. */
function bytesOf({ rows }: Segment, row: number): number {
  rows.load(row)
  return rows.end - rows.idAt
}

t.test('rows that were removed leave with a merge', async () => {
  const folder = scratch('index')
  fc.assert(
    fc.property(rows, rows, fc.nat(3), (one, other, every) => {
      const segments = [segmentOf(folder, one), segmentOf(folder, other)]
      const isRemoved = (row: number): boolean => row % (every + 1) === 0
      const left = unique(one).filter((_, row) => !isRemoved(row))
      const whole = merged(folder, [{ segment: segments[0]!, isRemoved }, { segment: segments[1]! }])
      compare(whole, [...left, ...other])
      for (const segment of [...segments, whole]) segment.close()
    }),
    { numRuns: 25 },
  )
})

t.test('public keys are found by their addresses, each once', async (t) => {
  const folder = scratch('index')
  const addresses = Array.from({ length: 50 }, (_, at) => Buffer.alloc(32, at * 5))
  const paths = [0, 1].map((part) => {
    const batch = new RowBatch()
    for (const [at, address] of addresses.entries()) {
      if (at % 3 !== part) batch.addOwnerKey(address, Buffer.alloc(at * 40, at))
    }
    const path = newPath(folder)
    writeBatch(batch, path)
    return path
  })
  const whole = merged(
    folder,
    paths.map((path) => ({ segment: opened(path) })),
  )
  t.equal(whole.footer.keyCount, 50)
  for (const [at, address] of addresses.entries()) {
    t.same(whole.ownerKey(address), Buffer.alloc(at * 40, at))
  }
  t.equal(whole.ownerKey(Buffer.alloc(32, 1)), undefined)
})

t.test('a merge that is ended early leaves nothing', async (t) => {
  const folder = scratch('index')
  const many = Array.from({ length: 9000 }, (_, at) => plainRow(at))
  const segments = [segmentOf(folder, many.slice(0, 5000)), segmentOf(folder, many.slice(4000))]
  const before = readdirSync(folder).length
  const path = newPath(folder)
  const sources = segments.map((segment) => ({ segment }))
  let pauses = 0
  for (const merging = mergeSegments(sources, path); merging.next().done !== true; ) pauses += 1
  t.ok(pauses > 5)
  compareSome(opened(path), many)
  rmSync(path)
  for (let stop = 0; stop < pauses; stop += 1) {
    const merging = mergeSegments(sources, path)
    for (let step = 0; step <= stop; step += 1) merging.next()
    merging.return({ rows: 0, bytes: 0 })
    t.notOk(existsSync(path))
    t.equal(readdirSync(folder).length, before, `after ${stop} pauses`)
  }
})
