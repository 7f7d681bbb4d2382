import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { resultsFolder } from '../kit/folders.js'
import { short } from '../kit/numbers.js'
import { headOf, metricWords } from './metrics.js'
import { pageStyle } from './page-style.js'
import { bars, course, escaped, ratios, spreads } from './plot.js'
import { allResults, type CaseResult, type Results, type Row } from './results.js'
import { verdictLine } from './text.js'

/** Microseconds in the unit that reads best. */
function time(us: number): string {
  return us < 1000 ? `${us.toFixed(0)} us` : `${short(us / 1000)} ms`
}

/** Percentiles of a row, as far as the case has them, in microseconds. */
function percentiles({ metrics }: Row): { name: string; us: number }[] {
  const named: [name: string, us: number | undefined][] = [
    ['p50', metrics.openP50Us],
    ['p99', metrics.openP99Us],
    ['p99.9', metrics.openP999Us],
    ['p50', metrics.p50Ms && metrics.p50Ms * 1000],
    ['p99', metrics.p99Ms && metrics.p99Ms * 1000],
  ]
  return named.flatMap(([name, us]) => (us === undefined ? [] : [{ name, us }]))
}

function costPlot({ rows, cost, name }: CaseResult): string {
  const known = rows.filter(({ metrics }) => metrics[cost] !== undefined)
  if (known.length === 0) return ''
  const all = known.map(({ candidate, role, metrics }) => {
    const value = metrics[cost] ?? 0
    return { label: candidate, role, value, text: short(value) }
  })
  return `<p class="soft">${escaped(metricWords[cost]?.words ?? cost)}</p>${bars(all, `${name}: ${headOf(cost)}`)}`
}

function timePlot({ rows, name }: CaseResult): string {
  const known = rows.filter((row) => percentiles(row).length > 0)
  if (known.length === 0) return ''
  const rate = known[0]?.metrics.openPerSecond
  const how =
    rate === undefined
      ? 'processor time of an answer'
      : `time from when a request was due, at ${short(rate)} requests/s`
  const all = known.map((row) => {
    const found = percentiles(row)
    const text = found.map(({ us }) => time(us)).join(' · ')
    return { label: row.candidate, role: row.role, values: found.map(({ us }) => us), text }
  })
  const names = percentiles(known[0] as Row).map((each) => each.name)
  return `<p class="soft">${how}: ${names.join(' · ')}</p>${spreads(all, `${name}: times`)}`
}

function figures({ rows }: CaseResult): string {
  const metrics = [...new Set(rows.flatMap((row) => Object.keys(row.metrics)))]
  if (metrics.length === 0) return ''
  const head = metrics.map((metric) => `<th>${escaped(headOf(metric))}</th>`).join('')
  const lines = rows.map(({ candidate, metrics: found }) => {
    const cells = metrics.map((metric) => `<td>${short(found[metric] ?? Number.NaN)}</td>`).join('')
    return `<tr><td>${escaped(candidate)}</td>${cells}</tr>`
  })
  const table = `<table><tr><th></th>${head}</tr>${lines.join('')}</table>`
  return `<details><summary>all figures</summary><div class="scroll">${table}</div></details>`
}

function profile({ rows }: CaseResult): string {
  const lines = rows.flatMap((row) => row.profile ?? [])
  if (lines.length === 0) return ''
  const paragraphs = lines.map((line) => `<p class="soft">${escaped(line)}</p>`).join('')
  return `<details><summary>where our processor time goes</summary>${paragraphs}</details>`
}

function history(name: string, runs: readonly Results[]): string {
  const found = runs.flatMap(({ machine, cases }) => {
    const ratio = cases.find((each) => each.name === name)?.ratio
    return ratio === undefined ? [] : [{ commit: machine.commit, ratio }]
  })
  if (found.length < 2) return ''
  const words = found.map(({ commit, ratio }) => `${commit} ${ratio.toFixed(2)}x`).join(', ')
  const plot = course(
    found.map(({ ratio }) => ratio),
    `${name}: ratio from run to run`,
  )
  return `<details><summary>ratio from run to run</summary>${plot}<p class="soft">${escaped(words)}</p></details>`
}

function caseBox(result: CaseResult, runs: readonly Results[]): string {
  const { name, about, verdict, notes = [] } = result
  const noted = notes.map((note) => `<p class="soft">${escaped(note)}</p>`).join('')
  return [
    `<section class="case"><h3>${escaped(name)}</h3>`,
    `<p class="${verdict.replaceAll(' ', '-')}">${escaped(verdictLine(result))}</p>`,
    `<p class="soft">${escaped(about)}</p>${noted}`,
    costPlot(result),
    timePlot(result),
    figures(result),
    profile(result),
    history(name, runs),
    '</section>',
  ].join('')
}

/** The compared figures of all rounds, the least and the most; empty for one round. */
function spreadOf(row: Row | undefined): string {
  const rounds = row?.rounds ?? []
  if (rounds.length < 2) return ''
  return ` (${short(Math.min(...rounds))} to ${short(Math.max(...rounds))})`
}

