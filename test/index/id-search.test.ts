import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { openFallback } from '../../native/mapped/mapped-fallback.js'
import { DamagedSegment, type MappedPart, pageBytes } from '../../src/index/checked-file.js'
import { IdSearch } from '../../src/index/id-search.js'
import type { Segment } from '../../src/index/segment.js'
import { scratch } from '../scratch.js'
import { opened, segmentOf } from './model.js'
import { plainRow } from './rows.js'

const folder = scratch('index-ids')

/** Ids that begin with the same `same` bytes: all in one bucket, with the same bits in their entries. */
function idsAlike(count: number, same: number): Buffer[] {
  return Array.from({ length: count }, (_, number) => {
    const id = Buffer.alloc(32, 0xee)
    id.writeUInt32BE(number, same)
    return id
  })
}

function withIds(first: number, ids: readonly Buffer[]): Segment {
  return segmentOf(
    folder,
    ids.map((id, at) => plainRow(first + at, { id })),
  )
}

const spread = (first: number, count: number): Buffer[] =>
  Array.from({ length: count }, (_, at) => Buffer.from(plainRow(first + at).id))

const parts = [
  spread(0, 3000),
  spread(3000, 400),
  spread(4000, 5),
  [],
  idsAlike(200, 8),
  [...spread(5000, 500), ...idsAlike(3, 20)],
]
const segments = parts.map((ids, at) => withIds(at * 10_000, ids))
const absent = [...spread(90_000, 500), ...idsAlike(2, 24), Buffer.alloc(32), Buffer.alloc(32, 0xff)]

/** Compares what a search of all says with a search of each; how many segments it left to be looked into. */
function compareAll(search: IdSearch, all: readonly Segment[]): number {
  let looks = 0
  for (const id of [...parts.flat(), ...absent]) {
    search.begin(id)
    for (const [at, segment] of all.entries()) {
      const mayHave = search.mayHave(at)
      if (mayHave) looks += 1
      else if (segment.find(id) >= 0) throw new Error(`an id of segment ${at} was not found`)
    }
  }
  return looks
}

t.test(
  'a search in all segments at once leaves out no segment that has the id, and most others',
  async (t) => {
    const search = new IdSearch(segments)
    compareAll(search, segments)
    // Before this no page was compared with its checksum, and each segment had to be looked into.
    for (const segment of segments) t.same([...segment.damaged()], [])
    const small = parts.filter(({ length }) => length < 17).length
    const ids = parts.flat().length + absent.length
    t.ok(
      compareAll(search, segments) < (small + 1) * ids + 500,
      'of the larger ones, one or none for each id',
    )
  },
)

t.test('it says of no segment without mapped memory that it lacks an id', async (t) => {
  const copies = segments.map(({ file }) => opened(file.path, openFallback))
  const search = new IdSearch(copies)
  t.equal(compareAll(search, copies), (parts.flat().length + absent.length) * segments.length)
  for (const copy of copies) copy.close()
})

t.test('no byte is read of a page that was not compared with its checksum', (t) => {
  const unread = new Set<string>()
  // Reads of such a page end the program where its disk fails.
  const watched = (segment: Segment): Segment => {
    const part = (start: number, end: number): MappedPart | undefined => {
      const found = segment.file.part(start, end)
      if (found === undefined) return undefined
      const get = (bytes: Uint8Array, index: string): unknown => {
        const page = found.page + Math.floor(Number(index) / pageBytes)
        if (found.sound[page] !== 1) unread.add(`page ${page} of ${segment.file.path}`)
        return bytes[Number(index)]
      }
      return { ...found, bytes: new Proxy(found.bytes, { get }) }
    }
    const file = {
      part,
      want: (start: number, end: number) => segment.file.want(start, end),
      at: (start: number, end: number) => segment.file.at(start, end),
      get bytes() {
        return segment.file.bytes
      },
    }
    return Object.create(segment, { file: { value: file } }) as Segment
  }
  // The last one has many ids in one bucket, and none in the others.
  for (const { file } of [...segments, withIds(100_000, idsAlike(3000, 8))]) {
    const pages = Array.from({ length: file.pages }, (_, page) => page)
    for (const order of [pages, [...pages].reverse()]) {
      const copy = opened(file.path)
      const search = new IdSearch([watched(copy)])
      for (const page of order) {
        copy.file.check(page)
        for (const id of absent) {
          search.begin(id)
          search.mayHave(0)
        }
      }
      copy.close()
    }
  }
  t.same([...unread], [])
  t.end()
})

t.test('a damaged page of ids is never believed', async (t) => {
  const [whole] = segments as [Segment]
  const bytes = readFileSync(whole.file.path)
  for (const place of [whole.footer.ids, whole.footer.buckets]) {
    const path = `${whole.file.path}-damaged`
    const damaged = Buffer.from(bytes)
    damaged[place + 5] = (damaged[place + 5] as number) ^ 4
    writeFileSync(path, damaged)
    const segment = opened(path)
    t.same([...segment.damaged()], [Math.floor((place + 5) / pageBytes)])
    const search = new IdSearch([segment])
    let seen = 0
    for (const [row, id] of (parts[0] as Buffer[]).entries()) {
      search.begin(id)
      if (!search.mayHave(0)) t.fail(`row ${row} was left out`)
      try {
        if (segment.idOf(segment.find(id)).equals(id)) continue
        t.fail(`row ${row} is another one`)
      } catch (error) {
        if (!(error instanceof DamagedSegment)) throw error
        seen += 1
      }
    }
    t.ok(seen > 0, 'some ids could not be looked for')
    segment.close()
  }
})
