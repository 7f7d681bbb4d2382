import t from 'tap'
import { partsOf, profileLines } from '../../bench/kit/profile.js'
import { comparedLines } from '../../bench/report/compare.js'
import { pageOf } from '../../bench/report/page.js'
import { type CaseResult, failed, judged, type Results, type Row } from '../../bench/report/results.js'
import { caseLines, verdictLine } from '../../bench/report/text.js'

const row = (candidate: string, role: Row['role'], cpuUs: number): Row => ({
  candidate,
  role,
  rounds: [cpuUs],
  metrics: { cpuUs, openP50Us: 100, openP99Us: 900, openP999Us: 2000, openPerSecond: 50 },
})
const words = { name: 'a case', group: 'a group', about: 'a <b> question', cost: 'cpuUs', bar: 1.1 }
const rows = [
  row('sluice', 'ours', 10),
  row('slow', 'rival', 40),
  row('fast', 'rival', 12),
  row('own', 'part', 1),
]

t.test('the ratio is to the best rival; parts of ours are none', async (t) => {
  const { ratio, rival, verdict, bar } = judged(words, rows, true)
  t.equal(ratio, 1.2)
  t.strictSame([rival, verdict, bar], ['fast', 'met', 1.1])
})

t.test(
  'below the bar it is missed; what is too short is not judged; without a rival there is no ratio',
  async (t) => {
    t.equal(judged({ ...words, bar: 1.3 }, rows, true).verdict, 'missed')
    t.equal(judged({ ...words, bar: 1.3 }, rows, false).verdict, 'not judged')
    t.equal(judged({ ...words, bar: undefined }, rows, true).verdict, 'not judged')
    const alone = judged(words, rows.slice(0, 1), true)
    t.strictSame([alone.verdict, 'ratio' in alone], ['not judged', false])
  },
)

t.test('a figure above its own bound misses, with a rival and without', async (t) => {
  const bounded = { ...words, bar: undefined, most: { cpuUs: 9, openP99Us: 900 } }
  const alone = judged(bounded, rows.slice(0, 1), true)
  t.equal(alone.verdict, 'missed')
  t.match(verdictLine(alone), 'no rival, CPU us 10.0 of at most 9.00, p99 us 900 of at most 900: MISSED')
  t.equal(judged({ ...bounded, most: { cpuUs: 10 } }, rows.slice(0, 1), true).verdict, 'met')
  t.equal(judged({ ...words, most: { cpuUs: 9 } }, rows, true).verdict, 'missed')
  t.equal(judged({ ...words, bar: 1.3, most: { cpuUs: 10 } }, rows, true).verdict, 'missed')
  t.equal(judged(bounded, rows, false).verdict, 'not judged')
  t.equal(judged({ ...bounded, most: { unheard: 1 } }, rows, true).verdict, 'missed')
})

t.test('a case that failed says why', async (t) => {
  const result = failed(words, new Error('sluice: wrong answers: 1 x body'))
  t.match(verdictLine(result), 'FAILED: sluice: wrong answers: 1 x body')
  t.match(caseLines(result).join('\n'), 'a case')
})

const machine = {
  at: '2026-01-02T03:04:05.678Z',
  commit: 'abc',
  processor: '2 x x',
  memoryGib: 4,
  kernel: '6',
  node: 'v20',
  nginx: 'none',
  files: 'addon',
  sockets: 'addon',
}
const resultsOf = (cases: readonly CaseResult[]): Results => ({
  format: 2 as const,
  machine,
  options: { scale: 'usual' },
  cases,
})

t.test('two runs are compared case by case', async (t) => {
  const before = resultsOf([judged(words, rows, true), failed({ ...words, name: 'gone' }, 'x')])
  const faster = [row('sluice', 'ours', 5), ...rows.slice(1)]
  const lines = comparedLines(before, resultsOf([judged(words, faster, true)])).join('\n')
  t.match(lines, /a case +CPU us +10\.0 +5\.00 +-50 % +1\.20x +2\.40x/)
  t.match(lines, 'not in B: gone')
})

t.test('a profile is read from what perf reports', async (t) => {
  const parts = partsOf(
    [
      '# Overhead  Shared Object  Symbol',
      '    50.00%  [kernel.kallsyms]   [k] tcp_sendmsg_locked     -      -            ',
      '    30.00%  perf-12.map         [.] LazyCompile:*answer /x.js:1',
      '    15.50%  node                [.] v8::internal::Heap<int, char>::Collect',
      '     4.50%  server.node         [.] 0x0000000000001234',
    ].join('\n'),
  )
  t.equal(parts.length, 4)
  const [owners, most] = profileLines(parts)
  t.equal(owners, 'of its time: kernel 50 %, JavaScript 30 %, V8 and Node 16 %, server.node 4.5 %')
  t.match(most, 'most in: tcp_sendmsg_locked 50 %, LazyCompile:*answer /x.js:1 30 %')
  t.notMatch(most, '0x')
})

t.test('the page holds all of it, and needs nothing from elsewhere', async (t) => {
  const results = resultsOf([
    judged(words, rows, true),
    failed({ ...words, name: 'broken' }, new Error('<&>')),
  ])
  const page = pageOf(
    [results, results],
    results.cases.map(({ name }) => name),
  )
  for (const text of [
    'a case',
    'a &lt;b&gt; question',
    '1.20x the best rival (fast)',
    '&lt;&amp;&gt;',
    '<polyline',
  ])
    t.ok(page.includes(text), text)
  t.notMatch(page, /https?:|<script|<link|@import|url\(/)
  t.equal(page.split('<svg').length, page.split('</svg>').length)
})

t.test('the page shows the newest run with enough rounds, and says which', async (t) => {
  const run = (commit: string, rounds: number, names: readonly string[]): Results => {
    const results = resultsOf(names.map((name) => judged({ ...words, name }, rows, true)))
    return { ...results, machine: { ...results.machine, commit }, options: { ...results.options, rounds } }
  }
  const runs = [
    run('oldest', 3, ['one', 'two', 'gone']),
    run('newer', 3, ['two']),
    run('quick', 1, ['one', 'three']),
  ]
  const page = pageOf(runs, ['one', 'two', 'three'])
  for (const text of ['1 cases of commit oldest', '1 cases of commit newer', '1 cases of commit quick'])
    t.ok(page.includes(text), text)
  t.notMatch(page, '<h3>gone</h3>')
})
