import { buildSchema, graphqlSync } from 'graphql'
import t from 'tap'
import { fc } from '../property.js'

interface Offered {
  readonly prefix: string
  readonly offers: readonly { readonly name: string }[]
}

/** The page's own file: browsers load it as it is. */
const page = new URL('../../../src/query/page/complete.js', import.meta.url).href
const { completions, introspection, schemaOf } = (await import(page)) as {
  completions(text: string, schema: unknown): Offered
  introspection: string
  schemaOf(data: unknown): unknown
}
const source = buildSchema(`
  enum Order { UP DOWN }
  input Tag { name: String! values: [String!]! isExact: Boolean }
  type Owner { address: String! key: String! }
  type Item { id: ID! owner: Owner! tags: [Pair!]! }
  type Pair { name: String! value: String! }
  type Query { items(first: Int, order: Order, tags: [Tag!]): [Item!]! item(id: ID!): Item }
`)
const schema = schemaOf(graphqlSync({ schema: source, source: introspection }).data)
const names = (text: string): string =>
  completions(text, schema)
    .offers.map(({ name }) => name)
    .join(' ')

t.test('what may stand at a place', async (t) => {
  for (const [text, expected] of [
    ['', 'query'],
    ['{ ', 'items item'],
    ['{ it', 'items item'],
    ['query Some($a: Int) { ', 'items item'],
    ['{ items(', 'first order tags'],
    ['{ items(first: 3, ', 'order tags'],
    ['{ items(order: ', 'UP DOWN'],
    ['{ items(order: UP, ', 'first tags'],
    ['{ items(tags: [{ ', 'name values isExact'],
    ['{ items(tags: [{ name: "a", ', 'values isExact'],
    ['{ items(tags: [{ isExact: ', 'true false'],
    ['{ items(tags: [{ name: "{(", values: ["b"] }], ', 'first order'],
    ['{ items(first: 3) { ', 'id owner tags'],
    ['{ items { owner { a', 'address'],
    ['{ items { owner { address } ', 'id owner tags'],
    ['{ items { mine: owner { ', 'address key'],
    ['{ items { ... on Item { ', 'id owner tags'],
    ['fragment All on Item { ', 'id owner tags'],
    ['{ items # a comment {\n { ', 'id owner tags'],
    ['{ items } ', 'query'],
  ] as const)
    t.equal(names(text), expected, text)
})

t.test(
  'nothing is offered inside of texts, comments and variables, or for what does not exist',
  async (t) => {
    for (const text of [
      '{ items(tags: [{ name: "it',
      '{ # it',
      '{ items(first: $it',
      '{ nothing { i',
      '{ items(first: ',
    ])
      t.equal(names(text), '', text)
  },
)

t.test('any text is answered', async (t) => {
  const piece = fc.constantFrom(
    '{',
    '}',
    '(',
    ')',
    '[',
    ']',
    ':',
    '"',
    '#',
    '\n',
    '...',
    ' on ',
    '$',
    'items',
    'tags ',
    '\\',
  )
  fc.assert(
    fc.property(fc.array(piece), (pieces) => Array.isArray(completions(pieces.join(''), schema).offers)),
  )
  t.pass()
})
