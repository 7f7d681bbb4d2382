import { execFile, execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Folder of the sources of this bench, seen from where it runs (dist/bench). */
export const benchFolder = fileURLToPath(new URL('../../bench/', import.meta.url))
/** Objects, logs and data folders of a run. */
export const workFolder = join(benchFolder, 'results', '.work')

export interface Load {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  readonly method: 'GET' | 'HEAD'
  readonly path: string
  /** Ranges of this length at random places of an object of this size. */
  readonly range?: { readonly lengthBytes: number; readonly sizeBytes: number }
  /** One more header line. */
  readonly header?: string
  /** Requests a second over all connections; as many as are answered where it is absent. */
  readonly rate?: number
  /** With a rate: requests go out whether or not others were answered, as many as the sockets take. */
  readonly open?: boolean
  /** Address that connections come from, of this machine: 127.0.0.0/8. */
  readonly from?: string
  /** The processor that the load maker runs on; any where it is absent. */
  readonly cpu?: number
  /** Gives way to others on its processor. */
  readonly meek?: boolean
}

export interface Outcome {
  readonly seconds: number
  readonly requests: number
  /** Sent, of an open load. */
  readonly sent: number
  readonly bytes: number
  readonly failures: number
  readonly status: number
  readonly p50Us: number
  readonly p99Us: number
}

/** Compiles the load maker where there is none of this very source. Throws without a compiler. */
export function loadMaker(): string {
  const source = join(benchFolder, 'load', 'load.cc')
  const version = createHash('sha256').update(readFileSync(source)).digest('hex').slice(0, 12)
  const target = join(workFolder, `load-${version}`)
  if (!existsSync(target)) {
    mkdirSync(dirname(target), { recursive: true })
    execFileSync('c++', ['-O2', '-std=c++17', '-Wall', '-Wextra', source, '-o', target], { stdio: 'inherit' })
  }
  return target
}

/** Runs one load to its end. Rejects where the maker fails or nothing was answered. */
export function makeLoad(load: Load): Promise<Outcome> {
  const args = [load.port, load.connections, load.seconds, load.method, load.path].map(String)
  if (load.range !== undefined)
    args.push('range', String(load.range.lengthBytes), String(load.range.sizeBytes))
  if (load.header !== undefined) args.push('header', load.header)
  if (load.rate !== undefined) args.push('rate', String(load.rate))
  if (load.open === true) args.push('open')
  if (load.from !== undefined) args.push('from', load.from)
  const [program = '', ...rest] = [
    ...(load.cpu === undefined ? [] : ['taskset', '-c', String(load.cpu)]),
    ...(load.meek === true ? ['nice', '-n', '19'] : []),
    ...[loadMaker(), ...args],
  ]
  return new Promise((resolve, reject) => {
    execFile(program, rest, (error, out) => {
      if (error !== null) reject(error)
      else resolve(JSON.parse(out) as Outcome)
    })
  })
}
