import { pause } from '../../src/actor/clock.js'
import { truthPath } from '../corpus/truth.js'
import { median } from '../kit/numbers.js'
import { profiled } from '../kit/profile.js'
import { residentMb, Stopwatch } from '../kit/usage.js'
import { clientKinds } from '../load/clients.js'
import { type Manner, makeLoad, type Outcome, type PlanFile, type Target, writePlan } from '../load/load.js'
import { type CaseResult, type CaseWords, failed, judged, type Metrics, type Row } from '../report/results.js'
import type { Candidate } from '../rivals/candidate.js'
import type { Scale } from './scale.js'

/** Options of a run. */
export interface Order {
  readonly scale: Scale
  readonly rounds: number
  readonly seconds: number
  readonly threads: number
  readonly connections: number
  /** Says of this gateway where its processor time goes, in a round more of each case. */
  readonly profiles: boolean
  /** A module like node:sqlite or better-sqlite3, where Node brings none. */
  readonly sqliteModule: string | undefined
  /** Called with each result. */
  tell(result: CaseResult): void
  /** Called with a line about the present step. */
  note(line: string): void
}

/** A case of a group, and how it is run where it is wanted. */
export interface Group {
  readonly name: string
  readonly cases: readonly CaseWords[]
  /** Runs the wanted cases of the group; tells of each. */
  run(order: Order, wanted: readonly CaseWords[]): Promise<void>
}

/** Runs one case and tells its result: the verdict on its rows, or why it failed. */
export async function runCase(
  { tell, scale }: Pick<Order, 'tell' | 'scale'>,
  words: CaseWords,
  measure: () => Promise<readonly Row[]> | readonly Row[],
): Promise<void> {
  try {
    tell(judged(words, await measure(), scale.judges))
  } catch (error) {
    tell(failed(words, error))
  }
}

/** Targets from 64 kinds of clients, bodies compared with the truth. */
export function planOf(targets: readonly Target[]): PlanFile {
  return writePlan({ truthPath: truthPath(), clients: clientKinds, targets })
}

/** A load, and what it cost the server. */
export interface Load {
  readonly outcome: Outcome
  /** Seconds of its processor time. */
  readonly cpu: number
}

/** The programs whose processor time and memory a candidate costs. */
export function pidsOf({ pid, behindPid }: Candidate): number[] {
  return behindPid === undefined ? [pid] : [pid, behindPid]
}

/** Runs one load against a candidate. Rejects, naming it, where one answer is wrong. */
export async function loadOn(target: Candidate, plan: PlanFile, manner: Omit<Manner, 'port'>): Promise<Load> {
  const watch = new Stopwatch(...pidsOf(target))
  const usualTls = target.speaksTls === true ? '1.3' : undefined
  try {
    const outcome = await makeLoad(plan, { port: target.port, ...manner, tls: manner.tls ?? usualTls })
    return { outcome, cpu: watch.seconds() }
  } catch (error) {
    throw new Error(`${target.name}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/**
 * Waits until a candidate uses no more processor time: this program hashes content after it was served for the first time.
 */
export async function idle(target: Candidate): Promise<void> {
  for (let turn = 0; turn < 200; turn += 1) {
    const watch = new Stopwatch(...pidsOf(target))
    await pause(100)
    if (watch.seconds() < 0.015) return
  }
}

/** Figures of a closed loop: as many requests as the server takes. */
export function closedFigures({ outcome, cpu }: Load): Metrics {
  const { answered, bytes, seconds } = outcome
  return {
    cpuUs: (cpu * 1e6) / answered,
    ...(bytes === 0 ? {} : { cpuUsPerMb: (cpu * 1e12) / bytes }),
    perSecond: answered / seconds,
    mbPerSecond: bytes / 1e6 / seconds,
  }
}

/** Figures of an open loop: requests at a fixed rate, timed from when each was due. */
export function openFigures({ outcome, cpu }: Load, rate: number): Metrics {
  const { p50Us, p99Us, p999Us, answered } = outcome
  return {
    openPerSecond: rate,
    openP50Us: p50Us,
    openP99Us: p99Us,
    openP999Us: p999Us,
    openCpuUs: (cpu * 1e6) / answered,
  }
}

/** Rounds that `interleaved` asks for: those that count, and the one of the profile. */
export function measuredRounds({ rounds, profiles }: Pick<Order, 'rounds' | 'profiles'>): number {
  return rounds + (profiles ? 1 : 0)
}

/**
 * Measures every candidate in every round, beginning with another one each time, so that changes on the machine affect all.
 */
export async function interleaved(
  candidates: readonly Candidate[],
  { rounds, profiles }: Pick<Order, 'rounds' | 'profiles'>,
  cost: string,
  once: (candidate: Candidate, round: number) => Promise<Metrics>,
): Promise<Row[]> {
  const found = new Map<Candidate, Metrics[]>(candidates.map((each) => [each, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (let turn = 0; turn < candidates.length; turn += 1) {
      const candidate = candidates[(round + turn) % candidates.length]
      if (candidate === undefined) continue
      const { all, own } = residentMb(...pidsOf(candidate))
      const metrics = await once(candidate, round)
      found.get(candidate)?.push({ ...metrics, rssMb: all, ownMb: own })
    }
  }
  const profile = new Map<Candidate, readonly string[]>()
  for (const candidate of candidates.filter(({ role }) => profiles && role === 'ours')) {
    // In a round of its own, which does not count: samples cost processor time, and the rivals' rounds have none of it.
    const { lines } = await profiled(candidate.pid, () => once(candidate, rounds))
    profile.set(candidate, lines)
  }
  return candidates.map((candidate) => {
    const lines = profile.get(candidate)
    const row = rowOf(candidate, found.get(candidate) ?? [], cost)
    return lines === undefined ? row : { ...row, profile: lines }
  })
}

/** Medians of the rounds of a candidate. */
export function rowOf(
  { name, role }: Pick<Candidate, 'name' | 'role'>,
  rounds: readonly Metrics[],
  cost: string,
): Row {
  const names = [...new Set(rounds.flatMap((round) => Object.keys(round)))]
  const metrics = Object.fromEntries(
    names.map((metric) => [metric, median(rounds.flatMap((round) => round[metric] ?? []))]),
  )
  return { candidate: name, role, metrics, rounds: rounds.map((round) => round[cost] ?? 0) }
}
