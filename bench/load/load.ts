import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bound } from '../kit/child.js'
import { benchFolder, workFolder } from '../kit/folders.js'

/** One thing to ask for, and what must be answered. */
export interface Target {
  readonly method?: 'GET' | 'HEAD'
  readonly path: string
  /** 200, or 206 with `rangeBytes`; any: whatever the server says is right. */
  readonly status?: number | 'any'
  /** Of the whole content; absent: any length is right. */
  readonly sizeBytes?: number
  /** Where the content begins in the truth: its bytes are compared. */
  readonly truthStart?: number
  /** A range of this length, anywhere in the content, is asked for. */
  readonly rangeBytes?: number
  /** Further header lines. */
  readonly lines?: readonly string[]
}

/** Requests of a load, and the header lines of its clients. */
export interface Plan {
  /** File that contents are windows of. */
  readonly truthPath?: string
  readonly clients?: readonly (readonly string[])[]
  readonly targets: readonly Target[]
}

/** How it is asked: see load.cc. */
export interface Manner {
  readonly port: number
  readonly connections?: number
  readonly seconds: number
  readonly order?: `zipf:${number}` | 'uniform' | 'once'
  /** Requests a second, each timed from when it was due; absent: every connection asks as soon as it was answered. */
  readonly rate?: number
  readonly flood?: boolean
  readonly unknown?: number
  readonly compare?: number
  readonly lateMs?: number
  readonly drainMs?: number
  /** Over TLS of this version. */
  readonly tls?: '1.2' | '1.3' | undefined
  /** Each request on a connection of its own. */
  readonly fresh?: boolean
  /** Connections resume the session of one ticket. */
  readonly resume?: boolean
  /** Handshakes alone are made. */
  readonly shake?: boolean
  readonly from?: string
  /** Each connection comes from an address and network of its own. */
  readonly spread?: boolean
  readonly seed?: number
  /** The processor that the load maker runs on; any where it is absent. */
  readonly cpu?: number
  /** Lower priority than other programs on its processor. */
  readonly meek?: boolean
  /**
   * Runs before all others (SCHED_FIFO) where the system permits, as a client on a machine of its own would: its own waiting
   * for a processor is not counted as the server's. For low rates only, because it takes the processor from the server.
   */
  readonly isPrompt?: boolean
}

const wrongKinds = [
  'status',
  'length',
  'range',
  'body',
  'framing',
  'closed',
  'late',
  'unanswered',
  'handshake',
] as const

/** Result of a load. */
export interface Outcome {
  /** From the first request to the last answer. */
  readonly seconds: number
  readonly sent: number
  readonly answered: number
  /** Of bodies. */
  readonly bytes: number
  /** Bodies whose bytes were compared. */
  readonly checked: number
  readonly connects: number
  readonly p50Us: number
  readonly p99Us: number
  readonly p999Us: number
  readonly maxUs: number
  readonly statuses: Readonly<Record<string, number>>
  readonly wrong: Readonly<Record<(typeof wrongKinds)[number], number>>
  /** Descriptions of the first wrong answers. */
  readonly examples: readonly string[]
}

/** A load that got wrong answers, or none. */
export class WrongAnswers extends Error {
  constructor(
    what: string,
    readonly outcome: Outcome,
  ) {
    super(what)
  }
}

/** Compiles the load maker where its source has changed. Throws without a compiler. */
function loadMaker(): string {
  const folder = join(benchFolder, 'load')
  const sources = readdirSync(folder).filter((name) => /\.(cc|h)$/.test(name))
  const hash = createHash('sha256')
  for (const name of sources.sort()) hash.update(readFileSync(join(folder, name)))
  const target = join(workFolder, `load-${hash.digest('hex').slice(0, 12)}`)
  if (!existsSync(target)) {
    mkdirSync(workFolder, { recursive: true })
    const draft = `${target}.${process.pid}`
    const words = ['-O2', '-std=c++17', '-Wall', '-Wextra', join(folder, 'load.cc'), '-o', draft]
    execFileSync('c++', words, { stdio: 'inherit' })
    renameSync(draft, target)
  }
  return target
}

function lineOf(target: Target): string {
  const { method = 'GET', path, sizeBytes = '-', truthStart = '-', rangeBytes = 0, lines = [] } = target
  const { status = rangeBytes > 0 ? 206 : 200 } = target
  const fields = ['target', method, path, status === 'any' ? '*' : status, sizeBytes, truthStart, rangeBytes]
  return [...fields, ...lines].join('\t')
}

/** A plan as a file for the load maker, below the work folder; to be removed by `drop`. */
export interface PlanFile {
  readonly path: string
  drop(): void
}

let plans = 0

/** Writes a plan for loads to come. */
export function writePlan({ truthPath, clients = [], targets }: Plan): PlanFile {
  mkdirSync(workFolder, { recursive: true })
  const path = join(workFolder, `plan-${process.pid}-${plans++}`)
  const lines = [
    ...(truthPath === undefined ? [] : [`truth\t${truthPath}`]),
    ...clients.map((kind) => ['client', ...kind].join('\t')),
    ...targets.map(lineOf),
  ]
  writeFileSync(path, `${lines.join('\n')}\n`)
  return { path, drop: () => rmSync(path, { force: true }) }
}

const prompt = ['chrt', '-f', '1']

let isPermitted: boolean | undefined

function mayBePrompt(): boolean {
  const [program = '', ...args] = prompt
  isPermitted ??= spawnSync(program, [...args, 'true']).status === 0
  return isPermitted
}

/** Runs one load to its end, and resolves also where answers were wrong. Rejects where the load maker fails. */
export function tryLoad(plan: PlanFile | Plan, manner: Manner): Promise<Outcome> {
  const file = 'drop' in plan ? plan : writePlan(plan)
  const { port, cpu, meek, isPrompt, lateMs, drainMs, ...rest } = manner
  const { flood, fresh, resume, shake, spread } = rest
  const flags = Object.entries({ flood, fresh, resume, shake, spread }).map(([name, is]) => [
    name,
    is ? 1 : undefined,
  ])
  const named = { ...rest, ...Object.fromEntries(flags), late: lateMs, drain: drainMs }
  const options = Object.entries(named).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  )
  const [program = '', ...args] = [
    ...(cpu === undefined ? [] : ['taskset', '-c', String(cpu)]),
    ...(meek === true ? ['nice', '-n', '19'] : []),
    ...(isPrompt === true && mayBePrompt() ? prompt : []),
    loadMaker(),
    file.path,
    String(port),
    ...options,
  ]
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, (error, out) => {
      if (!('drop' in plan)) file.drop()
      if (error !== null) reject(error)
      else resolve(JSON.parse(out) as Outcome)
    })
    bound(child)
  })
}

/** What is wrong with an outcome; undefined where there were answers and all were right. */
export function complaint({ answered, wrong, examples }: Outcome): string | undefined {
  const kinds = wrongKinds.filter((kind) => wrong[kind] > 0).map((kind) => `${wrong[kind]} x ${kind}`)
  if (kinds.length > 0) return `wrong answers: ${kinds.join(', ')} (${examples[0] ?? ''})`
  return answered === 0 ? 'nothing was answered' : undefined
}

/** Runs one load to its end. Rejects with `WrongAnswers` where one answer was not the expected one, or none came. */
export async function makeLoad(plan: PlanFile | Plan, manner: Manner): Promise<Outcome> {
  const outcome = await tryLoad(plan, manner)
  const what = complaint(outcome)
  if (what !== undefined) throw new WrongAnswers(what, outcome)
  return outcome
}
