/** What strangers have stored makes no query dearer: reads of the index for each, with little and with much in it. */
import t, { type Test } from 'tap'
import { Chain, halfTag, messagesOf, named } from '../../bench/index/chain.js'
import type { IndexRequest, ItemInput } from '../../src/catalog/index-protocol.js'
import { packItems, packTransactions } from '../../src/catalog/pack.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { tagOf } from '../../src/format/tag.js'
import { sha256 } from '../../src/proof/digest.js'
import type { Environment } from '../../src/store/lmdb.js'
import { type CountedReads, countedReads } from '../upload/counted-reads.js'
import { openRig } from './rig.js'

const many = 20_000
const idOf = (text: string): Id => idOfBytes(sha256(Buffer.from(text)))
const base = [...new Chain({ items: 400, itemsPerBundle: 20, bundlesPerBlock: 2, seed: 8 }).blocks()]
const known = base[3]?.bundles[0]?.items[5] as ItemInput
const tipHeight = 1000 + base.length - 1

/** Blocks on top of the others: `count` items of one stranger, with the tags that others have, too. */
function* strangers(count: number): Generator<IndexRequest> {
  const owner = Buffer.alloc(512, 9)
  const of = { owner, ownerAddress: sha256(owner), target: Buffer.alloc(0), anchor: Buffer.alloc(0) }
  const tags = [tagOf(halfTag.name, halfTag.value), tagOf('Content-Type', 'text/plain')]
  const each = 2000
  for (let from = 0; from < count; from += each) {
    const height = tipHeight + 1 + from / each
    const rootId = idOf(`root ${from}`)
    const root = { ...of, id: rootId, size: 10 ** 6, tags: [], index: 0, format: 2, quantity: 0n, reward: 1n }
    const transactions = packTransactions([{ ...root, dataRoot: Buffer.alloc(32), weaveEnd: 0 }])
    const ids = [0, 1].map((at) => Buffer.alloc(48, height + at).toString('base64url'))
    const block = { height, id: ids[1] ?? '', previous: ids[0] ?? '', timestamp: 1_700_000_000 + height }
    yield {
      kind: 'index-block',
      block: { ...block, weaveSize: '0', transactionCount: 1 },
      transactions,
    }
    const items = Array.from({ length: Math.min(each, count - from) }, (_, at) => ({
      ...of,
      id: idOf(`item ${from + at}`),
      size: 100,
      tags: [...tags, tagOf('Number', String(from + at))],
      parentId: rootId,
      rootItemOffset: at * 1000,
      parentItemOffset: at * 1000,
      headerSize: 500,
    }))
    yield { kind: 'index-items', rootId, items: packItems(items) }
  }
}

const half = `tags: [{ name: "${halfTag.name}", values: ["${halfTag.value}"] }]`
const owner = `owners: ["${named(1, 0).toString('base64url')}"]`
const wishes: Record<string, string> = {
  all: '',
  tag: half,
  owner,
  'owner and tag': `${owner}, ${half}`,
  'owner and tag, oldest first': `${owner}, ${half}, sort: HEIGHT_ASC`,
  recipient: `recipients: ["${named(2, 0).toString('base64url')}"]`,
  bundle: `bundledIn: ["${known.parentId}"]`,
  ids: `ids: ["${known.id}", "${idOf('nothing')}"]`,
  heights: `${half}, block: { min: 1000, max: ${tipHeight} }`,
  'no such tag': 'tags: [{ name: "Nothing", values: ["at all"] }]',
}
const fields =
  'pageInfo { hasNextPage } edges { cursor node { id owner { address } tags { name value } block { height } } }'

async function costsOfQueries(count: number): Promise<Map<string, number>> {
  let counted: CountedReads | undefined
  const read = (environment: Environment): Environment => {
    counted = countedReads(environment)
    return counted.environment
  }
  const rig = await openRig([...base.flatMap(messagesOf), ...strangers(count)], { read })
  const costs = new Map<string, number>()
  const ask = async (name: string, query: string): Promise<unknown> => {
    // Words that were met before are remembered: counted is what a query costs again and again.
    await rig.ask(query)
    const before = counted?.reads ?? 0
    const { data, errors } = await rig.ask(query)
    costs.set(name, (counted?.reads ?? 0) - before)
    if (errors !== undefined) throw new Error(`${name}: ${errors[0]?.message}`)
    return data
  }
  for (const [name, wish] of Object.entries(wishes)) {
    const wanted = `first: 10${wish === '' ? '' : `, ${wish}`}`
    const result = (await ask(name, `{ transactions(${wanted}) { ${fields} } }`)) as {
      transactions: { edges: { cursor: string }[] }
    }
    const after = result.transactions.edges.at(-1)?.cursor
    if (after !== undefined)
      await ask(`${name}, next page`, `{ transactions(${wanted}, after: "${after}") { ${fields} } }`)
  }
  await ask('one', `{ transaction(id: "${known.id}") { id tags { name value } } }`)
  await ask('blocks', '{ blocks(first: 10, sort: HEIGHT_ASC) { edges { node { id height } } } }')
  await rig.close()
  return costs
}

function isNoDearer(t: Test, little: Map<string, number>, much: Map<string, number>): void {
  t.strictSame([...much.keys()], [...little.keys()])
  const dearer = [...much].filter(([name, reads]) => reads > (little.get(name) ?? 0) * 1.5 + 1)
  t.strictSame(dearer, [], 'reads of the index')
  t.comment(JSON.stringify([...much].map(([name, reads]) => [name, little.get(name), reads])))
}

t.test(`${many} items of one stranger, with the tags of others, make no query dearer`, async (t) => {
  const [little, much] = [await costsOfQueries(1), await costsOfQueries(many)]
  t.ok([...little.values()].every((reads) => reads > 0))
  isNoDearer(t, little, much)
})
