import Arweave from 'arweave'
import t from 'tap'
import { Chain, halfTag } from '../../bench/index/chain.js'
import { blockMessage, itemsMessage } from '../catalog/index-model.js'
import { openRig } from './rig.js'

const chain = [...new Chain({ items: 300, itemsPerBundle: 50, bundlesPerBlock: 2, seed: 4 }).blocks()]

t.test('arweave-js pages through a query as its users write it', async (t) => {
  const rig = await openRig(
    chain.flatMap(({ block, transactions, bundles }) => [
      blockMessage(block, transactions),
      ...bundles.map(({ rootId, items }) => itemsMessage(rootId, items)),
    ]),
  )
  const { hostname, port } = new URL(rig.url)
  const arweave = Arweave.init({
    host: hostname,
    port,
    protocol: 'http',
  })
  // The shape in which file-system clients read a drive: tags and owner, page by page, the cursor empty at
  // first.
  const query = `query ($cursor: String, $values: [String!]!) {
    transactions(first: 20, sort: HEIGHT_ASC, after: $cursor, tags: [{ name: "${halfTag.name}", values: $values }]) {
      pageInfo { hasNextPage }
      edges { cursor node { id owner { address } bundledIn { id } tags { name value } block { height timestamp } } }
    }
  }`
  const ids: string[] = []
  for (let cursor = '', more = true; more; ) {
    const { data, status } = await arweave.api.post('graphql', {
      query,
      variables: { cursor, values: [halfTag.value] },
    })
    t.equal(status, 200)
    const { edges, pageInfo } = data.data.transactions
    for (const { node } of edges) ids.push(node.id)
    cursor = edges.at(-1)?.cursor ?? ''
    more = pageInfo.hasNextPage
  }
  const items = chain.flatMap(({ bundles }) => bundles.flatMap(({ items }) => items))
  const wanted = items.filter(({ tags }) =>
    tags.some(({ name }) => Buffer.from(name).toString() === halfTag.name),
  )
  t.same([...ids].sort(), wanted.map(({ id }) => id).sort())
  await rig.close()
})
