import { readFileSync, writeFileSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import t from 'tap'
import { tagOf } from '../../src/format/tag.js'
import { DamagedSegment, pageBytes } from '../../src/index/checked-file.js'
import { footerBytes } from '../../src/index/footer.js'
import { salvagedRows } from '../../src/index/salvaged-rows.js'
import type { Segment } from '../../src/index/segment.js'
import { fieldKey, tagKey, wordField } from '../../src/index/word-key.js'
import { scratch } from '../scratch.js'
import { compareSome, merged, opened, segmentOf } from './model.js'
import { plainRow } from './rows.js'

const folder = scratch('word-tops')
const long = 'a name that is longer than what a top has of a word'

/** Rows with words of their own, of names of any length, and with words that two rows each have. */
const rows = Array.from({ length: 3000 }, (_, number) => {
  const owner = Buffer.alloc(32)
  owner.writeUInt32BE(Math.imul(number >> 1, 0x9e37_79b1) >>> 0, 0)
  const hash = (Math.imul(number, 0x85eb_ca6b) >>> 0).toString(16)
  const tags = [tagOf('N', hash), tagOf(long, `${number >> 1}`), tagOf(long, hash)]
  return plainRow(number, { owner, tags })
})
const segment = segmentOf(folder, rows)

/** The file as the version before had it: without tops. */
function asVersion2({ file, footer }: Segment): string {
  const bytes = readFileSync(file.path).subarray(0, footer.tops)
  const sums = Buffer.alloc(4 * Math.ceil(bytes.length / pageBytes))
  for (let page = 0; page * 4 < sums.length; page += 1) {
    sums.writeUInt32LE(crc32(bytes.subarray(page * pageBytes, (page + 1) * pageBytes)), page * 4)
  }
  const { tops, ...rest } = footer
  const end = Buffer.alloc(footerBytes)
  end.write('SLUICEIX', 'latin1')
  end.writeUInt32LE(2, 8)
  for (const [at, value] of Object.values(rest).entries()) {
    end.writeBigUInt64LE(BigInt(value === footer.end ? tops : value), 12 + at * 8)
  }
  end.writeUInt32LE(crc32(end.subarray(0, footerBytes - 4)), footerBytes - 4)
  const path = `${file.path}-2`
  writeFileSync(path, Buffer.concat([bytes, sums, end, end]))
  return path
}

const old = opened(asVersion2(segment))

t.test('words are found with tops of blocks where they are found without them', async (t) => {
  t.ok(segment.footer.end - segment.footer.tops >= 4 * 40, 'there are several tops')
  const keys = rows.flatMap(({ owner, tags }) => [
    fieldKey(wordField.owner, owner),
    ...tags.map(({ name, value }) => tagKey(name, value)),
  ])
  const between = keys.flatMap((key) => [key.subarray(0, -1), Buffer.concat([key, Buffer.of(0)])])
  const ends = [
    Buffer.alloc(0),
    Buffer.of(0),
    Buffer.alloc(60, 0xff),
    tagKey(Buffer.from(long), Buffer.alloc(0)),
  ]
  let different = 0
  for (const key of [...keys, ...between, ...ends]) {
    const place = ({ words }: Segment): string => {
      const found = words.floor(key)
      return found === undefined ? 'none' : `${found.block} ${found.word}`
    }
    if (place(segment) !== place(old)) different += 1
  }
  t.equal(different, 0)
  for (let number = 0; number < segment.footer.codedCount; number += 1) {
    if (!segment.words.key(number).equals(old.words.key(number))) different += 1
  }
  t.equal(different, 0)
})

t.test('a segment of the version before is read, and merged into one with tops', async (t) => {
  compareSome(old, rows)
  const half = segmentOf(folder, [plainRow(9000)])
  const both = merged(folder, [{ segment: old }, { segment: half }])
  compareSome(both, [...rows, plainRow(9000)])
  t.ok(both.footer.end > both.footer.tops)
})

t.test('a damaged top is never believed', async (t) => {
  const bytes = readFileSync(segment.file.path)
  for (let place = segment.footer.tops; place < segment.footer.end; place += 37) {
    const flipped = Buffer.from(bytes)
    flipped[place] = (flipped[place] as number) ^ 2
    const path = `${segment.file.path}-damaged`
    writeFileSync(path, flipped)
    const damaged = opened(path)
    const { owner } = rows[place % rows.length] as (typeof rows)[0]
    t.throws(() => damaged.list(fieldKey(wordField.owner, owner)), DamagedSegment)
    // Whoever saves what can be read needs none.
    damaged.words.skipsDamage = true
    t.same(damaged.words.key(1), segment.words.key(1))
    damaged.close()
  }
})

t.test('rows are saved where all tops are damaged', async (t) => {
  const saved = opened(segment.file.path)
  const { file, footer } = saved
  // Tops of so few words share their page with others.
  const at = file.at.bind(file)
  file.at = (start, end) => {
    if (start >= footer.tops) throw new DamagedSegment(file.path, Math.floor(start / pageBytes))
    return at(start, end)
  }
  t.throws(() => saved.list(fieldKey(wordField.owner, Buffer.alloc(32))), DamagedSegment)
  t.notOk([...salvagedRows(saved)].some((one) => 'lost' in one))
  saved.close()
})
