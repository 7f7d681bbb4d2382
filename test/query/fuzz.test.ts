import assert from 'node:assert/strict'
import t from 'tap'
import { Chain } from '../../bench/index/chain.js'
import { systemClock } from '../../src/actor/clock.js'
import { placeCursor, readBlockCursor, readRowCursor } from '../../src/query/cursor.js'
import { noHeaders } from '../../src/query/headers.js'
import { Answerer } from '../../src/query/query-answerer.js'
import { queryLimits } from '../../src/query/query-limits.js'
import { blockMessage, itemsMessage, openHouse } from '../catalog/index-model.js'
import { fc } from '../property.js'

/** Pieces that queries are made of, so that random texts get past the parser now and then. */
const pieces = [
  '{',
  '}',
  '(',
  ')',
  '[',
  ']',
  ':',
  '$',
  '!',
  '...',
  '"',
  '"""',
  '@skip(if: true)',
  'on',
  'fragment f',
  '...f',
  'query',
  'mutation',
  '__schema',
  '__typename',
  'transactions',
  'transaction',
  'blocks',
  'block',
  'edges',
  'node',
  '{ edges { node { id } } }',
  '(first: 5)',
  '(id: "x")',
  'tags',
  'owner { key }',
  'count',
  'signature',
  'first: -1',
  'after: "WzFd"',
  'sort: HEIGHT_ASC',
  'tags: [{name: "App-Name", values: ["app-1"]}]',
  'block: {min: 1000}',
  'bundledIn: null',
  'ids: []',
  '1e400',
  '99999999999',
  'null',
  '\u0000',
  '\ud800',
  'é',
  '#',
  ',',
  '&',
  '|',
]
const anyText = fc.array(fc.constantFrom(...pieces), { maxLength: 30 }).map((list) => list.join(' '))
const values = [
  'null',
  '[]',
  '""',
  '"x"',
  '["app-1"]',
  '-1',
  '0',
  '3',
  '2000000000',
  '{min: 1}',
  '{max: 1001}',
  '{}',
  '$a',
  '$b',
]
const names = [
  'ids',
  'owners',
  'recipients',
  'bundledIn',
  'parent',
  'block',
  'ingested_at',
  'first',
  'after',
  'sort',
  'height',
  'id',
]
const tag = '[{name: "App-Name", values: ["app-1"], op: NEQ}]'
const anyArguments = fc
  .uniqueArray(
    fc.oneof(
      fc.tuple(fc.constantFrom(...names), fc.constantFrom(...values)),
      fc.constantFrom(
        ['tags', tag],
        ['first', '5'],
        ['sort', 'HEIGHT_ASC'],
        ['bundledIn', 'null'],
        ['ids', '[]'],
      ),
    ),
    { maxLength: 3, selector: ([name]) => name ?? '' },
  )
  .map((list) => (list.length === 0 ? '' : `(${list.map((pair) => pair.join(': ')).join(', ')})`))
const fields = [
  'id',
  'anchor',
  'signature',
  'recipient',
  'owner { address key }',
  'data { size type }',
  'tags { name }',
  'block { id }',
]
const anyFields = fc
  .subarray([...fields, 'parent { id }', 'bundledIn { id }', 'fee { ar }', 'ingested_at'], { minLength: 1 })
  .map((list) => list.join(' '))
const anyList = fc
  .tuple(
    fc.constantFrom('transactions', 'blocks', 'transaction', 'block'),
    anyArguments,
    anyFields,
    fc.boolean(),
  )
  .map(([name, args, inner, count]) =>
    name.endsWith('s')
      ? `{ ${name}${args} { edges { cursor node { ${inner} } } ${count ? 'count' : ''} } }`
      : `{ ${name}${args} { ${inner} } }`,
  )
const anyQuery = fc.oneof(
  anyText,
  anyList,
  anyList.map((query) => `query ($a: Int, $b: [ID!]) ${query}`),
  fc.tuple(anyList, anyText).map(([query, text]) => `${query} ${text}`),
  fc.string({ unit: 'binary', maxLength: 100 }),
)

t.test('whatever is asked, the answer is data or errors, and nothing throws', async () => {
  const house = openHouse()
  for (const { block, transactions, bundles } of new Chain({
    items: 100,
    itemsPerBundle: 50,
    bundlesPerBlock: 1,
    seed: 3,
  }).blocks()) {
    await house.apply([blockMessage(block, transactions)])
    await house.apply(bundles.map(({ rootId, items }) => itemsMessage(rootId, items)))
  }
  const answerer = new Answerer({
    index: house.index,
    headers: noHeaders,
    clock: systemClock,
    limits: queryLimits,
  })
  let answered = 0
  await fc.assert(
    fc.asyncProperty(
      anyQuery,
      fc.dictionary(fc.constantFrom('a', 'b'), fc.jsonValue()),
      async (query, variables) => {
        const { text } = await answerer.answer({ query, variables, operationName: null }, answerer.effort())
        const result = JSON.parse(text) as { data?: unknown; errors?: unknown }
        assert.ok(result.errors !== undefined || result.data !== undefined)
        if (result.data) answered += 1
      },
    ),
    { numRuns: 1500 },
  )
  assert.ok(answered > 0, `only ${answered} of the texts were queries`)
  await house.close()
})

t.test('whatever a cursor says, it is a position or it is refused', async () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value)).toString('base64url')),
      ),
      (cursor) => {
        const row = readRowCursor(cursor)
        assert.ok(row === undefined || row.key.length === 16)
        const height = readBlockCursor(cursor)
        assert.ok(height === undefined || (Number.isSafeInteger(height) && height >= 0))
      },
    ),
    { numRuns: 2000 },
  )
})

t.test('any place of the chain goes into a cursor and comes back', async () => {
  const bytes = fc.uint8Array({ minLength: 16, maxLength: 16 })
  const pending = bytes.map((key) => Buffer.concat([Buffer.alloc(4, 0xff), key.subarray(4)]))
  const id = fc.constantFrom('x', 'abcdefghijk')
  const block = fc.record({ height: fc.nat(2_000_000), id }, { noNullPrototype: true })
  const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
  const anyMarks = fc.record({ block: optional(block), given: optional(fc.nat()), forks: optional(fc.nat()) })
  fc.assert(
    fc.property(fc.oneof(bytes, pending), anyMarks, (key, marks) => {
      const read = readRowCursor(placeCursor(key, marks))
      assert.deepEqual(Buffer.from(read?.key ?? []), Buffer.from(key))
      assert.deepEqual(read?.block, marks.block)
      const isPending = key[0] === 0xff
      assert.equal(read?.given, isPending ? undefined : marks.given)
      assert.equal(read?.forks, isPending ? marks.forks : undefined)
      assert.equal(read?.vague, undefined)
    }),
    { numRuns: 2000 },
  )
})
