import assert from 'node:assert/strict'
import { execute, parse, validate } from 'graphql'
import t from 'tap'
import { Chain } from '../../bench/index/chain.js'
import { systemClock } from '../../src/actor/clock.js'
import { Effort } from '../../src/catalog/effort.js'
import type { ChainIndex } from '../../src/catalog/index-reader.js'
import type { Row } from '../../src/catalog/row.js'
import { selectionOf, type TransactionsArguments } from '../../src/query/asking.js'
import { ChainMarks } from '../../src/query/continuation.js'
import { rowCursor } from '../../src/query/cursor.js'
import { noHeaders } from '../../src/query/headers.js'
import { Answerer } from '../../src/query/query-answerer.js'
import { queryLimits } from '../../src/query/query-limits.js'
import { schema } from '../../src/query/schema.js'
import { blockMessage, itemsMessage, openHouse } from '../catalog/index-model.js'
import { fc } from '../property.js'

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

/** Resolvers for the library's own execution of a query: each row as a plain value. */
function rootOf(index: ChainIndex) {
  const marks = new ChainMarks(index)
  const transaction = (row: Row) => ({
    id: text(row.id),
    anchor: text(row.anchor),
    signatureType: row.signatureType ?? null,
    recipient: text(row.recipient),
    owner: { address: text(row.owner) },
    fee: { winston: String(row.transfer?.reward ?? 0) },
    data: {
      size: String(row.size),
      type: row.tags
        .filter((tag) => tag.name.toString() === 'Content-Type')
        .map((tag) => tag.value.toString())[0],
    },
    tags: row.tags.map((tag) => ({
      name: tag.name.toString(),
      value: tag.value.toString(),
    })),
    block: () => index.block(row.height ?? 0),
    bundledIn: row.place === undefined ? null : { id: text(row.place.parent) },
    ingested_at: row.seenSeconds,
  })
  return {
    transaction: () => null,
    transactions(args: TransactionsArguments) {
      const page = { backwards: args.sort === 'HEIGHT_DESC', limit: args.first ?? 10 }
      const effort = new Effort(1e6, 60_000, systemClock)
      const { entries, more } = index.rows(selectionOf(args, queryLimits), page, effort)
      return {
        pageInfo: { hasNextPage: more },
        edges: entries.map((row) => ({
          cursor: rowCursor(row, marks.of(row.height, undefined)),
          node: transaction(row),
        })),
      }
    },
    blocks: ({ first }: { first: number }) => ({
      pageInfo: { hasNextPage: true },
      edges: index.blocks(0, 1e9, true, first).map((node) => ({ node })),
    }),
  }
}

const when = fc.constantFrom(
  '',
  '',
  '',
  '@skip(if: $a)',
  '@include(if: $a)',
  '@skip(if: $b) @include(if: true)',
)
const alias = fc.constantFrom('', '', '', 'x: ', 'y: ')
const leaf = (...names: string[]) =>
  fc.tuple(alias, fc.constantFrom(...names, '__typename'), when).map((parts) => parts.join(' '))
const within = (head: string, inner: fc.Arbitrary<string>) =>
  fc
    .tuple(
      head.startsWith('...') ? fc.constant('') : alias,
      when,
      fc.array(inner, { minLength: 1, maxLength: 4 }),
    )
    .map(([name, condition, list]) => `${name}${head} ${condition} { ${list.join(' ')} }`)
const nodeField = fc.oneof(
  leaf('id', 'anchor', 'signatureType', 'recipient', 'ingested_at'),
  within('owner', leaf('address')),
  within('fee', leaf('winston')),
  within('data', leaf('size', 'type')),
  fc.constantFrom('tags { name value }', 'tags { value name }', 'tags { name x: value }'),
  within('tags', leaf('name', 'value')),
  within('block', leaf('id', 'height', 'timestamp', 'previous')),
  within('bundledIn', leaf('id')),
  fc.constantFrom('...f', '...f @skip(if: $b)'),
)
const rowField = fc.oneof(nodeField, within('...', nodeField), within('... on Transaction', nodeField))
const edge = fc.oneof(leaf('cursor'), within('node', rowField), within('node', rowField))
const connection = fc.oneof(within('pageInfo', leaf('hasNextPage')), within('edges', edge))
const lists = [
  'transactions',
  'transactions(first: $n, sort: HEIGHT_ASC)',
  'transactions(bundledIn: null)',
  'transactions(tags: [{name: "App-Name", values: ["app-1", "app-0"]}])',
]
const anyRoot = fc.oneof(
  fc.constantFrom(...lists).chain((list) => within(list, connection)),
  fc.constantFrom('__typename', 'a: __typename', 'transaction(id: "x") { id }'),
  within('blocks(first: 2)', within('edges', within('node', leaf('id', 'height')))),
  fc.constantFrom('s: __type(name: "Row") { name }', 's: __type(name: $t) { kind fields { name } }'),
)
const head = 'query ($a: Boolean = true, $b: Boolean = false, $n: Int = 3, $t: String! = "Tag")'
/** So that every variable and the fragment are used. */
const tail = `u: transactions(first: $n) { edges { node { ...f id @skip(if: $a) anchor @include(if: $b) } } }
  v: __type(name: $t) { name }`
const anyQuery = fc
  .tuple(fc.array(anyRoot, { minLength: 1, maxLength: 3 }), fc.array(nodeField, { maxLength: 3 }))
  .map(([roots, fragment]) => {
    const inner = fragment.filter((field) => !field.includes('...f'))
    return `${head} { ${roots.join(' ')} ${tail} } fragment f on Transaction { id ${inner.join(' ')} }`
  })

t.test('an answer is, letter by letter, the one that the library for GraphQL gives', async () => {
  const house = openHouse()
  const chain = new Chain({ items: 60, itemsPerBundle: 20, bundlesPerBlock: 1, seed: 5 })
  for (const { block, transactions, bundles } of chain.blocks()) {
    await house.apply([blockMessage(block, transactions)])
    await house.apply(bundles.map(({ rootId, items }) => itemsMessage(rootId, items)))
  }
  const { index } = house
  const limits = { ...queryLimits, timeMs: 60_000 }
  const answerer = new Answerer({ index, headers: noHeaders, clock: systemClock, limits })
  const rootValue = rootOf(index)
  let compared = 0
  await fc.assert(
    fc.asyncProperty(anyQuery, fc.boolean(), fc.boolean(), async (query, a, b) => {
      const document = parse(query)
      if (validate(schema, document).length > 0) return
      const variables = { a, b }
      const wanted = JSON.stringify(execute({ schema, document, rootValue, variableValues: variables }))
      const request = { query, variables, operationName: null }
      for (let turn = 0; turn < 2; turn += 1) {
        assert.equal((await answerer.answer(request, answerer.effort())).text, wanted)
      }
      compared += 1
    }),
    { numRuns: 600 },
  )
  assert.ok(compared > 0, `only ${compared} of the texts were queries`)
  await house.close()
})
