/** The index of a whole program whose rows leave the tables at once: they are found like all others, also after a kill. */
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { encodeBundle } from '../../src/format/bundle.js'
import { eventually } from '../eventually.js'
import { bundleTags, item } from '../source/weave.js'
import { payerAt } from './payer.js'
import { run } from './running.js'

const environment = {
  SERVICES: 'gateway',
  DEVNET_BLOCK_MS: '0',
  INDEX_SEGMENT_ROWS: '4',
  CHAIN_FORK_DEPTH_MAX: '2',
}

/** Ids of the items with a tag, by GraphQL. */
async function found(gateway: string): Promise<string[]> {
  const query = '{transactions(first:100,tags:[{name:"App",values:["segments"]}]){edges{node{id}}}}'
  const answer = await fetch(`${gateway}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  })
  const { data } = (await answer.json()) as {
    data?: { transactions: { edges: { node: { id: string } }[] } }
  }
  return (data?.transactions.edges ?? []).map(({ node }) => node.id).sort()
}

t.test('rows that left the tables of the index are found, also after a kill', async (t) => {
  const dataPath = t.testdir()
  const running = await run(t, dataPath, environment)
  const { gateway = '', devnet: node = '' } = running.urls
  const { post } = await payerAt(node)
  const items = Array.from({ length: 9 }, () => item(randomBytes(20), { App: 'segments' }))
  for (const from of [0, 3, 6]) await post(encodeBundle(items.slice(from, from + 3)), bundleTags)
  await fetch(`${node}/mine/5`)
  const ids = items.map(({ id }) => id).sort()
  const isThere = async (): Promise<boolean> => {
    // Each commit is an occasion for a flush.
    await fetch(`${node}/mine/1`)
    const isDone = running.log.some(({ msg }) => msg === 'stable rows of the index are in segments')
    return isDone && (await found(gateway)).length === ids.length
  }
  t.ok(await eventually('the rows are in a segment', isThere), 'they are in a segment')
  t.same(await found(gateway), ids)
  await running.kill()
  t.ok(readdirSync(join(dataPath, 'catalog', 'segments')).length > 0)

  const again = await run(t, dataPath, environment)
  t.same(await found(again.urls.gateway ?? ''), ids)
  for (const { id } of items) t.equal((await fetch(`${again.urls.gateway}/raw/${id}`)).status, 200)
  t.equal(await again.stop(), 0)
})
