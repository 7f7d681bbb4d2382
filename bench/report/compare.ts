import { short } from '../kit/numbers.js'
import { table } from '../kit/say.js'
import { headOf } from './metrics.js'
import type { CaseResult, Results } from './results.js'

function oursOf({ rows, cost }: CaseResult): number {
  return rows.find(({ role }) => role === 'ours')?.metrics[cost] ?? Number.NaN
}

const times = (ratio: number | undefined): string => (ratio === undefined ? '-' : `${ratio.toFixed(2)}x`)

/**
 * Two runs side by side: our cost in each case, and the ratio to the best rival of each run. Rivals are of the same run as the
 * ratio, so the ratio holds also where the machines differ.
 */
export function comparedLines(before: Results, after: Results): string[] {
  const named = ({ machine, options }: Results): string =>
    `${machine.commit} of ${machine.at.slice(0, 16)}, ${machine.processor}, node ${machine.node}, ${String(options.scale)}`
  const rows = after.cases.flatMap((result) => {
    const other = before.cases.find(({ name }) => name === result.name)
    if (other === undefined) return []
    const [was, is] = [oursOf(other), oursOf(result)]
    const change = `${is >= was ? '+' : ''}${((is / was - 1) * 100).toFixed(0)} %`
    return [
      [
        result.name,
        headOf(result.cost),
        short(was),
        short(is),
        change,
        times(other.ratio),
        times(result.ratio),
      ],
    ]
  })
  const missing = before.cases.filter(({ name }) => !after.cases.some((each) => each.name === name))
  return [
    `A  ${named(before)}`,
    `B  ${named(after)}`,
    ...(before.machine.processor === after.machine.processor
      ? []
      : ['Machines differ: compare the ratios only.']),
    ...table(['case', 'cost', 'A', 'B', 'B to A', 'ratio A', 'ratio B'], rows),
    ...missing.map(({ name }) => `not in B: ${name}`),
  ]
}
