import { join, relative } from 'node:path'
import type { Config } from '../../config/read.js'
import type { Log } from '../actor/log.js'
import type { Program } from '../main/program.js'
import { folders } from '../threads/folders.js'
import { paint } from './paint.js'

interface Announced {
  readonly log: Log
  readonly config: Config
  /** Where the log goes; undefined: to standard output. */
  readonly logFile: string | undefined
}

/** Reports that the start is complete: one JSON line for programs, a list on a terminal. */
export function announce(program: Program, { log, config, logFile }: Announced): void {
  if (!process.stdout.isTTY || logFile === undefined) {
    const { urls, examples, names } = program
    log.info({ urls, examples, names }, 'ready')
    return
  }
  process.stdout.write(`${readable(program, config, logFile).join('\n')}\n`)
}

function readable(program: Program, config: Config, logFile: string): string[] {
  const { urls, examples, names } = program
  const { gateway } = urls
  const { adminApiKey, adminApiKeyFile } = config.moderation
  const keyPlace =
    adminApiKeyFile ??
    (adminApiKey === undefined ? from(join(folders(config).keys, 'admin.key')) : 'ADMIN_API_KEY')
  const examplesShown = Object.entries(examples).map(([name, id]) => row(name, `${gateway}/${id}`, ''))
  return [
    '',
    `${paint('bold', 'Sluice is up')} (${config.server.network}).`,
    '',
    ...Object.entries(names).map(([name, url]) => row(name, url, 'a site, by its name')),
    ...Object.entries(urls).map(([name, url]) => {
      return row(
        name,
        url,
        name === 'console' ? `for the operator; the key is in ${keyPlace}` : (meaning[name] ?? ''),
      )
    }),
    ...(gateway === undefined ? [] : [row('graphql', `${gateway}/graphql`, 'queries; a page in browsers')]),
    ...(examplesShown.length === 0 ? [] : ['', 'Content to try, by its id:', ...examplesShown]),
    '',
    `The log is in ${from(logFile)} (sluice start --log shows it here). Ctrl+C ends the program.`,
    '',
  ]
}

const meaning: Readonly<Record<string, string>> = {
  gateway: 'content by id and name',
  https: 'the same over TLS',
  redirect: 'sends requests on to https',
  payment: 'credits: balances, prices, top-ups',
  devnet: 'the embedded base-layer node',
}

function row(name: string, url: string, note: string): string {
  return `  ${name.padEnd(8)} ${paint('cyan', url)}${note === '' ? '' : `  ${paint('dim', note)}`}`
}

/** The shortest form of a path, seen from the working directory. */
function from(path: string): string {
  const below = relative(process.cwd(), path)
  return below.startsWith('..') ? path : below
}
