import { appendFileSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keepCrashNote } from '../../native/crash/crash.js'

/** Marks lines about which the databases were looked through, and nothing was found. */
const soundMark = '= '

/** Marks a database that was refused though its pages look sound: with its file as it was then. */
const refusedMark = '! '

/** More than some lines are never needed. */
const linesMax = 100

/**
 * Faults of earlier runs, one line each: a signal that ended the process, with the file in which it did (native/crash), or a
 * thread that failed for good. A start that finds a line checks every page of every database, because damage that ended one
 * process would end the next one, too.
 */
export class CrashNote {
  readonly #path: string

  /** `root`: DATA_PATH. */
  constructor(root: string) {
    this.#path = join(root, 'crash-note')
  }

  /** Lines that no start has looked into yet. */
  fresh(): readonly string[] {
    return this.#lines().filter((line) => !line.startsWith(soundMark) && !line.startsWith(refusedMark))
  }

  /** Databases in which a signal ended the process before all were looked through without a finding, and once more since. */
  blamed(): readonly string[] {
    const before = new Set(
      this.#lines()
        .filter((line) => line.startsWith(soundMark))
        .flatMap(databaseIn),
    )
    return [...new Set(this.fresh().flatMap(databaseIn))].filter((path) => before.has(path))
  }

  /** All databases were looked through, and nothing was found. */
  judgedSound(): void {
    this.#write(this.fresh().map((line) => `${soundMark}${line}`))
  }

  /** The start is refused for this database until its file is another one. */
  refuse(path: string): void {
    this.#write([`${refusedMark}${stateOf(path)} ${path}`])
  }

  /** The database for which the start before was refused, where its file is as it was. */
  stillRefused(): string | undefined {
    const [line] = this.#lines().filter((one) => one.startsWith(refusedMark))
    const [, state, path = ''] = /^! (\S+) (.+)$/.exec(line ?? '') ?? []
    return state !== undefined && state === stateOf(path) ? path : undefined
  }

  /** There is nothing to look into. */
  clear(): void {
    rmSync(this.#path, { force: true })
  }

  /** Adds a line. */
  add(line: string): void {
    appendFileSync(this.#path, `${line.replaceAll('\n', ' ')}\n`, { mode: 0o600 })
  }

  /** From now on a signal that ends this process adds a line, too. Returns why it does not where it cannot. */
  keep(): string | undefined {
    return keepCrashNote(this.#path)
  }

  #lines(): readonly string[] {
    if (!existsSync(this.#path)) return []
    const lines = readFileSync(this.#path, 'utf8').split('\n')
    return lines.filter((line) => line !== '').slice(-linesMax)
  }

  #write(lines: readonly string[]): void {
    writeFileSync(this.#path, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 })
  }
}

/** Distinguishes a data file from one that was put in its place. */
function stateOf(path: string): string {
  const found = statSync(join(path, 'data.mdb'), { bigint: true, throwIfNoEntry: false })
  return found === undefined ? 'none' : `${found.ino}-${found.size}-${found.mtimeNs}`
}

/** The folder of the database in which a signal ended the process, by a line about that. */
function databaseIn(line: string): string[] {
  const [, path] = /^(?:= )?SIG\w+ in (.+)\/data\.mdb$/.exec(line) ?? []
  return path === undefined ? [] : [path]
}
