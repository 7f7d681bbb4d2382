/** Transactions that nodes have taken while their answer was lost: no other bundle is paid for the same items. */
import t from 'tap'
import { refuse } from '../../../src/format/refusal.js'
import { rigOf } from './bundler-rig.js'

const silent = refuse('upstream', 'upstream', 'no answer')
const unknown = refuse('unknown', 'upstream', 'no node has it')
/** More than the attempts after which a bundle is given up that no node has. */
const attempts = 80

async function lostRig(t: Parameters<typeof rigOf>[0]) {
  const chain = { status: silent as object, posts: 0, height: 1, onPost: (_: string): unknown => undefined }
  const rig = await rigOf(
    t,
    undefined,
    100n,
    { height: () => chain.height },
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
  chain.status = { kind: 'pending' }
  await attempt(2)
  t.not(bundles.find(bundle)?.state, 'packed')
  t.equal(holder(), bundle)
})

t.test('after a long outage nothing is given up for what nodes state at one moment', async (t) => {
  const { bundles, chain, attempt, bundle, holder } = await lostRig(t)
  await attempt(attempts)
  const transactions = new Set<string>()
  chain.onPost = (id) => transactions.add(id)
  chain.status = unknown
  await attempt(3)
  t.match(bundles.find(bundle), { state: 'packed' })
  t.ok(transactions.has(bundle), 'its anchor holds, so it is posted')
  chain.height = 60
  await attempt(1)
  t.match(bundles.find(bundle), { state: 'packed' }, 'nodes may know their blocks, and transactions later')
  chain.status = { kind: 'pending' }
  await attempt(3)
  t.not(bundles.find(bundle)?.state, 'packed')
  t.equal(holder(), bundle)
  t.strictSame([...transactions], [bundle])
})

t.test('a bundle that no node has is posted until its anchor ends, and packed again then', async (t) => {
  const { bundles, chain, attempt, bundle, holder, uploads } = await lostRig(t)
  chain.status = unknown
  await attempt(attempts)
  t.ok(chain.posts > attempts / 4, `${chain.posts} posts`)
  t.match(bundles.find(bundle), { state: 'packed' })
  chain.height = 60
  await attempt(8)
  t.match(bundles.find(bundle), { state: 'dropped' })
  const item = bundles.find(bundle)?.items[0] ?? bundle
  t.equal(uploads.find(item)?.failures ?? 0, 0, 'nobody refused it')
  t.not(holder(), bundle)
})
