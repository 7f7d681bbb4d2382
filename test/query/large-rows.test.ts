/** Rows of strangers with as many tags as an item may have, among rows of others: lists are read page by page all the same. */
import t from 'tap'
import type { ItemInput } from '../../src/catalog/index-protocol.js'
import { idOfBytes } from '../../src/format/id.js'
import type { Tag } from '../../src/format/tag.js'
import { blockMessage, earlyFlush, itemsMessage } from '../catalog/index-model.js'
import { bytesOf, idText } from './many-segments.js'
import { openRig, type QueryResult } from './rig.js'

const heights = 10
const largeTags = 128
const root = idOfBytes(bytesOf('root'))
const tag = (name: string, value: string): Tag => ({ name: Buffer.from(name), value: Buffer.from(value) })

const none = Buffer.alloc(0)
const common = {
  size: 1,
  owner: Buffer.alloc(32, 1),
  ownerAddress: bytesOf('owner'),
  target: none,
  anchor: none,
}

/** In each block a small item, and one with as many tags as an item may have, none of which another item has. */
function itemOf(height: number, isLarge: boolean, control: boolean): ItemInput {
  const value = (at: number): string => `${height} ${at} ${(control ? '\u0001' : 'v').repeat(3000)}`
  const more = isLarge ? Array.from({ length: largeTags - 1 }, (_, at) => tag(`t${at}`, value(at))) : []
  const place = { parentId: root, rootItemOffset: 0, parentItemOffset: 0, headerSize: 10 }
  const id = idOfBytes(bytesOf(`item ${height} ${isLarge}`))
  return { ...common, ...place, id, tags: [tag('App-Name', 'Town'), ...more], signatureType: 2 }
}

const requests = (control: boolean) =>
  Array.from({ length: heights }, (_, height) => {
    const block = { height, id: idText(height), previous: idText(height - 1), timestamp: 1_700_000_000 }
    const amounts = { format: 2, quantity: 0n, reward: 0n, dataRoot: Buffer.alloc(0), weaveEnd: 0 }
    const id = idOfBytes(bytesOf(`root ${height}`))
    return [
      blockMessage({ ...block, weaveSize: '0', transactionCount: 1 }, [
        { ...common, ...amounts, id, index: 0, tags: [] },
      ]),
      itemsMessage(id, [itemOf(height, true, control), itemOf(height, false, control)]),
    ]
  }).flat()

const town = 'tags: [{name: "App-Name", values: ["Town"]}]'
type Rig = Awaited<ReturnType<typeof openRig>>

/** All pages of a selection. */
async function pages(rig: Rig, first: number, fields: string): Promise<QueryResult[]> {
  const all: QueryResult[] = []
  for (let after = '', more = true; more; ) {
    const answer = await rig.askInside(
      `{ transactions(${town}, first: ${first}, after: "${after}") {
        pageInfo { hasNextPage } edges { cursor node { id ${fields} } } } }`,
    )
    all.push(answer)
    if (answer.errors !== undefined || all.length > 4 * heights) return all
    const { pageInfo, edges } = answer.data.transactions
    more = pageInfo.hasNextPage
    after = edges.at(-1)?.cursor ?? after
  }
  return all
}

const idsOf = (list: readonly QueryResult[]): string[] =>
  list.flatMap(({ data }) => data.transactions.edges.map(({ node }: { node: { id: string } }) => node.id))

