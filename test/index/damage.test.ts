import { strict as assert } from 'node:assert'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DamagedSegment, pageBytes } from '../../src/index/checked-file.js'
import { salvagedRows } from '../../src/index/salvaged-rows.js'
import { Segment } from '../../src/index/segment.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'
import { segmentOf } from './model.js'
import { plain, plainRow, unique } from './rows.js'

const folder = scratch('index-damage')
const rows = unique(Array.from({ length: 1000 }, (_, number) => plainRow(number)))
const sound = segmentOf(folder, rows)
const bytes = readFileSync(sound.file.path)
const truth = rows.map(plain)

/** Reads all that a segment has, and compares each with the truth; whether something was called damaged. */
function readAll(path: string): boolean {
  let segment: Segment | undefined
  let isDamaged = false
  const attempt = (read: () => void): void => {
    try {
      read()
    } catch (error) {
      if (!(error instanceof DamagedSegment)) throw error
      isDamaged = true
    }
  }
  attempt(() => {
    segment = Segment.open(path)
  })
  if (segment === undefined) return isDamaged
  const found = segment
  for (const [number, row] of rows.entries()) {
    attempt(() => assert.deepEqual(plain(found.row(number)), truth[number]))
    attempt(() => assert.equal(found.find(row.id), number))
    const tag = row.tags[2]!
    attempt(() =>
      found.tags(tag.name, tag.value, (value, list) => {
        assert.deepEqual(value, Buffer.from(tag.value))
        const reader = found.reader(list)
        reader.load(0)
        assert.equal(reader.rows[0], number)
        return true
      }),
    )
  }
  attempt(() => {
    if ([...found.damaged()].length > 0) isDamaged = true
  })
  found.close()
  return isDamaged
}

t.test('a sound segment is not called damaged', async (t) => {
  t.notOk(readAll(sound.file.path))
})

t.test('a flipped bit in any part is found, and nothing wrong is ever read', async (t) => {
  const ends = Object.entries(sound.sizes())
  let start = 0
  const places: number[] = []
  for (const [, size] of ends) {
    for (let some = 0; some < 3 && size > 0; some += 1) places.push(start + Math.floor(random() * size))
    start += size
  }
  t.equal(start, bytes.length)
  for (const place of places) {
    const flipped = Buffer.from(bytes)
    flipped[place] = (flipped[place] as number) ^ (1 << Math.floor(random() * 8))
    const path = join(folder, `flipped-${place}`)
    writeFileSync(path, flipped)
    t.ok(readAll(path), `byte ${place}`)
  }
})

t.test('a segment that was cut off, or is another file, is not opened', async (t) => {
  for (const size of [0, 1, 255, 256, 4096, bytes.length - 1, bytes.length - 256, bytes.length >> 1]) {
    const path = join(folder, `cut-${size}`)
    writeFileSync(path, bytes.subarray(0, size))
    t.throws(() => Segment.open(path), DamagedSegment, `${size} bytes`)
  }
  t.equal(Segment.open(join(folder, 'nowhere')), undefined)
})

t.test('a damaged page of the table of words hides the words of its own blocks only', async (t) => {
  const many = unique(
    Array.from({ length: 60_000 }, (_, number) => {
      const owner = Buffer.alloc(32)
      owner.writeUInt32BE(Math.imul(number >> 1, 0x9e37_79b1) >>> 0, 0)
      return plainRow(number, { owner, tags: [] })
    }),
  )
  const large = segmentOf(folder, many)
  const { wordBlocks, rows: end } = large.footer
  const pages = Math.floor((end - wordBlocks) / pageBytes)
  t.ok(pages > 2, `${pages} pages`)
  const flipped = readFileSync(large.file.path)
  const place = Math.floor((wordBlocks + end) / 2)
  flipped[place] = (flipped[place] as number) ^ 1
  const path = join(folder, 'damaged-table')
  writeFileSync(path, flipped)
  const damaged = Segment.open(path) as Segment
  let lost = 0
  let number = 0
  for (const one of salvagedRows(damaged)) {
    if ('lost' in one) lost += one.lost
    else assert.deepEqual(one.row.owner, many[number]?.owner)
    number += 1
  }
  t.equal(number, many.length)
  t.ok(lost > 0 && lost < (2 * many.length) / pages, `${lost} rows of ${many.length} are lost`)
})
