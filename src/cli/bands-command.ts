import { bandsL1 } from './bands-l1.js'
import { buildBands, checkBands, listBands } from './bands-root.js'
import { status, subscribe } from './bands-subscribe.js'
import type { Command } from './command.js'
import { bulkImport } from './import-command.js'

const commands: Readonly<Record<string, Command>> = {
  build: buildBands,
  check: checkBands,
  list: listBands,
  subscribe,
  status,
  l1: bandsL1,
  import: bulkImport,
}

const help = `sluice bands: parts of the index that gateways give each other

Usage: sluice bands COMMAND [--help]

  build      builds bands of root transactions, outside of the schedule
  check      reads bands in any folder and prints whether they are valid
  list       the bands in DATA_PATH
  subscribe  fetches, once, what the gateways in INDEX_SUBSCRIPTIONS publish
  status     what is known about publishers, and which of their bands are here
  l1         builds Parquet bands of the base layer out of the index
  import     fills the index from Parquet bands, of a folder or as a gateway publishes them (the same as sluice import)
`

/** Runs one of the commands about bands. */
export async function bandsCommand(words: readonly string[]): Promise<number> {
  const [name = '', ...rest] = words
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command !== undefined) return command(rest)
  const out = name === '--help' ? process.stdout : process.stderr
  out.write(
    name === '' || name === '--help' ? help : `sluice bands: no command '${name}'; see sluice bands --help\n`,
  )
  return name === '--help' ? 0 : 2
}
