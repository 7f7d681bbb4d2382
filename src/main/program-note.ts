import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { readSmall } from '../store/folder.js'
import { replaceSecret } from '../store/secret-file.js'
import type { ReloadOutcome } from './reload.js'

/** Signals that make a program read its settings again. */
export type ReloadSignal = 'SIGHUP' | 'SIGUSR2'

/** What a running program writes down for commands. */
export interface ProgramState {
  readonly pid: number
  /** When the process began, as the kernel says it: another process with the same number began at another time. */
  readonly began: string
  readonly signal: ReloadSignal
  /** File that is read again; absent: SETTINGS_FILE is not set. */
  readonly settingsFile?: string
  /** How often settings were read again, when they were for the last time (ms since 1970), and what came of it. */
  readonly reloads: number
  readonly lastMs?: number
  readonly last?: ReloadOutcome
}

const file = 'program.json'

/** When a process began (proc(5): the 22nd word of `stat`); '' where it is not there, or the system does not say it. */
export function beganOf(pid: number): string {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second word is a name in brackets, which may have blanks.
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (['ENOENT', 'ESRCH', 'EACCES'].includes(code)) return ''
    throw error
  }
}

/** The state of the program that runs on DATA_PATH, in a file there. */
export class ProgramNote {
  #state: ProgramState

  /** `root`: DATA_PATH, which this process has claimed. */
  constructor(
    private readonly root: string,
    about: Pick<ProgramState, 'signal' | 'settingsFile'>,
    private readonly log: Pick<Log, 'warn'>,
  ) {
    this.#state = { pid: process.pid, began: beganOf(process.pid), reloads: 0, ...about }
    this.#write()
  }

  reloaded(last: ReloadOutcome): void {
    const { reloads } = this.#state
    this.#state = { ...this.#state, reloads: reloads + 1, lastMs: systemClock.now(), last }
    this.#write()
  }

  /** The program has ended. */
  remove(): void {
    rmSync(join(this.root, file), { force: true })
  }

  /** The program runs on without it: only the command that asks for it then says that it got no answer. */
  #write(): void {
    try {
      replaceSecret(join(this.root, file), `${JSON.stringify(this.#state)}\n`)
    } catch (error) {
      this.log.warn({ err: error }, 'the state for other commands could not be written')
    }
  }
}

/** What the program on this DATA_PATH has written down; undefined where there is nothing. Throws the system's other errors. */
export function programState(root: string): ProgramState | undefined {
  try {
    return JSON.parse(readSmall(join(root, file), 1_048_576)) as ProgramState
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
