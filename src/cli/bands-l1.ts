import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { readConfig } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import { loadSigningKey } from '../attest/keys.js'
import { BandStore } from '../bands/band-store.js'
import { L1Builder } from '../bands/l1-builder.js'
import { Generations, generationBytes } from '../catalog/generations.js'
import { ChainIndex } from '../catalog/index-reader.js'
import { openCatalogTables } from '../catalog/tables.js'
import { checkWhileIdle } from '../main/data-folder.js'
import { folders } from '../threads/folders.js'
import { bandsFolder, bandsThread } from '../threads/index/bands-options.js'
import { exitCode } from './exit-code.js'
import { grouped } from './progress-line.js'

const help = `sluice bands l1: builds Parquet bands of the base layer out of the index

Usage: sluice bands l1 [--publisher NAME] [--signatures]

Builds what is missing in DATA_PATH/bands/own/parquet-l1: whole ranges of 100,000 blocks, then parts of 5,000, the last one
up to the highest block that no fork can replace. May run while the gateway runs.

  --publisher NAME  text that marks the bands' ids (the hash of it); default: as other bands of this gateway
  --signatures      keeps the transactions' signatures: larger, and another id than the bands of those who do not

A gateway begins with such bands by: sluice import FOLDER
`

/** Builds Parquet bands. Exit codes: 0 done, 1 refused, 2 wrong words. */
export async function bandsL1(words: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...words],
    options: {
      help: { type: 'boolean' },
      publisher: { type: 'string' },
      signatures: { type: 'boolean', default: false },
    },
  })
  if (values.help === true) {
    process.stdout.write(help)
    return 0
  }
  const config = readConfig()
  if (Array.isArray(config)) {
    return wrong(config.join('\n  '))
  }
  const given = bandsThread(config, new SharedArrayBuffer(generationBytes))
  const publisher =
    values.publisher ?? config.bands.publisher ?? (given && loadSigningKey(given.signing).solanaAddress)
  const { root, catalog } = folders(config)
  if (publisher === undefined) return wrong('set INDEX_PUBLISH=true, or give --publisher NAME')
  if (!existsSync(catalog)) return wrong(`there is no index at ${catalog}: set DATA_PATH`)
  await checkWhileIdle(root)
  const { environment } = openCatalogTables(catalog)
  const index = new ChainIndex(environment, new Generations())
  const schedule = {
    publisher,
    signatures: values.signatures,
    forkDepth: config.indexing.forkDepthMax,
    everyMs: 0,
  }
  const builder = new L1Builder(index, new BandStore(bandsFolder(root)), systemClock, schedule)
  const refusal = await builder.build(Number.POSITIVE_INFINITY, (id, count) => {
    process.stdout.write(`${id}  ${grouped(count)} transactions\n`)
  })
  await environment.close()
  if (refusal === undefined) return 0
  process.stderr.write(`sluice bands l1: ${refusal.message}\n`)
  return exitCode.failed
}

function wrong(message: string): number {
  process.stderr.write(`sluice bands l1: ${message}\n`)
  return exitCode.usage
}
