import { createHash } from 'node:crypto'
import t from 'tap'
import type { IndexRequest, ItemInput, TransactionInput } from '../../src/catalog/index-protocol.js'
import { packTransactions } from '../../src/catalog/pack.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { tagOf } from '../../src/format/tag.js'
import { blockMessage, itemsMessage } from '../catalog/index-model.js'
import { openRig } from './rig.js'

const sha = (text: string): Buffer => createHash('sha256').update(text).digest()
const idOf = (name: string): Id => idOfBytes(sha(name))
const alice = Buffer.alloc(512, 1)
const aliceAddress = createHash('sha256').update(alice).digest()
const bob = sha('bob')

const row = {
  size: 5,
  owner: alice,
  ownerAddress: aliceAddress,
  target: Buffer.alloc(0),
  anchor: Buffer.alloc(32, 9),
  tags: [tagOf('App', 'one'), tagOf('Content-Type', 'text/plain')],
}
const transaction = (
  name: string,
  index: number,
  more: Partial<TransactionInput> = {},
): TransactionInput => ({
  ...row,
  id: idOf(name),
  index,
  format: 2,
  quantity: 1_500_000_000_000n,
  reward: 7n,
  dataRoot: Buffer.alloc(0),
  weaveEnd: 0,
  ...more,
})
const item = (name: string, parent: string, more: Partial<ItemInput> = {}): ItemInput => ({
  ...row,
  id: idOf(name),
  parentId: idOf(parent),
  signatureType: 1,
  rootItemOffset: 100,
  parentItemOffset: 100,
  headerSize: 50,
  ...more,
})
const blockId = (height: number): string => Buffer.alloc(48, height).toString('base64url')
const block = (height: number, transactions: readonly TransactionInput[]): IndexRequest =>
  blockMessage(
    {
      height,
      id: blockId(height),
      previous: blockId(height - 1),
      timestamp: 1000 + height,
      weaveSize: '0',
      transactionCount: transactions.length,
    },
    transactions,
  )

/** Three blocks; a bundle in the second with a bundle inside; one transaction that is in no block yet. */
const chain: IndexRequest[] = [
  block(1, [transaction('a', 0, { target: bob }), transaction('b', 1, { signature: Buffer.alloc(512, 3) })]),
  block(2, [transaction('bundle', 0)]),
  itemsMessage(idOf('bundle'), [
    item('item', 'bundle', { tags: [tagOf('App', 'two'), tagOf('App', 'one')] }),
    item('nested', 'bundle', { tags: [] }),
    item('deep', 'nested', { tags: [tagOf('App', 'twelve')], owner: Buffer.alloc(0), ownerAddress: bob }),
  ]),
  block(3, [transaction('c', 0)]),
  { kind: 'index-pending', transactions: packTransactions([transaction('waiting', 0, { tags: [] })]) },
]
const named = new Map(
  ['a', 'b', 'bundle', 'item', 'nested', 'deep', 'c', 'waiting'].map((name) => [idOf(name), name]),
)
const chainNames = (list: { node: { id: Id } }[]): (string | undefined)[] =>
  list.map(({ node }) => named.get(node.id))

t.test('every field says what the transaction or item says', async (t) => {
  const rig = await openRig(chain)
  const fields = `id anchor signature signatureType recipient owner { address key } fee { winston ar }
    quantity { winston ar }    data { size type } tags { name value } block { id timestamp height previous } parent { id }
    bundledIn { id } ingested_at`
  const { data, errors } = await rig.ask(
    `query ($b: ID!, $i: ID!, $w: ID!) { b: transaction(id: $b) { ${fields} }
     i: transaction(id: $i) { id bundledIn { id } parent { id }
     fee { ar } quantity { winston } signatureType block { height } } w: transaction(id: $w) { block { id } recipient }
     none: transaction(id: "nothing") { id } }`,
    { b: idOf('b'), i: idOf('deep'), w: idOf('waiting') },
  )
  t.equal(errors, undefined)
  t.same(data.b, {
    id: idOf('b'),
    anchor: Buffer.alloc(32, 9).toString('base64url'),
    signature: Buffer.alloc(512, 3).toString('base64url'),
    signatureType: null,
    recipient: '',
    owner: { address: aliceAddress.toString('base64url'), key: alice.toString('base64url') },
    fee: { winston: '7', ar: '0.000000000007' },
    quantity: { winston: '1500000000000', ar: '1.500000000000' },
    data: { size: '5', type: 'text/plain' },
    tags: [
      { name: 'App', value: 'one' },
      { name: 'Content-Type', value: 'text/plain' },
    ],
    block: { id: blockId(1), timestamp: 1001, height: 1, previous: blockId(0) },
    parent: null,
    bundledIn: null,
    ingested_at: 5000,
  })
  t.same(data.i, {
    id: idOf('deep'),
    bundledIn: { id: idOf('nested') },
    parent: { id: idOf('nested') },
    fee: { ar: '0.000000000000' },
    quantity: { winston: '0' },
    signatureType: 1,
    block: { height: 2 },
  })
  t.same(data.w, { block: null, recipient: '' })
  t.equal(data.none, null)
  await rig.close()
})

