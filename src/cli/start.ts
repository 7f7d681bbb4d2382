import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Config, foreignSettings, httpsSettings, readConfig } from '../../config/read.js'
import { leaveAtOnce } from '../../native/schedule/schedule.js'
import { endsWithin, systemClock } from '../actor/clock.js'
import { createLog, type Log, logToFile } from '../actor/log.js'
import { shareLogRing } from '../actor/log-ring.js'
import { sayStopping } from '../actor/stopping.js'
import { CrashNote } from '../main/crash-note.js'
import { type Program, startProgram } from '../main/program.js'
import { ProgramNote, type ReloadSignal } from '../main/program-note.js'
import { folders } from '../threads/folders.js'
import { exitCode } from './exit-code.js'
import { paint } from './paint.js'
import { whileWaiting } from './progress-line.js'
import { announce } from './start-notice.js'

const help = `sluice start: runs the gateway

Usage: sluice start [--log] [--https]

  --log  on a terminal, too, write the log to standard output; without it the log goes to DATA_PATH/log/sluice.log there, and
         the terminal shows a list of what to open
  --https  serves HTTPS beside it, on TLS_PORT or 3443, on devnet with a certificate made here: browsers warn of it

On devnet (the default) an embedded base-layer node runs beside it and a small site is put onto its chain at the first start.
Settings are environment variables; see sluice settings.

Examples:
  sluice start
  NETWORK=mainnet sluice start
  PORT=0 DEVNET_PORT=0 DATA_PATH=/tmp/try sluice start    any free ports, a folder of its own
`

/**
 * How long threads may take to end by themselves behind the last word of the program. The process may be ended at any time: files
 * on disk are consistent at every moment.
 */
const leaveMs = 1500

/**
 * Runs until SIGINT or SIGTERM, then drains and ends with code 0; code 1 when a thread fails for good, 2 for wrong settings.
 */
export async function start(words: readonly string[]): Promise<number> {
  const reloads = new Reloads()
  const options = { help: { type: 'boolean' }, log: { type: 'boolean' }, https: { type: 'boolean' } } as const
  const { values } = parseArgs({ args: [...words], options })
  if (values.help === true) {
    process.stdout.write(help)
    return exitCode.done
  }
  const read = (): Config | string[] => readConfig(values.https === true ? httpsSettings() : {})
  const config = read()
  if (Array.isArray(config)) {
    process.stderr.write(`${paint('red', 'The settings are wrong:', process.stderr)}\n`)
    for (const line of config) process.stderr.write(`  ${line}\n`)
    process.stderr.write('See: sluice settings\n')
    return exitCode.usage
  }
  const logFile = process.stdout.isTTY && values.log !== true ? logFileOf(config) : undefined
  try {
    if (logFile !== undefined) logToFile(logFile)
  } catch (error) {
    return couldNotStart(error)
  }
  return run(config, logFile, { read, reloads })
}

function logFileOf(config: Config): string {
  return join(folders(config).root, 'log', 'sluice.log')
}

function couldNotStart(error: unknown): number {
  process.stderr.write(`${paint('red', 'Could not start:', process.stderr)} ${(error as Error).message}\n`)
  return exitCode.failed
}

async function run(
  config: Config,
  logFile: string | undefined,
  { read, reloads }: { readonly read: () => Config | string[]; readonly reloads: Reloads },
): Promise<number> {
  shareLogRing()
  const log = createLog(config.server.logLevel, 'main')
  for (const one of foreignSettings()) log.warn(one, 'a setting of other gateways has no effect here')
  const end = new AbortController()
  const ended = new Promise<string>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => {
        end.abort()
        resolve(signal)
      })
    }
  })
  const starting = startProgram(config, log, end.signal)
  let program: Program
  try {
    // Once it is up, the same words mean that it drains.
    let isUp = false
    const left = ended.then(() => (isUp ? starting : leftBehind(starting)))
    const up = Promise.race([starting, left])
    program = await (logFile === undefined ? up : whileWaiting('Starting', up, systemClock))
    isUp = true
  } catch (error) {
    if (end.signal.aborted) return exitCode.done
    log.fatal({ err: error }, 'could not start')
    return leaving(couldNotStart(error))
  }
  announce(program, { log, config, logFile })
  const { settingsFile } = config.server
  const about = { signal: reloads.signal, ...(settingsFile === undefined ? {} : { settingsFile }) }
  const note = new ProgramNote(folders(config).root, about, log)
  reloads.begin(() => note.reloaded(program.reload(read())))
  const reason = await Promise.race([ended, program.lost])
  if (end.signal.aborted) {
    await notified(config.server.noticeMs, program.lost, log)
    log.info({ reason }, 'stopping: waiting for open requests')
  } else {
    log.fatal({ reason }, 'a thread failed for good: ending, so that the next start recovers from disk')
    noteLost(config, reason, log)
  }
  reloads.end()
  note.remove()
  await program.stop()
  log.info('stopped')
  return leaving(end.signal.aborted ? exitCode.done : exitCode.failed)
}

/**
 * Hears the signal to read settings again, from the first moment on: unheard it would end the process. One that comes before the
 * program is up counts when it is up, and one that comes while it stops does nothing.
 */
class Reloads {
  /** On a terminal SIGHUP means that the terminal is gone, which ends the program. */
  readonly signal: ReloadSignal = process.stdout.isTTY ? 'SIGUSR2' : 'SIGHUP'
  #act: (() => void) | undefined
  #isRequested = false

  constructor() {
    process.on(this.signal, () => {
      this.#isRequested = true
      this.#act?.()
    })
  }

  begin(act: () => void): void {
    this.#act = act
    if (this.#isRequested) act()
  }

  end(): void {
    this.#act = undefined
  }
}

/**
 * Lets load balancers take their requests elsewhere: health answers say 503 for `noticeMs`, and all is served. A second signal,
 * or a thread that fails, ends it at once.
 */
async function notified(noticeMs: number, lost: Promise<string>, log: Log): Promise<void> {
  sayStopping()
  if (noticeMs === 0) return
  log.info({ noticeMs }, 'stopping: health answers say 503, requests are still served')
  const again = new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve())
  })
  await endsWithin(Promise.race([again, lost]), noticeMs)
}

/** The next start looks at all databases: a damaged page may have been the reason. */
function noteLost(config: Config, reason: string, log: Log): void {
  try {
    new CrashNote(folders(config).root).add(reason)
  } catch (error) {
    log.error({ err: error }, 'the reason could not be written down for the next start')
  }
}

/**
 * Ends a start whose stop was requested: at once, as a kill would. Threads that are just loading an addon, or are inside a call
 * of lmdb, abort the whole process where they are stopped. Without the addon for it they are stopped all the same.
 */
async function leftBehind(starting: Promise<Program>): Promise<Program> {
  leaveAtOnce(exitCode.done)
  await endsWithin(starting, leaveMs)
  return starting
}

/**
 * The exit code. The process ends with it even where a thread does not: one that started too late, or one inside a call to a disk
 * that does not answer.
 */
function leaving(code: number): number {
  systemClock.after(leaveMs, () => leaveAtOnce(code))
  return code
}
