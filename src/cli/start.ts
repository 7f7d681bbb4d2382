import { parseArgs } from 'node:util'
import { foreignSettings, readConfig } from '../../config/read.js'
import { createLog, type Log } from '../actor/log.js'
import { type Program, startProgram } from '../main/program.js'
import { paint } from './paint.js'

const help = `sluice start: runs the gateway

Usage: sluice start

On devnet (the default) an embedded base-layer node runs beside it and a small site is put onto its chain at the first start.
Settings are environment variables; see sluice settings.

Examples:
  sluice start
  NETWORK=mainnet sluice start
  PORT=0 DEVNET_PORT=0 DATA_PATH=/tmp/try sluice start    any free ports, a folder of its own
`

/** Runs until SIGINT or SIGTERM, then drains and leaves with code 0; code 1 when a part is lost, 2 on wrong settings. */
export async function start(words: readonly string[]): Promise<number> {
  const { values } = parseArgs({ args: [...words], options: { help: { type: 'boolean' } } })
  if (values.help === true) {
    process.stdout.write(help)
    return 0
  }
  const config = readConfig()
  if (Array.isArray(config)) {
    process.stderr.write(`${paint('red', 'The settings are wrong:', process.stderr)}\n`)
    for (const line of config) process.stderr.write(`  ${line}\n`)
    process.stderr.write('See: sluice settings\n')
    return 2
  }
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
  let program: Program
  try {
    program = await startProgram(config, log, end.signal)
  } catch (error) {
    if (end.signal.aborted) return 0
    log.fatal({ err: error }, 'could not start')
    process.stderr.write(`${paint('red', 'Could not start:', process.stderr)} ${(error as Error).message}\n`)
    return 1
  }
  announce(program, log)
  const reason = await Promise.race([ended, program.lost])
  if (end.signal.aborted) log.info({ reason }, 'draining')
  else log.fatal({ reason }, 'a part was lost: ending, so that a fresh start recovers from disk')
  await program.stop()
  log.info('stopped')
  return end.signal.aborted ? 0 : 1
}

/** One line of JSON for programs; a list to read on a terminal. */
function announce(program: Program, log: Log): void {
  if (!process.stdout.isTTY) {
    const { urls, examples, names } = program
    log.info({ urls, examples, names }, 'ready')
    return
  }
  const { gateway } = program.urls
  const lines = [
    '',
    paint('bold', 'Sluice is up.'),
    ...Object.entries(program.urls).map(([name, url]) => `  ${name.padEnd(8)} ${paint('cyan', url)}`),
  ]
  if (Object.keys(program.examples).length > 0) lines.push('', paint('bold', 'Try:'))
  for (const [name, id] of Object.entries(program.examples)) {
    lines.push(`  ${name.padEnd(8)} ${paint('cyan', `${gateway}/${id}`)}`)
  }
  for (const [name, url] of Object.entries(program.names)) {
    lines.push(`  ${name.padEnd(8)} ${paint('cyan', url)}  by name`)
  }
  lines.push('', paint('dim', 'Ctrl+C ends it.'), '')
  process.stdout.write(`${lines.join('\n')}\n`)
}
