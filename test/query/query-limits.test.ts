import { getIntrospectionQuery } from 'graphql'
import t from 'tap'
import { Chain } from '../../bench/index/chain.js'
import { blockMessage, itemsMessage } from '../catalog/index-model.js'
import { openRig, type QueryResult } from './rig.js'

const chain = [
  ...new Chain({ items: 1800, itemsPerBundle: 300, bundlesPerBlock: 2, seed: 2 }).blocks(),
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
  const schemas = Array.from({ length: 35 }, (_, at) => `a${at}: types { fields { ...f } }`).join(' ')
  const fields = Array.from({ length: 400 }, (_, at) => `a${at}: name`).join(' ')
  t.equal(await code(`{ __schema { ${schemas} } } fragment f on __Field { ${fields} }`), 'QUERY_TOO_COMPLEX')
  t.equal(await code(getIntrospectionQuery()), undefined)
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

t.test('a query that runs out of effort gives what it found, says so, and goes on from there', async (t) => {
  const rig = await openRig(chain, { limits: { stepsMax: 3 } })
  const found = await rig.ask(
    `{ transactions(first: 1000, tags: [{name: "Type", values: ["Message"]}]) {
      pageInfo { hasNextPage endCursor } edges { cursor } count } }`,
  )
  const { edges, pageInfo, count } = found.data.transactions
  t.ok(edges.length > 0)
  t.ok(edges.length < 1000)
  t.equal(pageInfo.hasNextPage, true)
  t.equal(pageInfo.endCursor, edges.at(-1).cursor, 'the last edge has the place, too')
  t.equal(count, null)
  t.match(found.extensions, { warnings: [{ code: 'PARTIAL_RESULT' }] })
  const all = await rig.ask('{ transactions { count } }')
  t.equal(all.data.transactions.count, 1806, 'the number of all rows is known without reading any')
  t.equal(all.extensions, undefined)
  await rig.close()
})

t.test(
  'an empty page that ended early is an error with a cursor, or a page for those who ask for its end',
  async (t) => {
    const rig = await openRig(chain, { limits: { stepsMax: 60 } })
    // Clients that know no end cursor take the one of the last edge: without an edge they would ask the same for ever.
    const none = await rig.ask(
      '{ transactions(ingested_at: {min: 999999}) { pageInfo { hasNextPage } edges { cursor } } }',
    )
    t.equal(none.data, null)
    const { code, cursor } = none.errors?.[0]?.extensions ?? {}
    t.equal(code, 'QUERY_TOO_EXPENSIVE')
    let pages = 0
    for (let after = String(cursor), more = true; more; pages += 1) {
      const { data, errors, extensions } = await rig.ask(
        `{ transactions(after: "${after}", ingested_at: {min: 999999}) {
        pageInfo { hasNextPage endCursor } edges { cursor } } }`,
      )
      t.equal(errors, undefined)
      const { pageInfo, edges } = data.transactions
      t.same(edges, [])
      more = pageInfo.hasNextPage
      t.equal(pageInfo.endCursor === null, !more)
      t.equal(extensions !== undefined, more, 'what was cut says so')
      t.not(pageInfo.endCursor, after)
      after = pageInfo.endCursor
    }
    t.ok(pages > 20, `${pages} pages`)
    await rig.close()
  },
)

/** Counts look-ups of words. */
function counted(words: { number: (...given: never) => unknown }): () => number {
  let looks = 0
  const { number } = words
  words.number = (...given) => {
    looks += 1
    return number.apply(words, given)
  }
  return () => looks
}

t.test('values of all selections and of a batch count together, before any is looked up', async (t) => {
  const rig = await openRig(chain)
  const looks = counted(rig.index.dictionaries[0])
  const absent = Array.from({ length: 1000 }, (_, at) => `absent-${at}`)
  const filters = Array.from(
    { length: 20 },
    (_, at) => `{name: "Type", values: $v, op: ${at % 2 ? 'EQ' : 'NEQ'}}`,
  )
  const root = `transactions(tags: [${filters.join(' ')}]) { pageInfo { endCursor } }`
  const query = `query ($v: [String!]!) { ${Array.from({ length: 50 }, (_, at) => `a${at}: ${root}`).join(' ')} }`
  const variables = { v: absent }
  const answers = (await (await rig.post(Array(3).fill({ query, variables }))).json()) as QueryResult[]
  for (const { errors } of answers) t.equal(errors?.[0]?.extensions?.code, 'QUERY_TOO_COMPLEX')
  t.equal(looks(), 0)
  const one = `query ($v: [String!]!) { transactions(tags: [{name: "Type", values: $v}]) { edges { cursor } } }`
  const batch = (await (await rig.post(Array(5).fill({ query: one, variables }))).json()) as QueryResult[]
  t.same(
    batch.map(({ errors }) => errors?.[0]?.extensions?.code),
    [undefined, undefined, 'QUERY_TOO_COMPLEX', 'QUERY_TOO_COMPLEX', 'QUERY_TOO_COMPLEX'],
  )
  t.ok(looks() <= 4000, `${looks()} look-ups`)
  const lists = Array.from({ length: 50 }, (_, at) => `a${at}: blocks(ids: $v) { edges { cursor } }`)
  const ids = `query ($v: [ID!]) { ${lists.join(' ')} }`
  t.equal((await rig.ask(ids, variables)).errors?.[0]?.extensions?.code, 'QUERY_TOO_COMPLEX')
  await rig.close()
})

t.test('an answer that becomes too large with one row is an error', async (t) => {
  const rig = await openRig(chain, { limits: { answerMaxBytes: 50_000 } })
  const tags = Array.from({ length: 40 }, (_, at) => `t${at}: tags { name value }`).join(' ')
  const { data, errors } = await rig.ask(`{ transactions(first: 1000) { edges { node { ${tags} } } } }`)
  t.equal(errors, undefined)
  t.ok(data.transactions.edges.length < 1000, 'a page ends before that')
  const many = Array.from({ length: 6 }, (_, at) => `${'A'.repeat(10_000)}${at}: id`).join(' ')
  const row = await rig.ask(`{ transactions(first: 10) { edges { node { ${many} } } } }`)
  t.equal(row.data, null)
  t.equal(row.errors?.[0]?.extensions?.code, 'ANSWER_TOO_LARGE')
  t.equal((await rig.ask('{ transactions(first: 100) { edges { node { id } } } }')).errors, undefined)
  await rig.close()
})

t.test('no part of an answer escapes the bound of its size, whatever its fields are called', async (t) => {
  const answerMaxBytes = 100_000
  const rig = await openRig(chain, { limits: { answerMaxBytes } })
  const found = await rig.ask('{ transactions(first: 2) { edges { node { id block { id } } } } }')
  const { id, block } = found.data.transactions.edges[1].node
  const long = 'A'.repeat(10_000)
  const times = (count: number, field: string): string =>
    Array.from({ length: count }, (_, at) => `a${at}: ${field}`).join(' ')
  const queries: Record<string, string> = {
    'rows of blocks': times(40, `blocks(first: 1000) { ...blocks }`),
    'edges of blocks': times(40, `blocks(first: 1000) { ...edges }`),
    'rows of transactions': times(40, `transactions(first: 1000) { ...ids }`),
    'edges of transactions': times(40, `transactions(first: 1000) { ...cursors }`),
    tags: times(40, `transactions(first: 1000) { ...tags }`),
    'pages of blocks': times(40, `blocks(first: 1) { ...page }`),
    'single blocks': times(40, `block(id: "${block.id}") { ...block }`),
    'single transactions': times(40, `transaction(id: "${id}") { ...row }`),
    introspection: times(40, `__type(name: "Transaction") { ...type }`),
  }
  const fragments: Record<string, string> = {
    blocks: `fragment blocks on BlockConnection { edges { node { ${long}: id } } }`,
    edges: `fragment edges on BlockConnection { edges { ${long}: cursor } }`,
    ids: `fragment ids on TransactionConnection { edges { node { ${long}: id } } }`,
    cursors: `fragment cursors on TransactionConnection { edges { ${long}: cursor } }`,
    tags: `fragment tags on TransactionConnection { edges { node { tags { ${long}: name } } } }`,
    type: `fragment type on __Type { ${long}: name }`,
    page: `fragment page on BlockConnection { pageInfo { ${long}: hasNextPage } }`,
    block: `fragment block on Block { ${long}: id }`,
    row: `fragment row on Transaction { ${long}: id }`,
  }
  for (const [name, fields] of Object.entries(queries)) {
    const used = Object.entries(fragments).flatMap(([word, text]) =>
      fields.includes(`...${word} `) ? [text] : [],
    )
    const response = await rig.post({ query: `{ ${fields} } ${used.join(' ')}` })
    const text = await response.text()
    t.match(JSON.parse(text).errors, [{ extensions: { code: 'ANSWER_TOO_LARGE' } }], name)
    t.ok(text.length < 2 * answerMaxBytes, `${name}: ${text.length}`)
  }
  await rig.close()
})

t.test('what a request has used up is not given to the rest of its batch', async (t) => {
  let clock = 0
  const work = { monotonic: () => (clock += 1) }
  const rig = await openRig(chain, { limits: { timeMs: 5 }, work })
  const query = '{ __schema { types { name fields { name } } } }'
  const answers = (await (await rig.post(Array(10).fill({ query }))).json()) as QueryResult[]
  t.equal(answers[0]?.errors, undefined)
  t.equal(answers.at(-1)?.errors?.[0]?.extensions?.code, 'QUERY_TOO_EXPENSIVE')
  await rig.close()
})

const wide = [...new Chain({ items: 9000, itemsPerBundle: 3000, bundlesPerBlock: 1, seed: 6 }).blocks()]

t.test('a prefix of more tags than are looked up gives every row, and counts them', async (t) => {
  const rig = await openRig(
    wide.flatMap(({ block, transactions, bundles }) => [
      blockMessage(block, transactions),
      ...bundles.map(({ rootId, items }) => itemsMessage(rootId, items)),
    ]),
    { limits: { stepsMax: 1500 } },
  )
  const items = wide.flatMap(({ bundles }) => bundles.flatMap(({ items }) => items))
  const timed = items.filter(({ tags }) =>
    tags.some(({ name }) => Buffer.from(name).toString() === 'Unix-Time'),
  )
  t.ok(timed.length > 2500, `${timed.length} tags, nearly all of them different`)
  for (const sort of ['HEIGHT_ASC', 'HEIGHT_DESC']) {
    const ids: string[] = []
    let cuts = 0
    for (let after = '', more = true; more; ) {
      const { data, extensions } = await rig.ask(
        `query ($after: String) { transactions(
          first: 400, sort: ${sort}, after: $after, tags: [{name: "Unix-Time", values: ["1*"], match: WILDCARD}]
        ) { pageInfo { hasNextPage endCursor } edges { node { id } } } }`,
        { after },
      )
      const { edges, pageInfo } = data.transactions
      for (const { node } of edges) ids.push(node.id)
      if (extensions !== undefined) cuts += 1
      more = pageInfo.hasNextPage
      after = pageInfo.endCursor
    }
    t.ok(cuts > 0, 'pages ended early')
    t.equal(ids.length, new Set(ids).size, 'each row once')
    t.same([...ids].sort(), timed.map(({ id }) => id).sort())
  }
  const narrow = await rig.ask(
    '{ transactions(tags: [{name: "Unix-Time", values: ["16000*", "1600*"], match: WILDCARD}]) { count } }',
  )
  const few = items.filter(({ tags }) =>
    tags.some(({ value }) => Buffer.from(value).toString().startsWith('1600')),
  )
  t.equal(narrow.data.transactions.count, few.length)
  await rig.close()
})
