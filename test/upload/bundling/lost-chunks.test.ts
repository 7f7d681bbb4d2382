/** Nodes that took the chunks of a bundle and lost them: the only copy is kept, and sent until somebody shows it. */
import t, { type Test } from 'tap'
import type { DataSeen, DataWish } from '../../../src/chain/data-witnesses.js'
import { chunkSizeMax } from '../../../src/format/chunk.js'
import { refuse } from '../../../src/format/refusal.js'
import type { BundleRecord } from '../../../src/upload/bundling/bundle-records.js'
import { readBackOffsets } from '../../../src/upload/bundling/read-back.js'
import { rigOf } from './bundler-rig.js'

const hourMs = 3_600_000

/** A bundler whose transactions are deep at once; `seen`: what the nodes show. The clock of dates goes on with its rounds. */
async function deepRig(t: Test, seen: () => DataSeen) {
  const wishes: DataWish[] = []
  let sent = 0
  const witnesses = {
    look: async (wish: DataWish) => {
      wishes.push(wish)
      return seen()
    },
  }
  const chunk = async (): Promise<object> => {
    sent += 1
    return { enough: true, results: [{ peer: 'http://taker', success: true }] }
  }
  const agreedStatus = async (): Promise<object> => ({ kind: 'mined', height: 5, confirmations: 60 })
  const more = { witnesses, broadcast: { chunk }, onMined: () => undefined } as unknown as Parameters<
    typeof rigOf
  >[3]
  const rig = await rigOf(t, undefined, 100n, more, { agreedStatus })
  let nowMs = rig.clock.now()
  rig.clock.now = () => nowMs
  const pass = async (ms: number, rounds = 1): Promise<void> => {
    for (let at = 0; at < rounds; at += 1) {
      nowMs += ms
      await rig.turn(ms)
    }
  }
  return { ...rig, pass, wishes, sent: () => sent }
}

t.test('an item is not permanent, and its bytes stay, until nodes show its data', async (t) => {
  let seen: DataSeen = 'missing'
  const { uploads, bundles, accept, pass, wishes, sent } = await deepRig(t, () => seen)
  const id = accept('the only copy')
  await pass(5000, 6)
  await pass(2 * hourMs, 6)
  t.match(uploads.find(id), { permanent: undefined, released: undefined })
  const [bundle] = bundles.open()
  t.match(bundle, { reason: /no node shows/, height: 5 })
  t.ok((bundle?.unseen ?? 0) > 1, 'it is looked at again')
  t.ok(sent() > 2, 'and what is missing is sent again')
  t.match(wishes[0], {
    last: new Set(['http://taker']),
    offsets: [bundle === undefined ? 0 : bundle.sizeBytes - 1],
  })
  seen = 'seen'
  await pass(2 * hourMs, 4)
  t.equal(uploads.find(id)?.permanent, 5)
  await pass(2 * hourMs, 2)
  t.equal(uploads.find(id)?.released, true)
})

t.test('nodes that do not answer take nothing away', async (t) => {
  let seen: DataSeen = refuse('upstream', 'upstream', 'away')
  const { uploads, bundles, accept, pass, sent } = await deepRig(t, () => seen)
  const id = accept('an item')
  await pass(5000, 6)
  await pass(2 * hourMs, 60)
  t.match(uploads.find(id), { permanent: undefined, released: undefined })
  t.match(bundles.open(), [{ state: 'seeded', reason: 'away' }])
  t.equal(sent(), 1)
  seen = 'seen'
  await pass(2 * hourMs, 4)
  t.equal(uploads.find(id)?.permanent, 5)
})

t.test('a bundle of an older release is looked at before its bytes are released', async (t) => {
  let seen: DataSeen = 'seen'
  const { uploads, bundles, accept, pass } = await deepRig(t, () => seen)
  const id = accept('an item')
  await pass(5000, 6)
  const { isSeen: _, ...older } = bundles.find(uploads.find(id)?.bundle ?? id) as BundleRecord
  bundles.put(older)
  seen = 'missing'
  await pass(2 * hourMs, 6)
  t.equal(uploads.find(id)?.released, undefined)
  seen = 'seen'
  await pass(2 * hourMs, 8)
  t.equal(uploads.find(id)?.released, true)
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