t.test('filters select, all of them at once', async (t) => {
  const rig = await openRig(chain)
  const select = async (filters: string): Promise<unknown[]> => {
    const result = await rig.ask(`{ transactions(${filters}) { count edges { node { id } } } }`)
    t.equal(result.errors, undefined, filters)
    t.equal(result.data.transactions.count, result.data.transactions.edges.length)
    return chainNames(result.data.transactions.edges).sort()
  }
  const all = ['a', 'b', 'bundle', 'c', 'deep', 'item', 'nested', 'waiting']
  const address = aliceAddress.toString('base64url')
  t.same(await select('first: 100'), all)
  t.same(await select('ids: [], owners: [], tags: []'), all)
  t.same(await select(`ids: ["${idOf('a')}", "${idOf('deep')}", "nothing"]`), ['a', 'deep'])
  t.same(await select('ids: ["nothing"]'), [])
  t.same(await select(`owners: ["${bob.toString('base64url')}"]`), ['deep'])
  t.same(await select(`owners: ["${address}"], bundledIn: ["${idOf('bundle')}"]`), ['item', 'nested'])
  t.same(await select(`recipients: ["${bob.toString('base64url')}"]`), ['a'])
  t.same(await select('bundledIn: null'), ['a', 'b', 'bundle', 'c', 'waiting'])
  t.same(await select(`parent: ["${idOf('nested')}"]`), ['deep'])
  t.same(await select('tags: [{name: "App", values: ["two", "twelve"]}]'), ['deep', 'item'])
  t.same(await select('tags: [{name: "App", values: ["two"]}, {name: "App", values: ["one"]}]'), ['item'])
  t.same(await select('tags: [{name: "App", values: ["one"], op: NEQ}]'), ['deep', 'nested', 'waiting'])
  t.same(await select('tags: [{name: "App", values: ["tw*"], match: WILDCARD}]'), ['deep', 'item'])
  t.same(await select('tags: [{name: "App", values: ["*"], match: WILDCARD}], block: {min: 3}'), ['c'])
  t.same(await select('tags: [{name: "app", values: ["one"]}]'), [])
  t.same(await select('block: {min: 0}'), all)
  t.same(await select('block: {min: 1}'), all.slice(0, 7))
  t.same(await select('block: {max: 1}'), ['a', 'b'])
  t.same(await select('block: {min: 2, max: 2}, bundledIn: null'), ['bundle'])
  t.same(await select('block: {min: 3, max: 2}'), [])
  t.same(await select('ingested_at: {min: 4999, max: 5000}'), all)
  t.same(await select('ingested_at: {min: 5001}'), [])
  await rig.close()
})

t.test('pages follow each other in both directions, pending rows at the new end', async (t) => {
  const rig = await openRig(chain)
  const walk = async (sort: string): Promise<unknown[]> => {
    const names: unknown[] = []
    for (let after: string | null = ''; after !== null; ) {
      const { data } = await rig.ask(
        `query ($after: String) { transactions(first: 3, after: $after, sort: ${sort}) {
          pageInfo { hasNextPage } edges { cursor node { id } } } }`,
        { after },
      )
      const { edges, pageInfo } = data.transactions
      names.push(...chainNames(edges))
      after = pageInfo.hasNextPage ? edges.at(-1).cursor : null
    }
    return names
  }
  const newest = await walk('HEIGHT_DESC')
  t.equal(newest.length, 8)
  t.equal(newest[0], 'waiting')
  t.same(newest.slice(-2), ['b', 'a'])
  t.same((await walk('HEIGHT_ASC')).reverse(), newest)
  await rig.close()
})