/** One line a case: what it means, ours and the best rival by name, with the spread of the rounds. */
function caseLine({ name, about, cost, rows, ratio, rival }: CaseResult): string {
  const figureOf = (row: Row | undefined): string =>
    row === undefined ? '' : `${short(row.metrics[cost] ?? Number.NaN)}${spreadOf(row)}`
  const best = rows.find(({ candidate }) => candidate === rival)
  const cells = [
    name,
    about,
    headOf(cost),
    figureOf(rows.find(({ role }) => role === 'ours')),
    best === undefined ? 'none' : `${best.candidate}: ${figureOf(best)}`,
    ratio === undefined ? '' : `${ratio.toFixed(2)}x`,
  ]
  return `<tr>${cells.map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`
}

function overview(cases: readonly CaseResult[]): string {
  const known = cases.flatMap(({ name, ratio, bar, verdict }) =>
    ratio === undefined ? [] : [{ label: name, ratio, bar, verdict }],
  )
  const failures = cases.filter(({ verdict }) => verdict === 'failed')
  const lines = failures.map(
    (each) => `<p class="failed">${escaped(`${each.name}: ${verdictLine(each)}`)}</p>`,
  )
  const head = ['case', 'what it means', 'figure', 'ours', 'best rival', 'ratio']
  const titles = head.map((word) => `<th>${word}</th>`).join('')
  const table = `<table class="overview"><tr>${titles}</tr>${cases.map(caseLine).join('')}</table>`
  const plot = known.length === 0 ? '' : ratios(known, 'ratio to the best rival in each case')
  return `${lines.join('')}${plot}<div class="scroll">${table}</div>`
}

/** A run, and which of its cases are shown. */
interface Part {
  readonly run: Results
  readonly cases: readonly CaseResult[]
}

const roundsOf = ({ options }: Results): number => Number(options.rounds ?? 1)

/** Rounds from which on a difference of a tenth says something. */
const roundsMin = 3

/** Of each case the newest result of a run with enough rounds, or else of any run, by the run that it is from, newest first. */
function latest(runs: readonly Results[], names: readonly string[]): Part[] {
  const ranked = [...runs].reverse().sort((one, other) => enough(other) - enough(one))
  const from = new Map<string, Results>()
  for (const run of ranked) for (const { name } of run.cases) if (!from.has(name)) from.set(name, run)
  return ranked.flatMap((run) => {
    const cases = names.flatMap((name) =>
      from.get(name) === run ? run.cases.filter((each) => each.name === name) : [],
    )
    return cases.length === 0 ? [] : [{ run, cases }]
  })
}

function enough(run: Results): number {
  return Math.min(roundsOf(run), roundsMin)
}

/** Where and how each run was made, and how to make it again, in sentences. */
function circumstances(parts: readonly Part[]): string {
  const lines = parts.map(({ run, cases }) => {
    const { at, commit, processor, memoryGib, kernel, node, nginx, files, sockets } = run.machine
    const rounds = roundsOf(run)
    const sentences = [
      `${cases.length} cases of commit ${commit}, ${at.slice(0, 10)}, on ${processor}, ${memoryGib} GiB,`,
      `Linux ${kernel}, Node ${node}, ${nginx}:`,
      `${rounds === 1 ? 'one round' : `${rounds} rounds`} of ${run.options.seconds} s each.`,
      rounds < roundsMin ? 'With fewer than three rounds differences below a tenth mean nothing.' : '',
      files === 'addon' && sockets === 'addon' ? '' : 'Native addons were missing: the fallbacks ran.',
    ]
    return `<li>${escaped(sentences.filter((sentence) => sentence !== '').join(' '))}</li>`
  })
  return `<p>Of each case the newest run with at least three rounds is shown. Candidates take turns on the same machine.
Figures are medians of the rounds. The status, length and range of every answer are checked, and the bytes of one in eight
bodies. A ratio is the cost of the best rival divided by ours: above 1 ours is less. To repeat it:
<code>npm run bench -- --rounds 3</code>.</p>
<ul>${lines.join('')}</ul>`
}

/** The page of the newest results; `runs`: all that are kept, oldest first. It needs nothing from a network. */
export function pageOf(runs: readonly Results[], names: readonly string[]): string {
  const parts = latest(runs, names)
  const cases = names.flatMap((name) =>
    parts.flatMap((part) => part.cases.filter((each) => each.name === name)),
  )
  const groups = [...new Set(cases.map(({ group }) => group))]
  const sections = groups.map((group) => {
    const boxes = cases.filter((each) => each.group === group).map((each) => caseBox(each, runs))
    return `<h2>${escaped(group)}</h2><div class="cases">${boxes.join('')}</div>`
  })
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Benches of Sluice</title><style>${pageStyle}</style></head><body>
<h1>Benches of Sluice</h1>
${circumstances(parts)}
<h2>Ratio to the best rival</h2>
<p class="soft">Longer to the right: faster than the best rival; longer to the left: slower. The short mark is the least ratio
that passes; it differs from case to case because rivals do less in some: they check no proofs, sign nothing, and have no rate
limits.</p>
${overview(cases)}
${sections.join('\n')}
</body></html>
`
}

/** Writes the page of all results that are kept. `names`: all cases, in order. Returns its path; throws where there are none. */
export function writePage(names: readonly string[]): string {
  const runs = allResults().map(({ results }) => results)
  if (runs.length === 0) throw new Error(`no results in ${resultsFolder}`)
  mkdirSync(resultsFolder, { recursive: true })
  const path = join(resultsFolder, 'index.html')
  writeFileSync(path, pageOf(runs, names))
  return path
}
