import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { resultsFolder } from '../kit/folders.js'
import type { Machine } from '../kit/machine.js'

/** Figures of one candidate in one case, by name (metrics.ts): medians of its rounds. */
export type Metrics = Readonly<Record<string, number>>

export interface Row {
  readonly candidate: string
  readonly role: 'ours' | 'rival' | 'part'
  readonly metrics: Metrics
  /** The compared metric in each round. */
  readonly rounds: readonly number[]
  /** Where its processor time went, for readers; where that was asked for. */
  readonly profile?: readonly string[]
}

/** A figure that may be at most so large. */
export interface Bound {
  readonly metric: string
  readonly most: number
  readonly found: number
}

export interface CaseResult {
  readonly name: string
  readonly group: string
  /** What is asked for, in one sentence. */
  readonly about: string
  /** The metric that is compared: less is better. */
  readonly cost: string
  readonly rows: readonly Row[]
  /** Cost of the best rival divided by ours: above 1 ours is less. Absent without a rival. */
  readonly ratio?: number
  readonly rival?: string
  /** The least ratio that passes. */
  readonly bar?: number
  /** Figures of ours that have a bound of their own, whatever rivals need. */
  readonly bounds?: readonly Bound[]
  readonly verdict: 'met' | 'missed' | 'not judged' | 'failed'
  /** Why it failed. */
  readonly failure?: string
  /** Remarks. */
  readonly notes?: readonly string[]
}

export interface Results {
  readonly format: 2
  readonly machine: Machine
  readonly options: Readonly<Record<string, string | number | boolean>>
  readonly cases: readonly CaseResult[]
}

export interface CaseWords {
  readonly name: string
  readonly group: string
  readonly about: string
  readonly cost: string
  readonly bar?: number | undefined
  /** What figures of ours may be at most, by metric. */
  readonly most?: Metrics
  readonly notes?: readonly string[]
}

/**
 * Compares the rows of a case with the best rival, the bar and the bounds. `judges`: false where the run is too short for a
 * verdict.
 */
export function judged(words: CaseWords, rows: readonly Row[], judges: boolean): CaseResult {
  const { bar, most = {}, ...named } = words
  const costOf = (row: Row | undefined): number => row?.metrics[words.cost] ?? Number.NaN
  const ours = rows.find(({ role }) => role === 'ours')
  const rivals = rows.filter(({ role, metrics }) => role === 'rival' && (metrics[words.cost] ?? 0) > 0)
  const best = rivals.toSorted((one, other) => costOf(one) - costOf(other))[0]
  const ratio = best === undefined || !(costOf(ours) > 0) ? undefined : costOf(best) / costOf(ours)
  const isCompared = ratio !== undefined && bar !== undefined
  const bounds = Object.entries(most).map(([metric, limit]) => {
    return { metric, most: limit, found: ours?.metrics[metric] ?? Number.NaN }
  })
  const passes = [
    ...(isCompared ? [ratio >= bar] : []),
    ...bounds.map(({ most: limit, found }) => found <= limit),
  ]
  const reached = passes.every((passed) => passed) ? 'met' : 'missed'
  const verdict = !judges || passes.length === 0 ? 'not judged' : reached
  const compared = ratio === undefined || best === undefined ? {} : { ratio, rival: best.candidate }
  const wanted = { ...(isCompared ? { bar } : {}), ...(bounds.length === 0 ? {} : { bounds }) }
  return { ...named, rows, ...compared, ...wanted, verdict }
}

/** A case that gave a wrong answer, or could not be run. */
export function failed(words: CaseWords, reason: unknown): CaseResult {
  const { bar: _bar, most: _most, ...named } = words
  const failure = reason instanceof Error ? reason.message : String(reason)
  return { ...named, rows: [], verdict: 'failed', failure }
}

/** Writes the results of a run beside those of others. Returns the path. */
export function keepResults(results: Results): string {
  mkdirSync(resultsFolder, { recursive: true })
  const { at, commit } = results.machine
  const name = `${at.slice(0, 19).replaceAll(/[:T]/g, '-')}-${commit.replace('+', '-changed')}.json`
  const path = join(resultsFolder, name)
  writeFileSync(path, `${JSON.stringify(results, undefined, 1)}\n`)
  return path
}

function readResults(path: string): Results {
  const read = JSON.parse(readFileSync(path, 'utf8')) as Results
  if (read.format !== 2) throw new Error(`${path} holds no results that this bench can read`)
  return read
}

/** All results that are kept, oldest first. */
export function allResults(): { path: string; results: Results }[] {
  if (!existsSync(resultsFolder)) return []
  return readdirSync(resultsFolder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => ({ path: name, results: readResults(join(resultsFolder, name)) }))
}

/** Results by a path, or by the beginning of a commit (the newest of several). Throws where there are none. */
export function resultsOf(word: string): Results {
  if (existsSync(word)) return readResults(word)
  const found = allResults().findLast(({ results }) => results.machine.commit.startsWith(word))
  if (found === undefined) throw new Error(`no results of ${word} in ${resultsFolder}`)
  return found.results
}