t.test('a cursor of another gateway goes on at the same place', async (t) => {
  const rig = await openRig(chain)
  const cursor = (list: unknown): string => Buffer.from(JSON.stringify(list)).toString('base64url')
  const after = async (list: unknown): Promise<unknown> => {
    const { data } = await rig.ask(
      `{ transactions(first: 1, after: "${cursor(list)}") { edges { cursor node { id } } } }`,
    )
    return chainNames(data.transactions.edges)[0]
  }
  t.equal(await after([null, null, false, idOf('waiting'), 1_700_000_000]), 'c')
  t.equal(await after([3, 0, false, idOf('c'), null]), await after([3, 0, 0, idOf('c'), null]))
  t.equal(await after([1, 1, false, idOf('b'), 1]), 'a')
  t.equal(await after([1, 0, false, idOf('a')]), undefined)
  const { data } = await rig.ask('{ transactions(first: 1) { edges { cursor } } }')
  const own = JSON.parse(Buffer.from(data.transactions.edges[0].cursor, 'base64url').toString())
  t.same(own.slice(0, 6), [null, null, false, idOf('waiting'), 5000, 5_000_000])
  for (const bad of [
    'x',
    cursor([1]),
    cursor({}),
    cursor([-1, 0, false, idOf('a')]),
    cursor([1, 2 ** 30, false, idOf('a')]),
  ]) {
    const { errors } = await rig.ask(`{ transactions(after: "${bad}") { count } }`)
    t.equal(errors?.[0]?.message, 'Invalid transaction cursor', bad)
  }
  const { errors } = await rig.ask('{ blocks(after: "x") { pageInfo { hasNextPage } } }')
  t.equal(errors?.[0]?.message, 'Invalid block cursor')
  await rig.close()
})

t.test('blocks are listed and found by id', async (t) => {
  const rig = await openRig(chain)
  const heights = async (filters: string): Promise<unknown> => {
    const { data } = await rig.ask(
      `{ blocks${filters} { pageInfo { hasNextPage } edges { cursor node { height } } } }`,
    )
    return data.blocks.edges.map(({ node }: { node: { height: number } }) => node.height)
  }
  t.same(await heights(''), [3, 2, 1])
  t.same(await heights('(sort: HEIGHT_ASC, first: 2)'), [1, 2])
  t.same(await heights('(height: {min: 2})'), [3, 2])
  t.same(await heights('(height: {max: 2}, sort: HEIGHT_ASC)'), [1, 2])
  t.same(await heights(`(ids: ["${blockId(2)}", "${blockId(9)}", "${blockId(2)}"])`), [2])
  const { data } = await rig.ask(
    `{ block(id: "${blockId(2)}") { height previous } blocks(first: 1) { edges { cursor } } }`,
  )
  t.same(data.block, { height: 2, previous: blockId(1) })
  t.same(await heights(`(after: "${data.blocks.edges[0].cursor}")`), [2, 1])
  await rig.close()
})

t.test(
  'signatures and keys that the index does not keep come from the content, or errors say that they could not',
  async (t) => {
    const requested: Id[] = []
    const rig = await openRig(chain, {
      headers: {
        header: async (id) => {
          requested.push(id)
          if (id === idOf('a')) return { refused: 'late', fault: 'upstream', message: 'too slow' }
          return { signature: Buffer.from(`signature of ${id}`), owner: Buffer.from('key') }
        },
      },
    })
    const { data, errors, extensions } = await rig.ask(
      `{ transactions(first: 100) { edges { node { id signature owner { address key } } } } }`,
    )
    const by = (name: string) =>
      data.transactions.edges.find(({ node }: { node: { id: Id } }) => node.id === idOf(name)).node
    t.equal(by('c').signature, Buffer.from(`signature of ${idOf('c')}`).toString('base64url'))
    t.equal(by('deep').owner.key, Buffer.from('key').toString('base64url'))
    t.equal(by('a').signature, '')
    t.equal(by('a').owner.key, alice.toString('base64url'))
    t.same(errors?.[0]?.extensions, { code: 'UPSTREAM_UNAVAILABLE', ids: [idOf('a')] })
    t.match(extensions, { warnings: [{ code: 'UPSTREAM_UNAVAILABLE' }] })
    t.notOk(requested.includes(idOf('b')), 'what the index keeps is not asked for')
    t.equal(requested.length, new Set(requested).size, 'each header is read once')
    await rig.close()
  },
)

t.test('content that never arrives does not delay the answer forever', async (t) => {
  const rig = await openRig(chain, {
    headers: { header: () => new Promise(() => 'never') },
    limits: { waitMs: 20, loadsMax: 2 },
  })
  const { data, errors } = await rig.ask('{ transactions(first: 100) { edges { node { signature } } } }')
  t.equal(data.transactions.edges.length, 8)
  t.match(errors?.[0]?.extensions, { ids: { length: 7 } })
  await rig.close()
})
