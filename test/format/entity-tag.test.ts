import { deepEqual } from 'node:assert/strict'
import t from 'tap'
import {
  type EntityTag,
  matchesStrongly,
  matchesWeakly,
  parseEntityTag,
  parseEntityTags,
} from '../../src/format/entity-tag.js'
import { fc } from '../property.js'

const strong = (opaque: string): EntityTag => ({ weak: false, opaque })
const weak = (opaque: string): EntityTag => ({ weak: true, opaque })

const lists: readonly (readonly [field: string, tags: unknown])[] = [
  ['*', '*'],
  [' * ', '*'],
  ['"a"', [strong('a')]],
  ['W/"a"', [weak('a')]],
  ['"a", W/"b","c"', [strong('a'), weak('b'), strong('c')]],
  ['"a,b", "c"', [strong('a,b'), strong('c')]],
  [',"a",,', [strong('a')]],
  ['""', [strong('')]],
  ['"\u00e9"', [strong('\u00e9')]],
  ['', undefined],
  [',', undefined],
  ['a', undefined],
  ['"a', undefined],
  ['"a" "b"', undefined],
  ['w/"a"', undefined],
  ['W/ "a"', undefined],
  ['"a b"', undefined],
  ['*, "a"', undefined],
  ['"a", *', undefined],
]

for (const [field, tags] of lists) {
  t.test(`${JSON.stringify(field)} is ${JSON.stringify(tags)}`, async (t) => {
    t.strictSame(parseEntityTags(field), tags)
  })
}

t.test('a single tag is exactly one', async (t) => {
  t.strictSame(parseEntityTag('"a"'), strong('a'))
  t.strictSame(parseEntityTag('W/"a"'), weak('a'))
  t.equal(parseEntityTag('"a", "b"'), undefined)
  t.equal(parseEntityTag('*'), undefined)
  t.equal(parseEntityTag('Sat, 29 Oct 1994 19:43:31 GMT'), undefined)
})

t.test(
  'weak comparison looks at the opaque part only, strong comparison wants two strong tags',
  async (t) => {
    // The table of RFC 9110 section 8.8.3.2.
    const table: [EntityTag, EntityTag, boolean, boolean][] = [
      [weak('1'), weak('1'), false, true],
      [weak('1'), weak('2'), false, false],
      [weak('1'), strong('1'), false, true],
      [strong('1'), strong('1'), true, true],
    ]
    for (const [a, b, strongly, weakly] of table) {
      t.equal(matchesStrongly([a], b), strongly)
      t.equal(matchesWeakly([a], b), weakly)
    }
    t.ok(matchesStrongly('*', weak('1')))
    t.ok(matchesWeakly('*', strong('1')))
    t.notOk(matchesWeakly([], strong('1')))
  },
)

t.test('every written list reads back', async (t) => {
  const opaque = fc.string({
    unit: fc.constantFrom('a', '!', ',', 'W', '/', ';', '\\', '\u00ff'),
    maxLength: 6,
  })
  const tags = fc.array(fc.record({ weak: fc.boolean(), opaque }, { noNullPrototype: true }), {
    minLength: 1,
  })
  fc.assert(
    fc.property(tags, fc.constantFrom(',', ', ', ' ,\t'), (list, comma) => {
      const field = list.map((tag) => `${tag.weak ? 'W/' : ''}"${tag.opaque}"`).join(comma)
      deepEqual(parseEntityTags(field), list)
    }),
  )
  t.pass('held for every sample')
})

t.test('long runs of blanks are parsed in linear time', async (t) => {
  t.equal(parseEntityTags(`"a"${' '.repeat(1_000_000)}x`), undefined)
  t.equal(parseEntityTags(' '.repeat(1_000_000)), undefined)
})
