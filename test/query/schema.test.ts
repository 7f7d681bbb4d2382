import { getIntrospectionQuery, type IntrospectionQuery } from 'graphql'
import t from 'tap'
import { schema } from '../../src/query/schema.js'
import { openRig } from './rig.js'

/**
 * Every type, field and argument that clients of this network's gateways may use, as they are written in
 * their queries.
 */
const shared: Record<string, readonly string[]> = {
  Query: [
    'transaction(id: ID!): Transaction',
    'block(id: String!): Block',
    'transactions: TransactionConnection!',
    'blocks: BlockConnection!',
  ],
  Transaction: [
    'id: ID!',
    'anchor: String!',
    'signature: String!',
    'signatureType: Int',
    'recipient: String!',
    'owner: Owner!',
    'fee: Amount!',
    'quantity: Amount!',
    'data: MetaData!',
    'tags: [Tag!]!',
    'block: Block',
    'parent: Parent',
    'bundledIn: Bundle',
  ],
  Owner: ['address: String!', 'key: String!'],
  Amount: ['winston: String!', 'ar: String!'],
  MetaData: ['size: String!', 'type: String'],
  Tag: ['name: String!', 'value: String!'],
  Bundle: ['id: ID!'],
  Parent: ['id: ID!'],
  Block: ['id: ID!', 'timestamp: Int!', 'height: Int!', 'previous: ID!'],
  PageInfo: ['hasNextPage: Boolean!'],
  TransactionConnection: ['pageInfo: PageInfo!', 'edges: [TransactionEdge!]!'],
  TransactionEdge: ['cursor: String!', 'node: Transaction!'],
  BlockConnection: ['pageInfo: PageInfo!', 'edges: [BlockEdge!]!'],
  BlockEdge: ['cursor: String!', 'node: Block!'],
}

const listing = ['first: Int', 'after: String', 'sort: SortOrder']
const filters: Record<string, readonly string[]> = {
  transactions: [
    'ids: [ID!]',
    'owners: [String!]',
    'recipients: [String!]',
    'tags: [TagFilter!]',
    'bundledIn: [ID!]',
    'block: BlockFilter',
    'parent: [ID!]',
    ...listing,
  ],
  blocks: ['ids: [ID!]', 'height: BlockFilter', ...listing],
}

t.test('every type, field and argument that clients use is in the schema', async (t) => {
  for (const [name, fields] of Object.entries(shared)) {
    const type = schema.getType(name)
    const own = type !== undefined && 'getFields' in type ? type.getFields() : {}
    for (const wanted of fields) {
      const field = own[wanted.split(/[(:]/)[0] ?? '']
      const stated = field && `${field.name}: ${field.type}`
      t.equal(stated, wanted.replace(/\(.*\)/, ''), `${name}.${wanted}`)
    }
  }
  const query = schema.getQueryType()?.getFields() ?? {}
  for (const [name, wanted] of Object.entries(filters)) {
    const args = query[name]?.args.map((argument) => `${argument.name}: ${argument.type}`) ?? []
    for (const each of wanted) t.ok(args.includes(each), `${name}(${each})`)
    t.equal(query[name]?.args.find((argument) => argument.name === 'first')?.defaultValue, 10)
    t.equal(query[name]?.args.find((argument) => argument.name === 'sort')?.defaultValue, 'HEIGHT_DESC')
  }
})

t.test('tools read the schema by introspection', async (t) => {
  const rig = await openRig([])
  const { data, errors } = await rig.ask(getIntrospectionQuery())
  t.equal(errors, undefined)
  const { __schema } = data as IntrospectionQuery
  t.ok(__schema.types.some(({ name }) => name === 'Transaction'))
  const { data: enums } = await rig.ask('{ __type(name: "SortOrder") { enumValues { name } } }')
  t.same(enums.__type.enumValues, [{ name: 'HEIGHT_ASC' }, { name: 'HEIGHT_DESC' }])
  await rig.close()
})