for (const [where, flush] of [
  ['the tables', undefined],
  ['segments', earlyFlush],
] as const) {
  t.test(`in ${where}, a page ends before its answer is too large, and the next one goes on`, async (t) => {
    for (const control of [false, true]) {
      const answerMaxBytes = 6 * 2 ** 20
      const limits = { answerMaxBytes }
      const rig = await openRig(requests(control), flush === undefined ? { limits } : { limits, flush })
      const list = await pages(rig, 100, 'tags { name value }')
      t.same(
        list.flatMap(({ errors = [] }) => errors),
        [],
      )
      t.ok(list.length > 1 && list.length <= 2 * heights, `${list.length} pages`)
      const ids = idsOf(list)
      t.equal(new Set(ids).size, 2 * heights)
      t.equal(ids.length, 2 * heights, 'no row twice')
      for (const { data } of list) t.ok(data.transactions.edges.length > 0, 'no page is empty')
      t.match(list[0]?.extensions, { warnings: [{ code: 'PARTIAL_RESULT' }] })
      t.equal(list.at(-1)?.extensions, undefined)
      await rig.close()
    }
  })

  t.test(`in ${where}, tags that nobody wants do not shorten a page`, async (t) => {
    const limits = { answerMaxBytes: 100_000, stepsMax: 1000 }
    const rig = await openRig(requests(false), flush === undefined ? { limits } : { limits, flush })
    for (const fields of ['', 'block { height }', 'owner { address } data { size }']) {
      const list = await pages(rig, 100, fields)
      t.same([list.length, idsOf(list).length], [1, 2 * heights], fields)
      t.equal(list[0]?.extensions, undefined)
    }
    const typed = await pages(rig, 100, 'data { type }')
    t.equal(idsOf(typed).length, 2 * heights, 'a type is one of the tags')
    const { data } = await rig.askInside(`{ transaction(id: "${idsOf(typed)[0]}") { tags { name } } }`)
    t.ok(data.transaction.tags.length > 0)
    await rig.close()
  })
}

t.test('all selections of a query, and all queries of a batch, have rows', async (t) => {
  const rig = await openRig(requests(false), { limits: { answerMaxBytes: 12 * 2 ** 20 } })
  const one = `transactions(${town}, first: 100) { pageInfo { hasNextPage } edges { node { id tags { name value } } } }`
  const query = `{ a: ${one} b: ${one} c: ${one} }`
  const answers = (await (
    await rig.post([{ query }, { query }, { query: `{ a: ${one} }` }])
  ).json()) as QueryResult[]
  for (const { data, errors } of answers) {
    t.equal(errors, undefined)
    for (const list of Object.values(data) as QueryResult['data'][]) {
      t.ok(list.edges.length > 0)
      t.equal(list.pageInfo.hasNextPage, true)
    }
  }
  await rig.close()
})

t.test(
  'eight selections have answers, though each begins with a row that is large and escaped',
  async (t) => {
    const rig = await openRig(requests(true).slice(0, 2))
    const one = `transactions(${town}, first: 1, sort: HEIGHT_ASC) { edges { node { id tags { name value } } } }`
    const query = (selections: number): string =>
      `{ ${Array.from({ length: selections }, (_, at) => `s${at}: ${one}`).join(' ')} }`
    const { data, errors } = await rig.askInside(query(8))
    t.equal(errors, undefined)
    t.ok(JSON.stringify(data).length > 16 * 2 ** 20, 'rows are large')
    for (const { edges } of Object.values(data) as QueryResult['data'][])
      t.equal(edges[0].node.tags.length, largeTags)
    const more = await rig.askInside(query(20))
    t.match(more.errors, [{ extensions: { code: 'ANSWER_TOO_LARGE' } }], 'there is a bound')
    await rig.close()
  },
)

t.test('edges that are selected twice end at the same row', async (t) => {
  const rig = await openRig(requests(false), { limits: { answerMaxBytes: 6 * 2 ** 20 } })
  const { data, errors } = await rig.askInside(
    `{ transactions(${town}, first: 100) { a: edges { node { id tags { name value } } }
      pageInfo { hasNextPage endCursor } b: edges { cursor node { id } } } }`,
  )
  t.equal(errors, undefined)
  const { a, b, pageInfo } = data.transactions
  t.ok(a.length > 0 && a.length < 2 * heights)
  const ids = (list: readonly { readonly node: { readonly id: string } }[]) => list.map(({ node }) => node.id)
  t.same(ids(b), ids(a))
  t.equal(pageInfo.endCursor, b.at(-1).cursor)
  t.equal(pageInfo.hasNextPage, true)
  await rig.close()
})

t.test('a page ends in time', async (t) => {
  let now = 0
  const work = { monotonic: () => (now += 1) }
  const rig = await openRig(requests(false), { limits: { timeMs: 8 }, work })
  const list = await pages(rig, 100, 'tags { name value }')
  t.same(
    list.flatMap(({ errors = [] }) => errors),
    [],
  )
  t.ok(list.length > 1)
  t.equal(new Set(idsOf(list)).size, 2 * heights)
  await rig.close()
})
