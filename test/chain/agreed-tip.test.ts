/** A node that stands still, or lies, decides neither the height nor the anchor of transactions. */
import t from 'tap'
import { AgreedTips, areHeightsClear, type StatedTip } from '../../src/chain/agreed-tip.js'
import { type BlockHash, parseBlockHash } from '../../src/chain/chain.js'
import { isRefusal, type Refusal, refuse } from '../../src/format/refusal.js'
import { HandClock } from '../http/hand-clock.js'

const silent = refuse('upstream', 'upstream', 'no answer')
const unknown = refuse('unknown', 'upstream', 'no such block')
const anchorOf = (number: number): BlockHash => {
  const hash = parseBlockHash(Buffer.alloc(48, number).toString('base64url'))
  if (hash === undefined) throw new Error('no hash')
  return hash
}
const [good, old, made] = [anchorOf(1), anchorOf(2), anchorOf(3)]
const hourMs = 3_600_000

const tipsOf = (clock = new HandClock()): AgreedTips => new AgreedTips(clock)

/** A tip; `knows`: the height of the other's anchor at this node. */
function tip(height: number, anchor: BlockHash, knows: number | Refusal = unknown): StatedTip {
  return { node: `${height} ${anchor}`, height, anchor, heightOf: async () => knows }
}

t.test('the height', (t) => {
  t.equal(tipsOf().height([100], 1), 100)
  t.equal(tipsOf().height([100, 2e9], 2), 100, 'of two the lower, where nothing is known')
  for (const lie of [0, 40, 2e9]) t.equal(tipsOf().height([100, lie, 101], 3), 100)
  t.equal(tipsOf().height([100, silent], 2), 100)
  t.ok(isRefusal(tipsOf().height([silent, 2e9, silent], 3)))
  t.equal(tipsOf().height([100, silent, 101], 3), 100)
  t.ok(areHeightsClear([100, 101], 3))
  t.notOk(areHeightsClear([100, 2e9], 3), 'the third decides')
  t.notOk(areHeightsClear([100], 3))
  t.end()
})

t.test('what most stated before is what one node alone cannot change', (t) => {
  const clock = new HandClock()
  const tips = tipsOf(clock)
  t.equal(tips.height([1000, 1001, 1000], 3), 1000)
  for (const lie of [5, 2e9]) {
    t.equal(tips.height([1002, lie], 3), 1002, 'the third does not answer')
    t.equal(tips.height([lie, 1002], 2), 1002)
    t.ok(isRefusal(tips.height([lie], 3)), 'alone')
    t.ok(isRefusal(tips.height([silent, lie], 2)))
  }
  t.equal(tips.height([silent, 1003], 2), 1003)
  clock.jump(24 * hourMs)
  t.equal(tips.height([1720, silent], 2), 1720)
  t.equal(tips.height([1720, 1005], 3), 1720, 'one that stands still')
  t.equal(tips.height([300, 300], 2), 300, 'most say so')
  t.equal(tipsOf().height([1], 1, { height: 1000, ageMs: hourMs }), 1, 'the only one')
  t.ok(isRefusal(tipsOf().height([5, silent], 2, { height: 1000, ageMs: hourMs })))
  t.equal(tipsOf().height([5, 1030], 2, { height: 1000, ageMs: hourMs }), 1030)
  t.end()
})

t.test('the anchor, and its height', async (t) => {
  const stated = (...some: (StatedTip | Refusal)[]) => tipsOf().tip(some, some.length)
  t.same(await stated(tip(100, good)), { anchor: good, height: 100 })
  t.same(await stated(tip(40, old), tip(100, good), tip(101, good)), { anchor: good, height: 101 })
  t.same(await stated(tip(40, old), tip(100, good)), { anchor: good, height: 100 }, 'one stands still')
  t.ok(isRefusal(await stated(silent, silent)))
  t.ok(isRefusal(await stated(silent, tip(100, good), silent)))
  t.same(
    await stated(tip(5, good, 98), tip(100, good, 98)),
    { anchor: good, height: 98 },
    'the height of one is no height at which its own chain has this block',
  )
  t.same(await stated(tip(2e9, good, 98), tip(100, good, 98)), { anchor: good, height: 100 })
  for (const lie of [2e9, 102, 0])
    t.same(await stated(tip(80, old, lie), tip(101, good)), { anchor: good, height: 101 }, 'no such block')
})

t.test('an anchor that all refuse is not given again where another node states another', async (t) => {
  const tips = tipsOf()
  const both = [tip(2e9, made), tip(100, good)]
  t.same(await tips.tip(both, 2), { anchor: made, height: 2e9 })
  tips.refused(old)
  t.same(await tips.tip(both, 2), { anchor: made, height: 2e9 })
  tips.refused(made)
  t.same(await tips.tip(both, 2), { anchor: good, height: 100 })
  t.same(await tips.tip(both, 2), { anchor: good, height: 100 })
  const known = tipsOf()
  known.height([100, 100], 2)
  t.same(await known.tip(both, 2), { anchor: good, height: 100 }, 'no chain grows so fast')
})

t.test('of nodes that are near each other, an anchor counts that another one knows', async (t) => {
  const stated = (...some: StatedTip[]) => tipsOf().tip(some, some.length)
  const recent = { anchor: good, height: 100 }
  t.same(await stated(tip(100, old, 98), tip(100, good, 40)), recent, 'a cache holds an old one')
  t.same(await stated(tip(101, made, 98), tip(100, good, unknown)), recent, 'one that nobody knows')
  t.same(await stated(tip(100, good, 95), tip(99, old)), { anchor: old, height: 99 }, 'a new block')
  t.same(await stated(tip(103, made), tip(100, good), tip(101, good)), { anchor: good, height: 101 })
})

t.test(
  'anchors that nobody confirms have turns, and those that are refused come last for an hour',
  async (t) => {
    const clock = new HandClock()
    const tips = tipsOf(clock)
    const both = [tip(101, made), tip(100, good)]
    const given = async (): Promise<unknown[]> => {
      const anchors = []
      for (let at = 0; at < 4; at += 1) anchors.push(((await tips.tip(both, 2)) as StatedTip).anchor)
      return anchors
    }
    t.same(await given(), [made, good, made, good])
    tips.refused(made)
    t.same(await given(), [good, good, good, good])
    tips.refused(good)
    t.equal(new Set(await given()).size, 2, 'all were refused')
    clock.jump(hourMs)
    tips.refused(good)
    t.same(await given(), [made, good, made, good], 'what was given long ago says nothing')
  },
)

t.test('a node that grows faster than the chain is not followed, nor after a restart', (t) => {
  const clock = new HandClock()
  const tips = tipsOf(clock)
  t.equal(tips.height([1000, 1000], 2), 1000)
  for (let minutes = 30; minutes <= 150; minutes += 30) {
    clock.jump(30 * 60_000)
    t.equal(tips.height([1000 + minutes / 2, 1010 + minutes], 2), 1000 + minutes / 2)
  }
  const lie = { height: 1160, ageMs: 0 }
  t.equal(tipsOf().height([1075, silent], 2, lie), 1075, 'what was kept may be of one node alone')
  const untimed = { height: 1000, ageMs: 56 * 365 * 24 * hourMs }
  t.ok(isRefusal(tipsOf().height([30_000_000, silent], 2, untimed)))
  t.equal(tipsOf().height([1010, 30_000_000], 2, untimed), 1010)
  t.end()
})
