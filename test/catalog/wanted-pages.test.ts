import t from 'tap'
import { openScattered } from '../../native/mapped/mapped.js'
import type { MappedFile } from '../../native/mapped/mapped-file.js'
import { endlessEffort } from '../../src/catalog/effort.js'
import { SegmentScan } from '../../src/catalog/row-scan.js'
import { spanOf } from '../../src/catalog/segment-rows.js'
import type { Selection } from '../../src/catalog/selection.js'
import { tagOf } from '../../src/format/tag.js'
import { pageBytes } from '../../src/index/checked-file.js'
import { opened, segmentOf } from '../index/model.js'
import { plainRow } from '../index/rows.js'
import { scratch } from '../scratch.js'

const rowCount = 24_000
const address = (number: number): Buffer => Buffer.alloc(32, Math.imul(number + 1, 0x9e37_79b1).toString(16))

/** Owners with 160 rows each, some with one; recipients with twelve; a tag that half of them have, and values of their own. */
const rows = Array.from({ length: rowCount }, (_, number) =>
  plainRow(number, {
    owner: address(number % 2000 === 7 ? 10_000 + number : number % 150),
    recipient: address(2000 + (number % 2000)),
    tags: [
      tagOf('App', `app-${number % 40}`),
      tagOf('Half', number % 2 === 0 ? 'yes' : 'no'),
      tagOf('File', address(50_000 + number).toString('base64url')),
      tagOf('Name', `report-${number}`),
    ],
  }),
)
const { path } = segmentOf(scratch('wanted-pages'), rows).file

/** A file of which nothing is in memory: counts pages that are read for the first time and were not wanted before. */
function cold() {
  const [wanted, read] = [new Set<number>(), new Set<number>()]
  let unwanted = 0
  const openFile = (name: string): MappedFile | undefined => {
    const file = openScattered(name)
    if (file === undefined) return undefined
    const { sizeBytes, inode, modifiedNs } = file
    return {
      sizeBytes,
      inode,
      modifiedNs,
      isResident: () => false,
      view: (start, end) => file.view(start, end),
      copy(start, target) {
        for (let page = Math.floor(start / pageBytes); page * pageBytes < start + target.length; page += 1) {
          if (!read.has(page) && !wanted.has(page)) unwanted += 1
          read.add(page)
        }
        return file.copy(start, target)
      },
      ahead(ranges) {
        for (let at = 0; at < ranges.length; at += 2) {
          const end = Math.min(ranges[at + 1] as number, sizeBytes)
          for (let page = Math.floor((ranges[at] as number) / pageBytes); page * pageBytes < end; page += 1)
            wanted.add(page)
        }
      },
      readThrough: () => file.readThrough(),
      fetch: (start, end) => file.fetch(start, end),
      close: () => file.close(),
    }
  }
  const segment = opened(path, openFile)
  const openingUnwanted = unwanted
  return { segment, waits: () => unwanted - openingUnwanted, pages: () => read.size }
}

const tag = (name: string, value: string) => ({
  name: Buffer.from(name),
  values: [Buffer.from(value)],
  match: 'is' as const,
})
const pages: Readonly<Record<string, Selection>> = {
  tag: { tags: [tag('App', 'app-7')] },
  owner: { owners: [address(77)] },
  'owner of one row': { owners: [address(10_000 + 2007)] },
  recipient: { recipients: [address(2000 + 1234)] },
  'two tags': { tags: [tag('App', 'app-8'), tag('Half', 'yes')] },
  'owner and tag': { owners: [address(78)], tags: [tag('App', 'app-8')] },
  'tag of one row': { tags: [tag('Name', 'report-9999')] },
  all: {},
}

t.test('a cold page of results reads no page that was not wanted before', async (t) => {
  for (const [kind, wanted] of Object.entries(pages)) {
    for (const backwards of [true, false]) {
      const { segment, waits, pages: pagesRead } = cold()
      const live = { number: 1, segment, isRemoved: undefined, span: spanOf(segment) }
      if (live.span === undefined) throw new Error('the segment has no rows')
      const { first, last } = live.span
      const [start, end] = backwards ? [last, first] : [first, last]
      const scan = new SegmentScan(live, wanted, {
        backwards,
        effort: endlessEffort(),
        start,
        end,
        ahead: 101,
      })
      const found: number[] = []
      scan.seek(start)
      for (let { key } = scan; key !== undefined && found.length < 100; key = scan.key) {
        found.push(scan.read().size)
        scan.next()
      }
      t.ok(found.length > 0, `${kind}: there are rows`)
      const all = pagesRead()
      t.equal(waits(), 0, `${kind}, ${backwards ? 'newest' : 'oldest'} first: of ${all} pages`)
      segment.close()
    }
  }
})

t.test('rows that were read are not read again', async (t) => {
  const { segment } = cold()
  const looked = Uint32Array.from({ length: 100 }, (_, at) => at * 200)
  t.ok(segment.isNew(200), 'where a row begins was not read')
  segment.ahead(looked)
  for (const row of looked) segment.row(row)
  const { checks } = segment.file
  segment.ahead(looked)
  t.equal(segment.file.checks, checks, 'nothing is read again')
  t.notOk(segment.isNew(200), 'where it begins was read')
  segment.close()
})
