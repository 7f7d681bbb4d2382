import t from 'tap'
import { Chain } from '../../bench/index-chain.js'
import { blockMessage, itemsMessage } from '../catalog/index-model.js'
import { openRig } from './rig.js'

const chain = [
  ...new Chain({ items: 3000, itemsPerBundle: 500, bundlesPerBlock: 2, seed: 2 }).blocks(),
].flatMap(({ block, transactions, bundles }) => [
  blockMessage(block, transactions),
  ...bundles.map(({ rootId, items }) => itemsMessage(rootId, items)),
])

t.test('a query that asks for too much is refused before anything is read', async (t) => {
  const rig = await openRig(chain, { limits: { stepsMax: 0 } })
  const code = async (query: string, variables?: object): Promise<unknown> =>
    (await rig.ask(query, variables)).errors?.[0]?.extensions?.code
  const node = 'edges { node { id tags { name value } } }'
  const aliases = (count: number): string =>
    `{ ${Array.from({ length: count }, (_, at) => `a${at}: transaction(id: "x") { id }`).join(' ')} }`
  t.equal(await code(aliases(51)), 'QUERY_TOO_COMPLEX')
  t.equal(await code(aliases(50)), undefined)
  const heavy = Array.from({ length: 50 }, (_, at) => `a${at}: transactions(first: $n) { ${node} }`).join(' ')
  t.equal(await code(`query ($n: Int) { ${heavy} }`, { n: 1_000_000 }), 'QUERY_TOO_COMPLEX')
  t.equal(await code(`query ($n: Int = 1000) { ${heavy} }`), 'QUERY_TOO_COMPLEX')
  const bombs = Array.from(
    { length: 40 },
    (_, at) => `fragment f${at} on Query { ...f${at + 1} ...f${at + 1} }`,
  )
  const bomb = `{ ...f0 } ${bombs.join('\n')} fragment f19 on Query { __typename }`
  t.equal(await code(bomb), 'QUERY_TOO_COMPLEX')
  const wide = Array.from({ length: 500 }, (_, at) => `x: transaction(id: "${at}") { id }`).join(' ')
  t.equal(await code(`{ ${wide} }`), 'QUERY_TOO_COMPLEX')
  const many = Array.from({ length: 100 }, (_, at) => at)
  const spread = many.map((at) => `fragment g${at} on Query { x: transaction(id: "${at}") { id } }`)
  t.equal(
    await code(`{ ${many.map((at) => `...g${at}`).join(' ')} } ${spread.join(' ')}`),
    'QUERY_TOO_COMPLEX',
  )
  t.match((await rig.ask(`{ ${'a '.repeat(20_001)} }`)).errors?.[0]?.message, /token/)
  t.match((await rig.ask(`${'{a'.repeat(9000)}${'}'.repeat(9000)}`)).errors?.length, 1)
  const deep = `{ __schema { types ${'{ fields { type '.repeat(20)} { name } ${'} }'.repeat(20)} } }`
  t.ok((await rig.ask(deep)).errors)
  t.same(rig.thrown, [])
  await rig.close()
})

t.test('lists, pages and numbers out of bounds are refused or cut', async (t) => {
  const rig = await openRig(chain)
  const errors = async (filters: string, variables = {}, types = ''): Promise<number> =>
    (await rig.ask(`query Q${types} { transactions(${filters}) { edges { node { id } } } }`, variables))
      .errors?.length ?? 0
  const many = Array.from({ length: 1001 }, () => 'x')
  t.equal(await errors('ids: $l', { l: many }, '($l: [ID!])'), 1)
  t.equal(await errors('owners: $l', { l: many }, '($l: [String!])'), 1)
  t.equal(await errors('tags: [{name: "a", values: $l}]', { l: many }, '($l: [String!]!)'), 1)
  t.equal(await errors(`tags: [${'{name: "a", values: []}'.repeat(21)}]`), 1)
  for (const bad of ['first: -1', 'first: 0', 'block: {min: -1}', 'block: {max: -5}', 'first: 3000000000']) {
    t.equal(await errors(bad), 1, bad)
  }
  t.equal(await errors('tags: [{name: "a", values: ["*b"], match: WILDCARD}]'), 1)
  t.equal(await errors('tags: [{name: "a", values: ["b*"], match: WILDCARD, op: NEQ}]'), 1)
  const { data } = await rig.ask(
    '{ transactions(first: 5000) { pageInfo { hasNextPage } edges { cursor } } }',
  )
  t.equal(data.transactions.edges.length, 1000)
  t.equal(data.transactions.pageInfo.hasNextPage, true)
  await rig.close()
})

t.test('a query that runs out of effort gives what it found and says so', async (t) => {
  const rig = await openRig(chain, { limits: { stepsMax: 3 } })
  const found = await rig.ask(
    '{ transactions(first: 1000) { pageInfo { hasNextPage } edges { cursor } count } }',
  )
  t.ok(found.data.transactions.edges.length > 0)
  t.ok(found.data.transactions.edges.length < 1000)
  t.equal(found.data.transactions.pageInfo.hasNextPage, true)
  t.equal(found.data.transactions.count, null)
  t.match(found.extensions, { warnings: [{ code: 'PARTIAL_RESULT' }] })
  const none = await rig.ask('{ transactions(ingested_at: {min: 999999}) { edges { cursor } } }')
  t.equal(none.data, null)
  t.equal(none.errors?.[0]?.extensions?.code, 'QUERY_TOO_EXPENSIVE')
  await rig.close()
})
