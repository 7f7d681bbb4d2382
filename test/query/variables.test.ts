import assert from 'node:assert/strict'
import { getVariableValues, Kind, type OperationDefinitionNode, parse } from 'graphql'
import t from 'tap'
import { schema } from '../../src/query/schema.js'
import { VariableReader } from '../../src/query/variables.js'
import { fc } from '../property.js'

const types = [
  'Int',
  'Int = 7',
  'Int!',
  'Int! = 8',
  'String',
  'String!',
  'ID',
  'Boolean',
  '[ID!]',
  '[[Int]!]',
  '[String]!',
  'TagFilter',
  '[TagFilter!]',
  'TagFilter = {name: "a", values: "b"}',
  'BlockFilter',
  'SortOrder',
  'SortOrder = HEIGHT_ASC',
  'Int = null',
  'TagOperator!',
  '[ID!] = "x"',
]
const tag = fc.record(
  {
    name: fc.oneof(fc.constant('App'), fc.jsonValue({ maxDepth: 1 })),
    values: fc.oneof(fc.constant(['one']), fc.constant('one'), fc.jsonValue({ maxDepth: 2 })),
    op: fc.constantFrom('EQ', 'NEQ', 'LT', null, undefined),
    match: fc.constantFrom('WILDCARD', 1),
    other: fc.constant(1),
  },
  { requiredKeys: ['name', 'values'] },
)
const anyValue = fc.oneof(
  fc.constantFrom<unknown>(
    1,
    2 ** 31,
    1.5,
    '1',
    true,
    null,
    undefined,
    'HEIGHT_ASC',
    [],
    {},
    [1, null],
    ['x', 'y'],
  ),
  fc.record({ min: fc.integer(), max: fc.constantFrom(null, 5) }, { requiredKeys: [] }),
  tag,
  fc.array(tag, { maxLength: 2 }),
  fc.jsonValue({ maxDepth: 2 }),
)

t.test('variables are read as the library for GraphQL reads them', async () => {
  let good = 0
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.constantFrom(...types), { minLength: 1, maxLength: 3 }),
      fc.array(anyValue, { maxLength: 3 }),
      (chosen, values) => {
        const names = chosen.map((type, at) => `$v${at}: ${type}`)
        const [node] = parse(`query (${names.join(', ')}) { __typename }`).definitions
        assert.ok(node?.kind === Kind.OPERATION_DEFINITION)
        const operation: OperationDefinitionNode = node
        const given = Object.fromEntries(values.map((value, at) => [`v${at}`, value]))
        const definitions = operation.variableDefinitions ?? []
        // As many errors as an answer has room for.
        const { errors, coerced } = getVariableValues(schema, definitions, given, { maxErrors: 20 })
        const read = new VariableReader(operation).read(given)
        if (errors === undefined) {
          good += 1
          assert.deepEqual({ ...read }, { ...coerced })
          assert.deepEqual(JSON.stringify(read), JSON.stringify(coerced))
        } else assert.deepEqual(JSON.stringify(read), JSON.stringify(errors))
      },
    ),
    { numRuns: 3000 },
  )
  assert.ok(good > 0, `only ${good} were right`)
})
