import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import {
  adoptSettings,
  ownSettings,
  type PeerSetting,
  readEnvironmentFile,
} from '../../config/peer-settings.js'
import { type Config, readConfig } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import { createLog } from '../actor/log.js'
import { UnusableData } from '../main/databases.js'
import { exitCode } from './exit-code.js'
import { grouped, Progress } from './progress-line.js'
import { stopRequested } from './stop-signal.js'

const help = `sluice adopt: moves over from the network's reference gateway (ar-io-node)

Usage: sluice adopt ENVFILE [--write FILE]
       sluice adopt ENVFILE --data FOLDER [--only blocks|content|index]

Reads the .env of the other gateway and says of each variable what becomes of it: same (the same name and meaning here), not
needed, not there (what it does cannot be done here), unknown. Values are not shown.

  --write FILE   writes the settings that mean something here to a new file, which only this user can read
  --data FOLDER  the other gateway's data folder: brings its block list (sqlite/moderation.db) and its cached content
                 (contiguous/, with sqlite/data.db) into DATA_PATH. The variables SQLITE_DATA_PATH and CONTIGUOUS_DATA_PATH of
                 ENVFILE go over it. Stop the other gateway first: its databases are read as they are on disk, from
                 a copy in DATA_PATH. Its Parquet exports (datasets/default, or LOCAL_DATASETS_PATH/default) go into the
                 index, where there are some
  --parquet FOLDER  an export elsewhere: the folder that holds blocks/, transactions/ and tags/
  --only WHAT    one of them

Cached content is hashed on its way, and what the other gateway said of it is not believed: it counts as verified once it was
proven here. Nor is what its exports say: they hold no signatures, so items count as unchecked. Exports need their base
transactions (skipL1Transactions false), unless the index has these blocks. Killed at any moment, a second run goes on. Bands and
node answers are imported by sluice import.

Exit codes: 0 done, 1 something is wrong with the settings or was left, 2 wrong arguments.

Examples:
  sluice adopt ~/ar-io-node/.env
  sluice adopt ~/ar-io-node/.env --write sluice.env
  DATA_PATH=/srv/sluice sluice adopt ~/ar-io-node/.env --data ~/ar-io-node/data
`

const parts = ['blocks', 'content', 'index'] as const
type Part = (typeof parts)[number]

/** Moves over from the reference gateway. */
export async function adopt(words: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: {
      help: { type: 'boolean' },
      write: { type: 'string' },
      data: { type: 'string' },
      parquet: { type: 'string' },
      only: { type: 'string' },
    },
    allowPositionals: true,
  })
  if (values.help === true) {
    process.stdout.write(help)
    return exitCode.done
  }
  const [file, ...others] = positionals
  if (file === undefined || others.length > 0) return wrong('give the .env of the other gateway')
  if (!existsSync(file)) return wrong(`there is no ${file}`)
  const only = parts.find((part) => part === values.only)
  if (values.only !== undefined && only === undefined) return wrong('--only wants blocks, content or index')
  const { values: environment, faults } = readEnvironmentFile(readFileSync(file, 'utf8'))
  const { data, parquet } = values
  if (data !== undefined || parquet !== undefined) return adoptData(environment, { data, parquet }, only)
  const { settings, wrong: faulty, ignored } = adoptSettings(environment)
  report(settings)
  for (const { setting, why } of ignored) say(`  no effect    ${setting}: ${why}`)
  for (const line of faults) say(`  not read     line ${line} of ${file} is no NAME=VALUE`)
  for (const line of faulty) say(`  wrong        ${line}`)
  if (values.write !== undefined) {
    const lines = Object.entries(ownSettings(settings)).map(([name, value]) => `${name}=${quoted(value)}\n`)
    if (existsSync(values.write)) return wrong(`${values.write} exists: give a file that does not`)
    writeFileSync(values.write, lines.join(''), { flag: 'wx', mode: 0o600 })
    say(`written: ${values.write}`)
  }
  return faulty.length + faults.length === 0 ? exitCode.done : exitCode.failed
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function wrong(message: string): number {
  process.stderr.write(`sluice adopt: ${message}; see sluice adopt --help\n`)
  return exitCode.usage
}

/** A value so that Docker Compose and systemd read it back: quotes only where they are needed. */
function quoted(value: string): string {
  return /^[\w@%+=:,./-]*$/.test(value) ? value : `'${value}'`
}

