import t from 'tap'
import {
  type FollowRules,
  type FollowState,
  type FollowStep,
  nextStep,
  type Sight,
} from '../../src/ingest/next-step.js'

const rules: FollowRules = {
  start: { height: 0 },
  stopHeight: 1000,
  forkDepthMax: 3,
  pollMs: 10,
  haltedMs: 60,
}
const now = 100
const fresh: FollowState = {
  top: undefined,
  tip: undefined,
  search: undefined,
  haltedMs: undefined,
  notBeforeMs: 0,
}
const block = (height: number, id = `b${height}`) => ({ height, id })
const tip = (height: number, id = `b${height}`, statedMs = now) => ({ height, id, statedMs })

interface Row {
  name: string
  state?: Partial<FollowState>
  sight?: Sight
  rules?: Partial<FollowRules>
  step: FollowStep
}

const rows: Row[] = [
  { name: 'nothing known: looks for the tip', step: { kind: 'look' } },
  {
    name: 'an old word about the tip is asked anew',
    state: { tip: tip(5, 'b5', now - 10) },
    step: { kind: 'look' },
  },
  {
    name: 'after a failure it waits',
    state: { notBeforeMs: 130 },
    step: { kind: 'wait', untilMs: 130 },
  },
  {
    name: 'an empty index begins at the first height',
    state: { tip: tip(5) },
    step: { kind: 'fetch', height: 0, last: 5 },
  },
  {
    name: 'an empty index may begin shortly before the tip',
    state: { tip: tip(500) },
    rules: { start: { behindTip: 50 } },
    step: { kind: 'fetch', height: 450, last: 500 },
  },
  {
    name: 'a chain shorter than that begins with its first block',
    state: { tip: tip(5) },
    rules: { start: { behindTip: 50 } },
    step: { kind: 'fetch', height: 0, last: 5 },
  },
  {
    name: 'an index with blocks goes on behind them',
    state: { top: block(400), tip: tip(500) },
    rules: { start: { behindTip: 50 } },
    step: { kind: 'fetch', height: 401, last: 500 },
  },
  {
    name: 'a later start leaves a gap',
    state: { top: block(10), tip: tip(500) },
    rules: { start: { height: 300 } },
    sight: { next: { previous: 'b299' } },
    step: { kind: 'import' },
  },
  {
    name: 'the first block needs no block before it',
    state: { tip: tip(5) },
    sight: { next: { previous: undefined } },
    step: { kind: 'import' },
  },
  {
    name: 'a block that follows is imported',
    state: { top: block(4), tip: tip(5) },
    sight: { next: { previous: 'b4' } },
    step: { kind: 'import' },
  },
  {
    name: 'a block that does not follow starts a search',
    state: { top: block(4), tip: tip(5) },
    sight: { next: { previous: 'x4' } },
    step: { kind: 'compare', at: 4, from: 4 },
  },
  {
    name: 'another tip of the same height starts a search',
    state: { top: block(5), tip: tip(5, 'x5') },
    step: { kind: 'compare', at: 5, from: 5 },
  },
  {
    name: 'at the tip it waits for the next look',
    state: { top: block(5), tip: tip(5) },
    step: { kind: 'wait', untilMs: 110 },
  },
  {
    name: 'a node that is behind is waited for',
    state: { top: block(7), tip: tip(5, 'x5') },
    step: { kind: 'wait', untilMs: 110 },
  },
  {
    name: 'nothing is imported behind the last height',
    state: { top: block(1000), tip: tip(2000) },
    step: { kind: 'wait', untilMs: 110 },
  },
  {
    name: 'nor asked for ahead',
    state: { top: block(990), tip: tip(2000) },
    step: { kind: 'fetch', height: 991, last: 1000 },
  },
  {
    name: 'a search asks for the block in question',
    state: { top: block(7), search: { at: 6, from: 7 } },
    sight: { ours: 'b6', below: true },
    step: { kind: 'compare', at: 6, from: 7 },
  },
  {
    name: 'a common block ends the search: what is above it goes',
    state: { search: { at: 5, from: 7 } },
    sight: { ours: 'b5', theirs: 'b5', below: true },
    step: { kind: 'unwind', fromHeight: 6 },
  },
  {
    name: 'nothing goes where the top is common after all',
    state: { search: { at: 7, from: 7 } },
    sight: { ours: 'b7', theirs: 'b7', below: true },
    step: { kind: 'unwind', fromHeight: 8 },
  },
  {
    name: 'another block: one lower, as long as not too many are replaced',
    state: { search: { at: 5, from: 7 } },
    sight: { ours: 'b5', theirs: 'x5', below: true },
    step: { kind: 'compare', at: 4, from: 7 },
  },
  {
    name: 'a fork of the greatest depth is followed',
    state: { search: { at: 4, from: 7 - 0 } },
    sight: { ours: 'b4', theirs: 'b4', below: true },
    step: { kind: 'unwind', fromHeight: 5 },
  },
  {
    name: 'a deeper one halts',
    state: { search: { at: 4, from: 7 } },
    sight: { ours: 'b4', theirs: 'x4', below: true },
    step: { kind: 'halt', depth: 3 },
  },
  {
    name: 'an index that is all of another branch is begun anew',
    state: { search: { at: 6, from: 7 } },
    sight: { ours: 'b6', theirs: 'x6', below: false },
    step: { kind: 'unwind', fromHeight: 6 },
  },
  {
    name: 'a tip far below the top is compared with the block there',
    state: { top: block(20), tip: tip(9) },
    step: { kind: 'compare', at: 9, from: 20, isBehind: true },
  },
  {
    name: 'a node that lags by some blocks is waited for',
    state: { top: block(14), tip: tip(9) },
    step: { kind: 'wait', untilMs: 110 },
  },
  {
    name: 'a node with the same block there only has fewer',
    state: { top: block(20), tip: tip(9), search: { at: 9, from: 20, isBehind: true } },
    sight: { ours: 'b9', theirs: 'b9', below: true },
    step: { kind: 'behind' },
  },
  {
    name: 'it is waited for, too',
    state: { top: block(20), tip: { ...tip(9), isKnown: true } },
    step: { kind: 'wait', untilMs: 110 },
  },
  {
    name: 'with another block there, the blocks above are in doubt: too many to be dropped',
    state: { top: block(20), tip: tip(9), search: { at: 9, from: 20, isBehind: true } },
    sight: { ours: 'x9', theirs: 'b9', below: true },
    step: { kind: 'halt', depth: 3 },
  },
  {
    name: 'or few enough',
    state: { top: block(20), tip: tip(9), search: { at: 9, from: 20, isBehind: true } },
    sight: { ours: 'x9', theirs: 'b9', below: true },
    rules: { forkDepthMax: 18 },
    step: { kind: 'compare', at: 8, from: 20 },
  },
  {
    name: 'an index that begins above the tip is in doubt',
    state: { top: block(2000), tip: tip(9), search: { at: 9, from: 2000, isBehind: true } },
    sight: { ours: undefined, theirs: 'b9', below: false },
    step: { kind: 'halt', depth: 3 },
  },
  {
    name: 'halted: waits, whatever is at hand',
    state: { top: block(7), tip: tip(9), haltedMs: 90 },
    sight: { next: { previous: 'x7' } },
    step: { kind: 'wait', untilMs: 110 },
  },
  {
    name: 'halted: looks at the tip all the same',
    state: { top: block(7), tip: tip(9, 'b9', 80), haltedMs: 90 },
    step: { kind: 'look' },
  },
  {
    name: 'halted: compares again after a while',
    state: { top: block(7), tip: tip(9), haltedMs: 40 },
    step: { kind: 'compare', at: 7, from: 7 },
  },
]

t.test('each state has one next step', async (t) => {
  for (const { name, state, sight, step, rules: other } of rows) {
    t.same(nextStep({ ...fresh, ...state }, sight ?? {}, { ...rules, ...other }, now), step, name)
  }
})
