import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { ChunkHolders } from '../../src/chain/chunk-holders.js'

const span = 3_600_000_000_000

t.test('who had a chunk of a span is asked first, who had none last, for a time', async (t) => {
  let nowMs = 0
  const holders = new ChunkHolders({ ...systemClock, monotonic: () => nowMs })
  const handicaps = (offset: number): number[] =>
    ['a', 'b', 'c'].map((node) => holders.handicap(node, offset))
  t.same(handicaps(5), [4, 4, 4])
  holders.note('b', 5, true)
  holders.note('a', 6, false)
  t.same(handicaps(span - 1), [10_000, 0, 4])
  t.same(handicaps(span), [4, 4, 4], 'nothing is known of another span')
  const preferred = (offset: number): number[] =>
    ['a', 'b', 'c'].map((node) => holders.handicap(node, offset, true))
  t.same(preferred(5), [10_000, 0, 2], 'an operator who prefers a node does not know what it has')
  nowMs = 31 * 60_000
  t.same(handicaps(5), [4, 0, 4], 'it may have fetched them')
  holders.note('b', 5, false)
  t.same(handicaps(5), [4, 10_000, 4])
})

t.test('what nodes have is kept for the next process, whatever else the file holds', async (t) => {
  const holders = new ChunkHolders(systemClock)
  holders.note('http://a:1984', 5, true)
  holders.note('http://a:1984', 2 * span, true)
  holders.note('http://b', 5, false)
  t.equal(holders.changes, 2)
  holders.note('http://a:1984', 7, true)
  t.equal(holders.changes, 2, 'nothing new')
  const kept = holders.kept()
  t.same(kept, { 'http://a:1984': [0, 2] })
  const next = new ChunkHolders(systemClock)
  next.takeOver(JSON.parse(JSON.stringify(kept)))
  t.equal(next.handicap('http://a:1984', 9), 0)
  t.equal(next.handicap('http://b', 9), 4)
  for (const wrong of [undefined, null, 7, 'a', [], { c: 5 }, { c: ['x', -1, 0.5, null, {}] }])
    next.takeOver(wrong)
  t.same(next.kept(), kept)
})

t.test('no more is remembered than has room', async (t) => {
  const holders = new ChunkHolders(systemClock)
  for (let at = 0; at < 20_000; at += 1) holders.note('a', at * span, true)
  t.ok((holders.kept().a?.length ?? 0) <= 8192)
})