function report(settings: readonly PeerSetting[]): void {
  const same = settings.filter(({ fate }) => fate === 'same')
  say(`  same         ${same.map(({ name }) => name).join(' ') || 'none'}`)
  for (const fate of ['not needed', 'not there', 'unknown'] as const)
    for (const { name, why = '' } of settings.filter((one) => one.fate === fate && one.value !== ''))
      say(`  ${fate.padEnd(11)}  ${name}: ${why}`)
  if (!settings.some(({ name }) => name === 'PORT'))
    say(
      '  note         PORT is not set: this gateway listens on 3000, the other one on 4000 behind its proxy on 3000',
    )
}

/** Folders of the other gateway, as they were given. */
interface Given {
  readonly data: string | undefined
  readonly parquet: string | undefined
}

async function adoptData(
  environment: ReadonlyMap<string, string>,
  given: Given,
  only: Part | undefined,
): Promise<number> {
  const config = readConfig()
  if (Array.isArray(config)) return wrong(config.join('\n  '))
  const { PeerDatabaseFault } = await import('../main/adopt/peer-database.js')
  const isWanted = (part: Part): boolean => only === undefined || only === part
  const data = given.data === undefined ? undefined : resolve(given.data)
  const base = exportFolder(environment, given)
  if (only === 'index' && base === undefined)
    return wrong('there is no Parquet export: give --parquet FOLDER')
  if (only !== undefined && only !== 'index' && data === undefined)
    return wrong(`--only ${only} wants --data`)
  try {
    let isWhole = true
    if (data !== undefined) {
      const sqlite = resolve(environment.get('SQLITE_DATA_PATH') || join(data, 'sqlite'))
      const contiguous = resolve(environment.get('CONTIGUOUS_DATA_PATH') || join(data, 'contiguous'))
      if (isWanted('blocks')) isWhole = (await blocks(config, join(sqlite, 'moderation.db'))) && isWhole
      if (isWanted('content'))
        isWhole = (await content(config, join(sqlite, 'data.db'), contiguous)) && isWhole
    }
    if (isWanted('index') && base !== undefined) {
      const { adoptExport } = await import('./adopt-export.js')
      isWhole = (await adoptExport(config, base)) && isWhole
    }
    return isWhole ? exitCode.done : exitCode.failed
  } catch (error) {
    if (!(error instanceof PeerDatabaseFault) && !(error instanceof UnusableData)) throw error
    process.stderr.write(`sluice adopt: ${error.message}\n`)
    return exitCode.failed
  }
}

/** The folder of the other gateway's Parquet tables; undefined where it has none. */
function exportFolder(
  environment: ReadonlyMap<string, string>,
  { data, parquet }: Given,
): string | undefined {
  if (parquet !== undefined) return resolve(parquet)
  if (data === undefined) return undefined
  const folder = resolve(environment.get('LOCAL_DATASETS_PATH') || join(data, 'datasets'), 'default')
  return existsSync(join(folder, 'blocks')) ? folder : undefined
}

async function blocks(config: Config, file: string): Promise<boolean> {
  const { adoptBlocks } = await import('../main/adopt/block-list.js')
  const { checkWhileIdle } = await import('../main/data-folder.js')
  const { makeFolder } = await import('../store/folder.js')
  const root = resolve(config.server.dataPath)
  makeFolder(root)
  await checkWhileIdle(root)
  const progress = new Progress('blocked', systemClock)
  const by = `${userInfo().username} by command`
  const nowSeconds = Math.floor(systemClock.now() / 1000)
  const { added, known, unreadable } = await adoptBlocks(file, root, nowSeconds, by, (done) =>
    progress.show(done, 0),
  )
  say(
    `block list: ${grouped(added)} added, ${grouped(known)} were there, ${grouped(unreadable)} name nothing`,
  )
  return true
}

async function content(config: Config, database: string, folder: string): Promise<boolean> {
  const { adoptContent } = await import('../main/adopt/adopt-content.js')
  const stop = stopRequested()
  const progress = new Progress('contents', systemClock)
  const log = createLog('warn', 'adopt')
  const places = { config, database, folder }
  const shown = (done: number, of: number): void => progress.show(done, of)
  const { added, known, absent, untrue } = await adoptContent(places, systemClock, log, stop, shown)
  say(
    `content: ${grouped(added)} added, ${grouped(known)} were there, ${grouped(absent)} are in no file, ` +
      `${grouped(untrue)} have other bytes than their names say`,
  )
  if (stop.aborted) say('stopped; run the command again to go on')
  return !stop.aborted
}
