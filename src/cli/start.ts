import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Config, foreignSettings, readConfig } from '../../config/read.js'
import { leaveAtOnce } from '../../native/schedule/schedule.js'
import { pause, systemClock } from '../actor/clock.js'
import { createLog, logToFile } from '../actor/log.js'
import { folders } from '../main/folders.js'
import { type Program, startProgram } from '../main/program.js'
import { announce } from './announce.js'
import { exitCode } from './exit-code.js'
import { paint } from './paint.js'
import { whileWaiting } from './progress.js'

const help = `sluice start: runs the gateway

Usage: sluice start [--log]

  --log  on a terminal, too, write the log to standard output; without it the log goes to DATA_PATH/log/sluice.log there, and
         the terminal shows a list of what to open

On devnet (the default) an embedded base-layer node runs beside it and a small site is put onto its chain at the first start.
Settings are environment variables; see sluice settings.

Examples:
  sluice start
  NETWORK=mainnet sluice start
  PORT=0 DEVNET_PORT=0 DATA_PATH=/tmp/try sluice start    any free ports, a folder of its own
`

/**
 * How long a start that is told to stop may take to end its threads: one that makes a key takes seconds. The process may be ended
 * at any time: files on disk are consistent at every moment.
 */
const startStopMs = 1500

/**
 * Runs until SIGINT or SIGTERM, then drains and ends with code 0; code 1 when a thread fails for good, 2 for wrong settings.
 */
export async function start(words: readonly string[]): Promise<number> {
  const options = { help: { type: 'boolean' }, log: { type: 'boolean' } } as const
  const { values } = parseArgs({ args: [...words], options })
  if (values.help === true) {
    process.stdout.write(help)
    return exitCode.done
  }
  const config = readConfig()
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
  return run(config, logFile)
}

function logFileOf(config: Config): string {
  return join(folders(config).root, 'log', 'sluice.log')
}

function couldNotStart(error: unknown): number {
  process.stderr.write(`${paint('red', 'Could not start:', process.stderr)} ${(error as Error).message}\n`)
  return exitCode.failed
}

async function run(config: Config, logFile: string | undefined): Promise<number> {
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
    const up = Promise.race([starting, ended.then(() => leftBehind(starting))])
    program = await (logFile === undefined ? up : whileWaiting('Starting', up, systemClock))
  } catch (error) {
    if (end.signal.aborted) return exitCode.done
    log.fatal({ err: error }, 'could not start')
    return couldNotStart(error)
  }
  announce(program, { log, config, logFile })
  const reason = await Promise.race([ended, program.lost])
  if (end.signal.aborted) log.info({ reason }, 'stopping: waiting for open requests')
  else log.fatal({ reason }, 'a thread failed for good: ending, so that the next start recovers from disk')
  await program.stop()
  log.info('stopped')
  return end.signal.aborted ? exitCode.done : exitCode.failed
}

/** Gives a start that was told to stop some time to end its threads, then ends the process where it can be ended safely. */
async function leftBehind(starting: Promise<Program>): Promise<Program> {
  const patience = new AbortController()
  const settled = starting.then(
    () => true,
    () => true,
  )
  const isSettled = await Promise.race([settled, pause(startStopMs, patience.signal).then(() => false)])
  patience.abort()
  if (!isSettled) leaveAtOnce(exitCode.done)
  return starting
}
