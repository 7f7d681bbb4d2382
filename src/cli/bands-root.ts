import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type Config, readConfig } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import { createLog } from '../actor/log.js'
import { loadSigningKey } from '../attest/keys.js'
import { BandStore } from '../bands/band-store.js'
import { l1Bands } from '../bands/l1-kind.js'
import { rootTxBands } from '../bands/root-band.js'
import { RootBuilder } from '../bands/root-builder.js'
import { Generations, generationBytes } from '../catalog/generations.js'
import { ChainIndex } from '../catalog/index-reader.js'
import { openCatalogTables } from '../catalog/tables.js'
import { isRefusal } from '../format/refusal.js'
import { checkWhileIdle } from '../main/data-folder.js'
import { bandsThread } from '../threads/index/bands-options.js'
import { exitCode } from './exit-code.js'
import { paint } from './paint.js'

const help = `sluice bands: builds, checks and lists bands of root transactions

Usage: sluice bands build
       sluice bands check FOLDER...
       sluice bands list

  build   builds what can be built of the index in DATA_PATH, outside of the schedule; may run while the gateway runs, which
          publishes what it finds within INDEX_SCAN_SECONDS
  check   reads bands in any folder and prints whether they are valid. Ends with code 1 where one is not
  list    the bands in DATA_PATH

Examples:
  DATA_PATH=/srv/sluice sluice bands build
  sluice bands check /srv/sluice/bands/own/root-tx-index/*
`

function asksForHelp(words: readonly string[]): boolean {
  if (words[0] !== '--help') return false
  process.stdout.write(help)
  return true
}

/** The settings; or, where they are wrong, an exit code. */
function configured(): Config | number {
  const config = readConfig({ INDEX_PUBLISH: 'true' })
  return Array.isArray(config) ? wrong(config.join('\n  ')) : config
}

function wrong(message: string): number {
  process.stderr.write(`sluice bands: ${message}\n`)
  return exitCode.usage
}

/** Builds bands of root transactions now, regardless of the schedule. */
export async function buildBands(words: readonly string[]): Promise<number> {
  if (asksForHelp(words)) return 0
  const config = configured()
  if (typeof config === 'number') return config
  const given = bandsThread(config, new SharedArrayBuffer(generationBytes))
  if (given === undefined) return wrong('set INDEX_PUBLISH=true')
  if (!existsSync(given.catalogPath)) return wrong(`there is no index at ${given.catalogPath}: set DATA_PATH`)
  await checkWhileIdle(dirname(given.catalogPath))
  const { environment } = openCatalogTables(given.catalogPath)
  const index = new ChainIndex(environment, new Generations(new SharedArrayBuffer(generationBytes)))
  const publisher = given.publisher ?? loadSigningKey(given.signing).solanaAddress
  const log = createLog('warn', 'bands')
  const builder = new RootBuilder(new BandStore(given.root), index, systemClock, log, {
    ...given.build,
    publisher,
  })
  const built = await builder.build(true)
  await environment.close()
  for (const id of built) process.stdout.write(`${paint('green', 'built')}  ${id}\n`)
  if (built.length === 0) process.stdout.write('nothing new\n')
  return 0
}

/** Reads bands, and reports whether they are valid. */
export async function checkBands(given: readonly string[]): Promise<number> {
  if (asksForHelp(given)) return 0
  if (given.length === 0) return wrong('give the folders')
  let unsound = 0
  for (const folder of given.map((path) => resolve(path))) {
    const kind = existsSync(join(folder, 'band.json')) ? l1Bands : rootTxBands
    const account = await kind.describe(folder)
    const fault = isRefusal(account) ? account : await kind.check(folder)
    if (fault !== undefined) unsound += 1
    const word = fault === undefined ? paint('green', 'sound') : paint('red', 'wrong')
    process.stdout.write(`${word}  ${folder}${fault === undefined ? '' : `: ${fault.message}`}\n`)
  }
  return unsound === 0 ? 0 : 1
}

/** Lists the bands of this machine. */
export async function listBands(words: readonly string[]): Promise<number> {
  if (asksForHelp(words)) return 0
  const config = configured()
  if (typeof config === 'number') return config
  const bandStore = new BandStore(join(resolve(config.server.dataPath), 'bands'))
  for (const name of ['own', 'installed'] as const) {
    for (const { index, id, folder } of await bandStore.list(name)) {
      const kind = [rootTxBands, l1Bands].find((one) => one.index === index)
      const account = await kind?.describe(folder)
      const about =
        account === undefined || isRefusal(account) ? 'cannot be read' : `${account.records ?? '?'} records`
      process.stdout.write(`${name}  ${index}  ${id}  ${about}\n`)
    }
  }
  return 0
}
