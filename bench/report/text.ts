import { short } from '../kit/numbers.js'
import { table } from '../kit/say.js'
import { headOf } from './metrics.js'
import type { CaseResult } from './results.js'

const hidden = new Set(['openPerSecond', 'ownMb', 'mbPerSecond'])

/** The verdict of a case in one line. */
export function verdictLine({ verdict, ratio, rival, bar, bounds = [], failure }: CaseResult): string {
  if (verdict === 'failed') return `FAILED: ${failure ?? 'for no reason given'}`
  const made = ratio === undefined ? 'no rival' : `${ratio.toFixed(2)}x the best rival (${rival})`
  const wanted = bar === undefined ? '' : `, wanted ${bar}x`
  const bounded = bounds.map(
    ({ metric, most, found }) => `, ${headOf(metric)} ${short(found)} of at most ${short(most)}`,
  )
  const isJudged = wanted !== '' || bounds.length > 0
  const judgement = verdict === 'not judged' ? 'not judged' : verdict.toUpperCase()
  return `${made}${wanted}${bounded.join('')}${isJudged ? `: ${judgement}` : ''}`
}

/** A case as lines for a terminal. */
export function caseLines(result: CaseResult): string[] {
  const { name, about, cost, rows, notes = [] } = result
  const lines = [`${name}: ${verdictLine(result)}`, `  ${about}`]
  lines.push(...notes.map((note) => `  ${note}`))
  if (rows.length === 0) return [...lines, '']
  const metrics = [...new Set(rows.flatMap((row) => Object.keys(row.metrics)))].filter(
    (metric) => metric === cost || !hidden.has(metric),
  )
  const head = ['', ...metrics.map(headOf)]
  const cells = rows.map(({ candidate, metrics: found }) => [
    candidate,
    ...metrics.map((metric) => short(found[metric] ?? Number.NaN)),
  ])
  const profiles = rows.flatMap(({ profile = [] }) => profile)
  return [...lines, ...[...table(head, cells), ...profiles].map((line) => `  ${line}`), '']
}
