/** Nodes that took the chunks of a bundle and lost them: the only copy is kept, and sent until somebody shows it. */
import t, { type Test } from 'tap'
import type { DataSeen, DataWish } from '../../../src/chain/data-witnesses.js'
import { chunkSizeMax } from '../../../src/format/chunk.js'
import type { Id } from '../../../src/format/id.js'
import { refuse } from '../../../src/format/refusal.js'
import { type BundleRecord, unseenWarnings } from '../../../src/upload/bundling/bundle-records.js'
import { ReadBack, readBackOffsets } from '../../../src/upload/bundling/read-back.js'
import { eventually } from '../../eventually.js'
import { HandClock } from '../../http/hand-clock.js'
import { rigOf } from './bundler-rig.js'

const hourMs = 3_600_000
const away = refuse('upstream', 'upstream', 'away')
const [all, none, nobody]: ((wish: DataWish) => DataSeen)[] = [
  ({ offsets }) => ({ seen: offsets, missing: [] }),
  ({ offsets }) => ({ seen: [], missing: offsets }),
  () => ({ seen: [], missing: [], refusal: away }),
]
type Posted = { readonly enough: boolean; readonly results: readonly object[] }
const taken: Posted = { enough: true, results: [{ peer: 'http://taker', success: true }] }

/** A bundler whose transactions are deep at once, what its nodes show, and how they take chunks. Its clock follows its rounds. */
async function deepRig(t: Test) {
  const nodes = {
    show: all as (wish: DataWish) => DataSeen,
    take: async (_: number): Promise<Posted> => taken,
  }
  const wishes: DataWish[] = []
  /** Where each chunk that was sent ends. */
  const sent: number[] = []
  const witnesses = {
    look: async (wish: DataWish) => {
      wishes.push(wish)
      return nodes.show(wish)
    },
  }
  const chunk = (json: string): Promise<Posted> => {
    const end = Number((JSON.parse(json) as { offset: string }).offset)
    sent.push(end)
    return nodes.take(end)
  }
  const agreedStatus = async (): Promise<object> => ({ kind: 'mined', height: 5, confirmations: 60 })
  const more = { witnesses, broadcast: { chunk }, onMined: () => undefined } as unknown as Parameters<
    typeof rigOf
  >[3]
  const rig = await rigOf(t, undefined, 100n, more, { agreedStatus })
  let nowMs = rig.clock.now()
  rig.clock.now = () => nowMs
  const pass = async (ms: number): Promise<void> => {
    nowMs += ms
    await rig.turn(ms)
  }
  /** Rounds until it is so. */
  const until = (what: string, isSo: () => boolean, ms = 5000): Promise<true> =>
    eventually(what, async () => {
      await pass(ms)
      return isSo()
    })
  const bundleOf = (id: Id): BundleRecord | undefined => {
    const { bundle } = rig.uploads.find(id) ?? {}
    return bundle === undefined ? undefined : rig.bundles.find(bundle)
  }
  return { ...rig, nodes, pass, until, wishes, sent, bundleOf, now: () => nowMs }
}

t.test('an item is not permanent, and its bytes stay, until nodes show its data', async (t) => {
  const { uploads, bundles, accept, until, wishes, sent, nodes, bundleOf } = await deepRig(t)
  nodes.show = none as typeof nodes.show
  const id = accept('the only copy')
  await until('it is sent again and again', () => sent.length > 4, hourMs)
  t.match(uploads.find(id), { permanent: undefined, released: undefined })
  const bundle = bundleOf(id)
  t.match(bundle, { reason: /no node shows/, height: 5, unshown: 'missing' })
  t.ok((bundle?.unseen ?? 0) > 1, 'it is looked at again')
  t.match(unseenWarnings(bundles), [/^1 bundles .* 1 missing, 0 silent, 0 untaken$/])
  t.match(wishes[0], { last: new Set(['http://taker']), offsets: [(bundle?.sizeBytes ?? 0) - 1] })
  nodes.show = all as typeof nodes.show
  await until('it is permanent', () => uploads.find(id)?.permanent === 5, hourMs)
  t.strictSame(unseenWarnings(bundles), [])
  await until('its bytes are gone', () => uploads.find(id)?.released === true, hourMs)
})

