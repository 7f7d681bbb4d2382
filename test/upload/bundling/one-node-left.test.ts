/** Where one node decides alone, or a wrong answer is on disk: nothing is lost, given up or held up by it. */
import t from 'tap'
import { parseBlockHash, type TransactionStatus } from '../../../src/chain/chain.js'
import type { Id } from '../../../src/format/id.js'
import { type Refusal, refuse } from '../../../src/format/refusal.js'
import type { BundlerParts } from '../../../src/upload/bundling/bundler-parts.js'
import { LostBundles } from '../../../src/upload/bundling/lost-bundles.js'
import { eventually } from '../../eventually.js'
import { HandClock } from '../../http/hand-clock.js'
import { rigOf, rules } from './bundler-rig.js'

const unknown = refuse('unknown', 'upstream', 'no node has it')
const away = refuse('upstream', 'upstream', 'away')
const wrong = refuse('malformed', 'client', 'a node refuses: Invalid anchor (last_tx).')
const block = parseBlockHash('B'.repeat(64))
if (block === undefined) throw new Error('no hash')
const deep: TransactionStatus = { kind: 'mined', height: 1003, block, confirmations: 100 }
const onMined = (): undefined => undefined
const hourMs = 3_600_000

t.test('an item whose transactions all are refused for days, as all are, is never given up', async (t) => {
  const rig = await rigOf(t, () => wrong)
  const id = rig.accept('one')
  for (let at = 0; at < 48 * 4; at += 1) await rig.turn(hourMs / 4)
  t.ok(rig.bundles.recent.length > 4, `${rig.bundles.recent.length} bundles were tried`)
  t.match(rig.uploads.find(id), { reason: undefined, failures: 0 })
})

t.test('the bytes of a permanent bundle are kept where nodes do not have it deep any more', async (t) => {
  const box: { status: TransactionStatus | Refusal; height: number } = { status: deep, height: 1100 }
  const more = { height: () => box.height, onMined }
  const rig = await rigOf(t, undefined, 100n, more, { agreedStatus: async () => box.status })
  const id = rig.accept('one')
  await rig.round()
  const bundle = rig.uploads.find(id)?.bundle ?? id
  for (let at = 0; at < 9; at += 1) await rig.turn(rules.lookMs)
  t.match(rig.bundles.find(bundle), { state: 'permanent', released: undefined })
  box.status = away
  await rig.turn(hourMs)
  await rig.turn(hourMs)
  t.match(rig.bundles.find(bundle), { state: 'permanent', released: undefined }, 'nobody states it')
  box.status = unknown
  await rig.turn(hourMs)
  t.match(rig.bundles.find(bundle), { state: 'seeded', released: undefined })
  box.height += 60
  for (let at = 0; at < 9; at += 1) await rig.turn(10 * rules.lookMs)
  t.not(rig.uploads.find(id)?.bundle, bundle, 'its items go into another one')
  box.status = deep
  for (let at = 0; at < 9; at += 1) await rig.turn(hourMs)
  t.match(rig.uploads.find(id), { released: true })
})

t.test('a bundle that is mined is found though the wallet has too little for another', async (t) => {
  let height = 1000
  let posts = 0
  const post = (): object => {
    posts += 1
    return posts === 1 ? away : wrong
  }
  const more = { height: () => height, onMined }
  const rig = await rigOf(t, post, 0n, more, { agreedStatus: async () => (height > 1050 ? deep : away) })
  const id = rig.accept('one')
  await rig.round()
  const bundle = rig.uploads.find(id)?.bundle ?? id
  await rig.turn(60_000)
  t.match(rig.bundles.find(bundle), { state: 'packed' })
  height = 1060
  for (let at = 0; at < 9; at += 1) await rig.turn(60_000)
  t.match(rig.bundles.find(bundle), { state: 'permanent' })
})

t.test('a bundle whose anchor is over waits for no wallet', async (t) => {
  let height = 1000
  const rig = await rigOf(t, () => wrong, 0n, { height: () => height, onMined })
  const id = rig.accept('one')
  await rig.round()
  const bundle = rig.uploads.find(id)?.bundle ?? id
  await rig.turn(60_000)
  t.match(rig.bundles.find(bundle), { state: 'packed' })
  height = 1060
  for (let at = 0; at < 9; at += 1) await rig.turn(60_000)
  t.match(rig.bundles.find(bundle), { state: 'dropped' })
  t.equal(rig.uploads.find(id)?.failures ?? 0, 0)
})

t.test('an anchor with a height that no chain has ends all the same', (t) => {
  const box = { height: 1000 }
  const lost = new LostBundles({ clock: new HandClock(), height: () => box.height, rules: { ...rules } })
  const id = 'A'.repeat(43) as Id
  t.equal(lost.blocksOver({ id, anchorHeight: 2e9 }), -50)
  lost.forget(id)
  box.height += 60
  t.equal(lost.blocksOver({ id, anchorHeight: 2e9 }), 10)
  t.equal(
    lost.blocksOver({ id: 'B'.repeat(43) as Id, anchorHeight: 1100 }),
    -90,
    'the height is known later than the anchor',
  )
  t.end()
})

t.test('the one node that takes chunks gets all of them', async (t) => {
  const got = new Set<string>()
  const chunk = async (json: string): Promise<object> => {
    got.add((JSON.parse(json) as { readonly offset: string }).offset)
    const refused = { peer: 'http://two', success: false, statusCode: 502, timedOut: false }
    return { enough: false, results: [{ peer: 'http://one', success: true, timedOut: false }, refused] }
  }
  const more = { broadcast: { chunk }, onMined, rules: { ...rules, bytesMax: 10_000_000 } }
  const rig = await rigOf(t, undefined, 100n, more as unknown as Partial<BundlerParts>)
  for (let at = 0; at < 10; at += 1) rig.accept(`${at}`.repeat(250_000))
  await rig.round()
  t.ok(got.size < 10, 'two are wanted at first')
  await eventually('it is sent', async () => {
    await rig.turn(60_000)
    return rig.bundles.open().every(({ state }) => state === 'seeded')
  })
  t.ok(got.size >= 10, `${got.size} chunks`)
  t.match(rig.bundles.open(), [{ takenBy: ['http://one'] }])
})

t.test('a bug at its chunks delays a bundle, and ends nothing else', async (t) => {
  let isBroken = true
  const chunk = async (): Promise<object> => {
    if (isBroken) throw new Error('a bug')
    return { enough: true, results: [] }
  }
  const more = { broadcast: { chunk }, onMined, rules: { ...rules, bytesMax: 10_000_000 } }
  const rig = await rigOf(t, undefined, 100n, more as unknown as Partial<BundlerParts>)
  for (let at = 0; at < 10; at += 1) rig.accept(`${at}`.repeat(250_000))
  await rig.round()
  t.match(rig.bundles.open(), [{ state: 'posted' }])
  isBroken = false
  await eventually('it is sent', async () => {
    await rig.turn(301_000)
    return rig.bundles.open().every(({ state }) => state === 'seeded')
  })
})

t.test('what one node alone has in a block is posted again to the others', async (t) => {
  let posts = 0
  const post = (): object => {
    posts += 1
    return {}
  }
  const contested = { kind: 'pending', isContested: true }
  const rig = await rigOf(t, post, 100n, { onMined }, { agreedStatus: async () => contested })
  rig.accept('one')
  await rig.round()
  for (let at = 0; at < 4; at += 1) await rig.turn(60_000)
  t.ok(posts > 2, `${posts} posts`)
})
