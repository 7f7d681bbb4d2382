import { parseArgs } from 'node:util'
import { groups } from './cases/groups.js'
import type { Order } from './cases/run.js'
import { scales } from './cases/scale.js'
import { takeWorkFolder } from './kit/folders.js'
import { thisMachine } from './kit/machine.js'
import { canProfile } from './kit/profile.js'
import { say } from './kit/say.js'
import { comparedLines } from './report/compare.js'
import { headOf } from './report/metrics.js'
import { writePage } from './report/page.js'
import { type CaseResult, failed, keepResults, type Results, resultsOf } from './report/results.js'
import { caseLines, verdictLine } from './report/text.js'

const help = `bench: this gateway beside nginx, uWebSockets and node:http, in alternating rounds, on what traffic looks like

  npm run bench                     all cases, about 80 minutes; the results are kept in bench/results
  npm run bench -- --small          each kind of case small and short: does it run, is every answer right; judges no speed
  npm run bench -- --full           larger and longer
  npm run bench -- --only a,b       cases or groups whose name has one of these
  npm run bench -- --list           names of all cases, what they ask for, and the ratio that is wanted
  npm run bench -- --compare A B    two kept runs side by side: commits, or files
  npm run bench -- --page           writes bench/results/index.html anew from what is kept

  --rounds N        of each case
  --seconds N       of load for each candidate, round and way of asking
  --threads N       edge threads, and nginx workers (1)
  --connections N   keep-alive connections (32)
  --sqlite PATH     better-sqlite3, where Node brings no SQLite of its own (22.13 and later do)
  --profile         says of each case where our processor time goes, which needs perf (Debian's linux-perf)
  --keep            keeps the results of a small or partial run, too

Status, length and range of each answer are checked, the bytes of one in eight bodies are compared: a wrong answer fails the case.
Ends with 1 where a case failed or missed its bar, and where nothing was measured.
`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: 'boolean', default: false },
    small: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    compare: { type: 'boolean', default: false },
    page: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    profile: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    threads: { type: 'string', default: '1' },
    connections: { type: 'string', default: '32' },
    sqlite: { type: 'string' },
  },
})

function list(): void {
  for (const group of groups) {
    for (const { name, about, bar, most = {} } of group.cases) {
      const ratio = bar === undefined ? [] : [`${bar}x`]
      const wanted = [
        ...ratio,
        ...Object.entries(most).map(([metric, limit]) => `${headOf(metric)} at most ${limit}`),
      ]
      say(`${name}${wanted.length === 0 ? '' : `  (wanted: ${wanted.join(', ')})`}\n    ${about}`)
    }
  }
}

function sum(cases: readonly CaseResult[]): void {
  for (const result of cases) say(`${result.name.padEnd(34)} ${verdictLine(result)}`)
  const of = (verdict: CaseResult['verdict']): number =>
    cases.filter((each) => each.verdict === verdict).length
  say(
    `${cases.length} cases: ${of('met')} met, ${of('missed')} missed, ${of('failed')} failed, ${of('not judged')} not judged`,
  )
}

const caseNames = groups.flatMap(({ cases }) => cases.map(({ name }) => name))

/** Runs the wanted cases. Resolves with the exit code. */
async function run(): Promise<number> {
  takeWorkFolder()
  const scale = values.small ? scales.small : values.full ? scales.full : scales.usual
  const words = values.only.split(',').filter((word) => word !== '')
  const cases: CaseResult[] = []
  const order: Order = {
    scale,
    rounds: Number(values.rounds ?? scale.rounds),
    seconds: Number(values.seconds ?? scale.seconds),
    threads: Number(values.threads),
    connections: Number(values.connections),
    profiles: values.profile && canProfile(),
    sqliteModule: values.sqlite,
    note: (line) => say(`.. ${process.uptime().toFixed(0)} s  ${line}`),
    tell: (result) => {
      cases.push(result)
      for (const line of caseLines(result)) say(line)
    },
  }
  if (values.profile && !order.profiles) say('perf does not run here: nothing is profiled')
  const machine = thisMachine()
  const { rounds, seconds, threads, connections } = order
  const options = { scale: scale.name, rounds, seconds, threads, connections, only: values.only }
  const isKept = values.keep || (scale.judges && words.length === 0)
  say(
    Object.entries(machine)
      .flatMap((entry) => entry.join(' '))
      .join(', '),
  )
  for (const group of groups) {
    const wanted = group.cases.filter(
      ({ name }) =>
        words.some((word) => name.includes(word) || group.name === word) ||
        (words.length === 0 && !scale.omits.some((start) => name.startsWith(start))),
    )
    if (wanted.length === 0) continue
    try {
      await group.run(order, wanted)
    } catch (error) {
      const left = wanted.filter(({ name }) => !cases.some((each) => each.name === name))
      for (const words of left) order.tell(failed(words, error))
    }
    // A whole run takes more than an hour: what was measured before it is ended stays.
    const results: Results = { format: 2, machine, options, cases }
    if (isKept) say(`kept as ${keepResults(results)}; ${writePage(caseNames)}`)
  }
  sum(cases)
  const isGood =
    cases.length > 0 && cases.every(({ verdict }) => verdict !== 'failed' && verdict !== 'missed')
  return isGood ? 0 : 1
}

if (values.help) say(help)
else if (values.list) list()
else if (values.page) say(writePage(caseNames))
else if (values.compare) {
  const [before = '', after = ''] = positionals
  for (const line of comparedLines(resultsOf(before), resultsOf(after))) say(line)
} else process.exitCode = await run()