t.test('nodes that do not answer take nothing away', async (t) => {
  const { uploads, bundles, accept, until, sent, wishes, nodes } = await deepRig(t)
  nodes.show = nobody as typeof nodes.show
  const id = accept('an item')
  await until('it is looked at', () => wishes.length > 12, hourMs)
  t.match(uploads.find(id), { permanent: undefined, released: undefined })
  t.match(bundles.open(), [{ state: 'seeded', reason: 'away', unshown: 'silent' }])
  t.equal(sent.length, 1)
  nodes.show = all as typeof nodes.show
  await until('it is permanent', () => uploads.find(id)?.permanent === 5)
})

t.test('a bundle of an older release is looked at before its bytes are released', async (t) => {
  const { uploads, bundles, accept, pass, until, nodes, wishes, bundleOf } = await deepRig(t)
  const id = accept('an item')
  await until('it is permanent', () => uploads.find(id)?.permanent === 5)
  const { isSeen: _, ...older } = bundleOf(id) as BundleRecord
  bundles.put(older)
  nodes.show = none as typeof nodes.show
  const looks = wishes.length
  await until('it is looked at', () => wishes.length > looks, hourMs)
  await pass(hourMs)
  t.equal(uploads.find(id)?.released, undefined)
  nodes.show = all as typeof nodes.show
  await until('it is released', () => uploads.find(id)?.released === true, hourMs)
})

t.test('a look goes on where the last one ended', async (t) => {
  const { uploads, accept, until, wishes, nodes, sent } = await deepRig(t)
  nodes.show = ({ offsets }) => ({ seen: offsets.slice(0, 1), missing: [], refusal: away })
  const id = accept('x'.repeat(3 * chunkSizeMax))
  await until('it is permanent', () => uploads.find(id)?.permanent === 5)
  t.strictSame(
    wishes.map(({ offsets }) => offsets.length),
    [4, 3, 2, 1],
  )
  t.equal(sent.length, 4, 'nothing is sent again')
})

t.test('only chunks that are missing are sent again, and looked at again', async (t) => {
  const { uploads, accept, until, wishes, nodes, sent } = await deepRig(t)
  nodes.show = ({ offsets }) => ({ seen: offsets.filter((_, at) => at !== 1), missing: offsets.slice(1, 2) })
  const id = accept('x'.repeat(3 * chunkSizeMax))
  await until('it is looked at', () => wishes.length === 1)
  nodes.show = all as typeof nodes.show
  await until('it is permanent', () => uploads.find(id)?.permanent === 5)
  t.strictSame(sent.slice(4), [2 * chunkSizeMax - 1])
  t.strictSame(wishes[1]?.offsets, [chunkSizeMax])
})

t.test('what is sent again keeps nothing new waiting, and one bundle is sent at a time', async (t) => {
  const { uploads, accept, until, nodes, sent, bundleOf } = await deepRig(t)
  nodes.show = none as typeof nodes.show
  const old = [accept('one'), accept('x'.repeat(100_000)), accept('y'.repeat(100_000))]
  await until('all are looked at', () => old.every((id) => bundleOf(id)?.unshown === 'missing'), 1000)
  let end: (posted: Posted) => void = () => undefined
  let hanging = 0
  nodes.take = () => {
    hanging += 1
    return new Promise((resolve) => {
      end = resolve
    })
  }
  await until('one hangs', () => hanging === 1, hourMs)
  nodes.take = async () => taken
  const before = sent.length
  nodes.show = all as typeof nodes.show
  const young = accept('a new item')
  await until('what is new is permanent', () => uploads.find(young)?.permanent === 5)
  t.equal(sent.length, before + 1)
  end(taken)
  await until('all are permanent', () => old.every((id) => uploads.find(id)?.permanent === 5), hourMs)
})

