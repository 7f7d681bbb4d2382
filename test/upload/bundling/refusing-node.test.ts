/** Nodes that refuse what is right: for as long as a bad day takes, no item is given up for it. */
import t from 'tap'
import type { Id } from '../../../src/format/id.js'
import { refuse } from '../../../src/format/refusal.js'
import { rigOf } from './bundler-rig.js'

const hourMs = 3_600_000
const wrong = refuse('malformed', 'client', 'a node refuses: Invalid anchor (last_tx).')

t.test('items outlast hours in which every transaction is refused', async (t) => {
  let isRefused = true
  const { uploads, bundles, accept, round, turn } = await rigOf(t, () => (isRefused ? wrong : {}))
  const ids = Array.from({ length: 5 }, (_, at) => accept(`paid ${at}`))
  for (let waitedMs = 0; waitedMs < 5 * hourMs; waitedMs += 600_000) await turn(600_000)
  t.ok(bundles.recent.length < 20, `${bundles.recent.length} bundles were tried`)
  t.ok(bundles.recent.length > 2)
  for (const id of ids) t.equal(uploads.find(id)?.reason, undefined, 'it is not given up')
  isRefused = false
  await round(hourMs)
  await round(hourMs)
  for (const id of ids) t.ok(uploads.find(id)?.bundle, 'and goes out when the nodes are well')
})

t.test('a bundle waits for a wallet that has too little for all that is under way', async (t) => {
  let isPoor = false
  const { uploads, bundles, accept, round } = await rigOf(t, () => (isPoor ? wrong : {}), 1n)
  const first = accept('paid')
  await round()
  await round(1000)
  t.ok(uploads.find(first)?.bundle)
  // Its reward (1) is not taken from the balance (1) yet.
  isPoor = true
  const second = accept('paid, too')
  await round()
  await round(1000)
  t.match(bundles.find(uploads.find(second)?.bundle as Id), { state: 'packed', reason: /anchor/ })
  t.equal(uploads.find(second)?.failures ?? 0, 0)
})

t.test('what another machine has taken over is not posted, and is no failure of its items', async (t) => {
  let posts = 0
  let isTaken = true
  const post = (): object => {
    posts += 1
    return {}
  }
  const isTakenOver = async (): Promise<boolean> => isTaken
  const { uploads, bundles, accept, round } = await rigOf(t, post, 100n, { isTakenOver })
  const id = accept('paid')
  for (let rounds = 0; rounds < 8; rounds += 1) await round(hourMs)
  t.equal(posts, 0)
  t.match(uploads.find(id), { bundle: undefined, reason: undefined })
  t.equal(uploads.find(id)?.failures ?? 0, 0)
  t.ok(bundles.recent.every(({ state }) => state === 'dropped'))
  isTaken = false
  await round(hourMs)
  await round(hourMs)
  t.equal(posts, 1)
})
