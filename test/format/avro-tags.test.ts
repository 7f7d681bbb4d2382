import { deepEqual, equal } from 'node:assert/strict'
import { deserializeTags, serializeTags } from 'arbundles'
import t from 'tap'
import { decodeTags, encodeTags, standardTagLimits } from '../../src/format/avro-tags.js'
import { isRefusal } from '../../src/format/refusal.js'
import { type Tag, tagOf, tagText } from '../../src/format/tag.js'
import { fromHex, sound, toHex } from '../fixture-file.js'
import { fc } from '../property.js'

const bytes = fc.uint8Array({ maxLength: 200 })
const anyTags = fc.array(fc.record({ name: bytes, value: bytes }), { maxLength: 128 })
const plain = (tags: readonly Tag[]) => tags.map((tag) => [toHex(tag.name), toHex(tag.value)])
const tagsOf = (hex: string) => decodeTags(fromHex(hex))

t.test('tags come back as they were written', async (t) => {
  fc.assert(
    fc.property(anyTags, (tags) => {
      deepEqual(plain(sound(decodeTags(encodeTags(tags))).tags), plain(tags))
    }),
    { numRuns: 100 },
  )
  t.pass('held for every sample')
})

t.test('an independent library reads and writes the same bytes', async (t) => {
  // The library keeps to 4096 bytes and reads values as text, so that is what is compared.
  const text = fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' })
  const list = fc.array(fc.record({ name: text, value: text }), { minLength: 1, maxLength: 10 })
  fc.assert(
    fc.property(list, (tags) => {
      const ours = encodeTags(tags.map((tag) => tagOf(tag.name, tag.value)))
      equal(toHex(ours), toHex(serializeTags(tags) as Buffer))
      deepEqual(sound(decodeTags(ours)).tags.map(tagText), deserializeTags(Buffer.from(ours)))
    }),
    { numRuns: 100 },
  )
  t.pass('held for every sample')
})

t.test('no tags are no bytes, and a lone terminator is no tags', async (t) => {
  t.equal(encodeTags([]).length, 0)
  t.strictSame(tagsOf(''), { tags: [] })
  t.strictSame(tagsOf('00'), { tags: [] })
})

t.test('several blocks and blocks with their size are read', async (t) => {
  const expected = plain([tagOf('a', 'b'), tagOf('c', '')])
  t.strictSame(plain(sound(tagsOf('04 0261 0262 0263 00 00'.replaceAll(' ', ''))).tags), expected)
  t.strictSame(plain(sound(tagsOf('02 0261 0262 02 0263 00 00'.replaceAll(' ', ''))).tags), expected)
  t.strictSame(plain(sound(tagsOf('03 0e 0261 0262 0263 00 00'.replaceAll(' ', ''))).tags), expected)
})

const one = plain([tagOf('a', 'b')])
for (const [what, hex] of [
  ['no closing zero', '0202610262'],
  ['bytes after the end', '020261026200ff'],
  ['a block shorter than it says', '010e0261026200'],
  ['a block longer than it says', '01020261026200'],
  ['a negative block size', '01010261026200'],
  ['a count with needless groups', '8280000261026200'],
  ['lengths with needless groups', '0282006182808080808080808080800062'],
  ['a last count that is cut off', '020261026280'],
] as const) {
  t.test(`${what}: the tags are read as others read them`, async (t) => {
    t.strictSame(plain(sound(tagsOf(hex)).tags), one)
    t.strictSame(deserializeTags(Buffer.from(fromHex(hex))), [{ name: 'a', value: 'b' }])
  })
}

const refused: readonly (readonly [why: string, hex: string, message: RegExp])[] = [
  ['a number beyond 2^53', 'ffffffffffffffffff01', /more than 128 tags/],
  ['eleven groups', '80808080808080808080808001', /more than 128 tags/],
  ['a negative length', '020161026200', /tag 0 has a negative length/],
  ['a name longer than what is there', '02c80161', /tag 0 is cut off/],
  ['no value', '020261', /tag 0 is cut off/],
]

for (const [why, hex, message] of refused) {
  t.test(`${why} is refused`, async (t) => {
    const answer = tagsOf(hex)
    t.ok(isRefusal(answer))
    t.match(answer, { refused: 'malformed', message })
  })
}

t.test("limits count tags and bytes, and are the caller's to set", async (t) => {
  const many = encodeTags(Array.from({ length: 129 }, () => tagOf('a', 'b')))
  t.match(decodeTags(many), { refused: 'malformed', message: /128 tags/ })
  t.equal(sound(decodeTags(many, { ...standardTagLimits, tagsMax: 129 })).tags.length, 129)
  t.match(decodeTags(many, { tagsMax: 129, tagBytesMax: 4 }), { refused: 'malformed', message: /4 bytes/ })
})

t.test('a huge count takes no time or memory', async (t) => {
  t.match(tagsOf('feffffffff1f'), { refused: 'malformed', message: /more than 128 tags/ })
})