t.test('pauses grow, and what nodes do not take is looked at again, too', async (t) => {
  const { uploads, accept, until, nodes, bundleOf, now, wishes } = await deepRig(t)
  nodes.show = none as typeof nodes.show
  const id = accept('an item')
  await until('it is looked at', () => wishes.length === 1)
  nodes.take = async () => ({ enough: false, results: [] })
  const began = now()
  await until('many looks', () => (bundleOf(id)?.unseen ?? 0) >= 20, hourMs / 2)
  t.ok(now() - began > 24 * hourMs, `${(now() - began) / hourMs} hours`)
  await until('it waits', () => bundleOf(id)?.state === 'seeded')
  t.match(bundleOf(id), { unshown: 'untaken', reason: /not taken/ })
  nodes.show = all as typeof nodes.show
  await until('it is permanent', () => uploads.find(id)?.permanent === 5, hourMs)
})

t.test('an operator who knows better ends the wait', async (t) => {
  const { uploads, bundles, bundler, accept, until, nodes, bundleOf } = await deepRig(t)
  nodes.show = nobody as typeof nodes.show
  const id = accept('an item')
  await until('it waits', () => bundleOf(id)?.unshown === 'silent')
  await bundler.betweenRounds(() => bundler.trust(bundleOf(id) as BundleRecord))
  t.match(bundleOf(id), { state: 'permanent', height: 5, unshown: undefined, reason: undefined })
  t.equal(uploads.find(id)?.permanent, 5)
  t.strictSame(bundles.unshown(), [])
  await until('its bytes are gone', () => uploads.find(id)?.released === true, hourMs)
})

t.test('what nodes deny while others do not answer is missing when it stays so for minutes', async (t) => {
  const { uploads, accept, pass, until, wishes, sent, nodes, bundleOf } = await deepRig(t)
  nodes.show = ({ offsets }) => ({ seen: [], missing: [], doubtful: offsets })
  const [one, other] = [accept('one'), accept('x'.repeat(100_000))]
  await until('both are looked at', () => wishes.length > 3, 1000)
  t.match(bundleOf(one), { state: 'seeded', unshown: 'silent', reason: /do not answer/ })
  const count = sent.length
  nodes.show = ({ id, offsets }) =>
    id === bundleOf(one)?.id ? { seen: offsets, missing: [] } : { seen: [], missing: [], doubtful: offsets }
  await until('one is permanent', () => uploads.find(one)?.permanent === 5, 1000)
  t.equal(sent.length, count, 'nothing is sent again')
  await pass(300_000)
  await until('the other one is sent again', () => sent.length > count, 60_000)
  t.match(bundleOf(other), { unshown: 'missing' })
})

t.test('bundles that nobody shows leave places for others', async (t) => {
  const looked: Id[] = []
  const witnesses = {
    look: ({ id }: DataWish): Promise<DataSeen> => {
      looked.push(id)
      return new Promise(() => undefined)
    },
  }
  const readBack = new ReadBack({ witnesses, clock: new HandClock() })
  const of = (id: string, more: object = {}): BundleRecord =>
    ({ id, sizeBytes: 10, transaction: { data_root: 'A'.repeat(43) }, ...more }) as unknown as BundleRecord
  for (const id of ['a', 'b', 'c', 'd']) readBack.outcome(of(id, { unshown: 'missing' }))
  for (const id of ['e', 'f', 'g']) readBack.outcome(of(id))
  t.strictSame(looked, ['a', 'b', 'e', 'f'])
})

t.test('all chunks of a small bundle are read back, and a sample of a large one', async (t) => {
  const small = 3 * chunkSizeMax + 10
  t.strictSame(readBackOffsets(small, Math.random), [0, chunkSizeMax, 2 * chunkSizeMax, small - 1])
  t.strictSame(readBackOffsets(10, Math.random), [9])
  const large = 8192 * chunkSizeMax
  const offsets = readBackOffsets(large, Math.random)
  t.equal(new Set(offsets.map((at) => Math.floor(at / chunkSizeMax))).size, 64)
  t.ok(offsets.includes(0) && offsets.includes(large - 1))
})
