import t from 'tap'
import { FileResidence, windowBytes } from '../../src/store/file-residence.js'
import { Ticks } from '../../src/store/residence.js'
import { fc } from '../property.js'

const page = 4096

/** A file of which the system has these pages in memory, and what it was asked for. */
function fileOf(sizeBytes: number, pages: ReadonlySet<number>) {
  const calls: (readonly [start: number, end: number, fill: boolean])[] = []
  const isResident = (start: number, end: number, fill: boolean): boolean => {
    calls.push([start, end, fill])
    for (let at = Math.floor(start / page); at * page < end; at += 1) if (!pages.has(at)) return false
    return true
  }
  return { calls, file: { sizeBytes, isResident } }
}

function pagesTo(end: number): Set<number> {
  return new Set(Array.from({ length: Math.ceil(end / page) }, (_, at) => at))
}

t.test('where all of a window is in memory, two questions are enough for all of it', async (t) => {
  const ticks = new Ticks()
  const { calls, file } = fileOf(windowBytes + 100, pagesTo(windowBytes + 100))
  const residence = new FileResidence(file, ticks)
  t.ok(residence.has(5000, 6000))
  t.ok(residence.has(windowBytes - 1, windowBytes))
  t.same(calls.splice(0), [
    [5000, 6000, false],
    [0, windowBytes, true],
  ])
  t.ok(residence.has(windowBytes - 10, windowBytes + 10), 'of two windows the second is asked for')
  t.same(calls.splice(0), [
    [windowBytes - 10, windowBytes + 10, false],
    [0, windowBytes, false],
    [windowBytes, windowBytes + 100, true],
  ])
  for (let tick = 0; tick < Ticks.lasting; tick += 1) ticks.next()
  t.ok(residence.has(0, 1))
  t.equal(calls.length, 2, 'it is believed for so long')
})

t.test('of a window that is not all in memory only what is read is asked for', async (t) => {
  const ticks = new Ticks()
  const { calls, file } = fileOf(windowBytes, new Set([3, 7]))
  const residence = new FileResidence(file, ticks)
  t.notOk(residence.has(0, 1))
  t.equal(calls.splice(0).length, 1, 'nothing around what is not there')
  t.ok(residence.has(3 * page, 4 * page))
  t.equal(calls.splice(0).length, 2, 'the window was tried')
  t.ok(residence.has(3 * page, 4 * page))
  t.equal(calls.length, 0)
  t.ok(residence.has(7 * page + 9, 7 * page + 10))
  t.same(calls.splice(0), [[7 * page + 9, 7 * page + 10, false]], 'and is not tried again')
  for (let tick = 0; tick < Ticks.lasting; tick += 1) ticks.next()
  t.ok(residence.has(7 * page, 8 * page))
  t.equal(calls.length, 2, 'until that is old')
})

t.test('what is said to be there is there', async (t) => {
  const sizeBytes = 2 * windowBytes + 5000
  const pageCount = Math.ceil(sizeBytes / page)
  const reads = fc.array(fc.tuple(fc.nat(sizeBytes - 1), fc.integer({ min: 1, max: 20_000 })), {
    maxLength: 20,
  })
  const holes = fc.uniqueArray(fc.nat(pageCount - 1), { maxLength: 6 })
  fc.assert(
    fc.property(reads, holes, (asks, absent) => {
      const pages = pagesTo(sizeBytes)
      for (const hole of absent) pages.delete(hole)
      const { file } = fileOf(sizeBytes, pages)
      const residence = new FileResidence(file, new Ticks())
      for (const [start, length] of asks) {
        const end = Math.min(start + length, sizeBytes)
        const isThere = file.isResident(start, end, false)
        if (residence.has(start, end) !== isThere) throw new Error(`[${start}, ${end})`)
      }
    }),
  )
  t.pass('as the system says')
})
