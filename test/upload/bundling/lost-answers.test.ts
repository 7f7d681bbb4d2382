/** Transactions that nodes have taken while their answer was lost: no other bundle is paid for the same items. */
import t from 'tap'
import { refuse } from '../../../src/format/refusal.js'
import { rigOf } from './bundler-rig.js'

const silent = refuse('upstream', 'upstream', 'no answer')
const unknown = refuse('unknown', 'upstream', 'no node has it')
/** More than the attempts after which a bundle is given up that no node has. */
const attempts = 80

async function lostRig(t: Parameters<typeof rigOf>[0]) {
  const chain = { status: silent as object, posts: 0, onPost: (_: string): unknown => undefined }
  const rig = await rigOf(
    t,
    undefined,
    100n,
    {},
    {
      agreedStatus: async () => chain.status,
      postTransaction: async ({ id }: { readonly id: string }) => {
        chain.posts += 1
        chain.onPost(id)
        return silent
      },
    },
  )
  const id = rig.accept('paid')
  await rig.round()
  const bundle = rig.bundles.open()[0]?.id
  if (bundle === undefined) throw new Error('nothing was packed')
  const attempt = async (times: number): Promise<void> => {
    for (let time = 0; time < times; time += 1) {
      rig.bundles.delay(bundle, rig.clock.now())
      await rig.turn(1000)
    }
  }
  return { ...rig, chain, attempt, bundle, holder: () => rig.uploads.find(id)?.bundle }
}

t.test('a bundle that nodes have is posted, though no post had an answer', async (t) => {
  const { bundles, chain, attempt, bundle, holder } = await lostRig(t)
  await attempt(attempts)
  t.match(bundles.find(bundle), { state: 'packed' }, 'while no node states anything it is kept')
  t.ok(chain.posts > 10, 'the same transaction is posted again, which costs nothing twice')
  const { posts } = chain
  chain.status = { kind: 'pending' }
  await attempt(2)
  t.not(bundles.find(bundle)?.state, 'packed')
  t.equal(holder(), bundle)
  t.equal(chain.posts, posts)
})

t.test('after a long outage nothing is posted that is given up at once', async (t) => {
  const { bundles, chain, attempt, bundle } = await lostRig(t)
  await attempt(attempts)
  const transactions = new Set<string>()
  chain.onPost = (id) => transactions.add(id)
  chain.status = unknown
  await attempt(1)
  await attempt(1)
  t.match(bundles.find(bundle), { state: 'dropped' })
  t.notOk(transactions.has(bundle), 'its answer could be lost')
})

t.test('a bundle that no node has is posted again, and its items are packed again in the end', async (t) => {
  const { bundles, chain, attempt, bundle, holder } = await lostRig(t)
  chain.status = unknown
  await attempt(attempts)
  t.ok(chain.posts > 10, `${chain.posts} posts`)
  t.match(bundles.find(bundle), { state: 'dropped' })
  t.not(holder(), bundle)
})
