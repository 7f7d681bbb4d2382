import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type Config, readConfig } from '../../config/read.js'
import { type NamedPublisher, readPublisher } from '../../config/swarm.js'
import { systemClock } from '../actor/clock.js'
import { createLog } from '../actor/log.js'
import { l1Bands } from '../bands/l1-kind.js'
import { isRefusal } from '../format/refusal.js'
import { BulkImport } from '../ingest/bulk-import.js'
import { NodeFolder } from '../ingest/node-folder.js'
import { type Bulk, openBulk } from '../main/bulk.js'
import { chainOf, findL1 } from '../parquet/l1-find.js'
import { importL1 } from '../parquet/l1-import.js'
import { exitCode } from './exit-code.js'
import { dropBands, fetchBands } from './import-publication.js'
import { oneLine } from './one-line.js'
import { paint } from './paint.js'
import { grouped, Progress } from './progress-line.js'
import { stopRequested } from './stop-signal.js'

const help = `sluice import: fills the index of the chain from a folder or from what a gateway publishes, without a node

Usage: sluice import FOLDER [--no-verify] [--from HEIGHT]
       sluice import ADDRESS#KEY [--from HEIGHT]

ADDRESS#KEY (or ADDRESS#wallet:WALLET, with INDEX_REGISTRY) is a gateway and who signs its publication, as in INDEX_SUBSCRIPTIONS.
KEY is the gateway's keyId in /gateway/info, or its solanaAddress.
Its Parquet bands are fetched into DATA_PATH/importing, checked against what was signed, and removed when they are in the index.

FOLDER holds either

  Parquet bands         band.json and its tables, or folders that hold these
  what a node answers   blocks/*.json (by hash, with blocks-by-height.json, or by height), transactions/<id>.json,
                        and the data of bundles as data/<id> or bundles/<id>

The gateway must not run. The index continues from its last block; killed at any moment, a second run continues from there. What a
folder of node answers lacks (transactions, bundles) is queued: the gateway asks nodes for it when it runs. Bundles are opened as
ANS104_UNBUNDLE_FILTER and ANS104_INDEX_FILTER say.

Large folders of node answers take less processor time with NODE_OPTIONS=--max-semi-space-size=64.

  --no-verify    trust the folder: no signatures, digests and data roots are checked (that blocks follow each other always is).
                 Items of bundles are marked as unchecked: the index may then tell of some what their owners did not sign
  --from HEIGHT  where an empty index begins; without it with the lowest block of the folder

Examples:
  DATA_PATH=/srv/sluice NETWORK=mainnet sluice import /srv/bands/parquet-l1
  DATA_PATH=/srv/sluice sluice import ./dump --no-verify
  DATA_PATH=/srv/sluice NETWORK=mainnet sluice import https://gateway.example#KEY
`

interface Wanted {
  readonly folder: string
  readonly verify: boolean
  readonly startHeight?: number
}

/** Imports a folder. Exit codes: 0 done, 1 something was refused or left, 2 wrong words. */
export async function bulkImport(words: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: {
      help: { type: 'boolean' },
      'no-verify': { type: 'boolean', default: false },
      from: { type: 'string' },
    },
    allowPositionals: true,
  })
  if (values.help === true) {
    process.stdout.write(help)
    return 0
  }
  const [from, ...others] = positionals
  if (from === undefined || others.length > 0) return wrong('give one folder; see sluice import --help')
  const publisher = /^https?:/.test(from) ? readPublisher(from) : undefined
  if (publisher !== undefined && 'wrong' in publisher)
    return wrong('give ADDRESS#KEY; see sluice import --help')
  if (publisher === undefined && !existsSync(from)) return wrong(`there is no folder ${from}`)
  if (values.from !== undefined && !/^\d{1,9}$/.test(values.from)) return wrong('--from wants a height')
  const config = readConfig()
  if (Array.isArray(config)) return wrong(config.join('\n  '))
  const startHeight = values.from === undefined ? config.indexing.startHeight : Number(values.from)
  const start = startHeight === undefined ? {} : { startHeight }
  return publisher === undefined
    ? importFolder(config, { folder: resolve(from), verify: !values['no-verify'], ...start })
    : importPublished(config, publisher.value, start)
}

async function importPublished(
  config: Config,
  publisher: NamedPublisher,
  start: { readonly startHeight?: number },
): Promise<number> {
  let folder: string | undefined
  try {
    folder = await fetchBands(config, publisher)
  } catch (error) {
    return wrong((error as Error).message)
  }
  if (folder === undefined) return exitCode.failed
  if (!existsSync(folder) || readdirSync(folder).length === 0) {
    say('nothing is published that the index does not have')
    return 0
  }
  // Each band was read to its end and checked before it was put into the folder.
  const code = await importFolder(config, { folder, verify: false, ...start })
  if (code === 0) await dropBands(config)
  return code
}

function wrong(message: string): number {
  process.stderr.write(`sluice import: ${message}\n`)
  return exitCode.usage
}

async function importFolder(config: Config, wanted: Wanted): Promise<number> {
  const stop = stopRequested()
  const log = createLog('warn', 'import')
  let bulk: Bulk
  try {
    bulk = await openBulk(config, wanted.verify ? 2 : 0, systemClock, log, stop)
  } catch (error) {
    return wrong((error as Error).message)
  }
  try {
    const parquet = !existsSync(join(wanted.folder, 'blocks'))
    const code = parquet ? await importBands(bulk, wanted) : await importAnswers(bulk, wanted, stop)
    await bulk.keep()
    const { rows, bytes } = bulk.usage()
    const each = rows === 0 ? '' : `, ${Math.round(bytes / rows)} bytes each`
    say(
      `the index ends at block ${bulk.index.topHeight() ?? 'none'}: ${grouped(rows)} transactions and items${each}`,
    )
    return code
  } catch (error) {
    if (!stop.aborted) throw error
    say('stopped; run the command again to go on')
    return exitCode.failed
  } finally {
    await bulk.close()
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function refused(message: string): number {
  process.stderr.write(`${paint('red', 'refused', process.stderr)}  ${oneLine(message)}\n`)
  return exitCode.failed
}

async function importBands(bulk: Bulk, { folder, verify, startHeight }: Wanted): Promise<number> {
  const found = await findL1(folder)
  if (isRefusal(found)) return refused(found.message)
  if (found.length === 0) return refused(`${folder} holds neither blocks/ nor Parquet bands`)
  bulk.index.refresh()
  const top = bulk.index.topHeight()
  const bands = chainOf(found, top === undefined ? startHeight : top + 1)
  const of = bands.reduce((sum, { band }) => sum + band.tables.transactions.rows, 0)
  const progress = new Progress('transactions', systemClock)
  let [done, lost] = [0, 0]
  for (const { folder: path, band } of bands) {
    progress.show(done, of, 'checking')
    const bad = verify ? await l1Bands.check(path) : undefined
    if (bad !== undefined) return refused(bad.message)
    const refusal = await importL1(path, band, {
      index: bulk.index,
      write: (request) => bulk.write(request),
      keep: () => bulk.keep(),
      remember: (transactions) => {
        lost += bulk.remember(transactions)
      },
      imported: (_blocks, transactions) => {
        done += transactions
        progress.show(done, of, `to block ${band.heightRange[1]}`)
      },
    })
    if (refusal !== undefined) return refused(refusal.message)
  }
  progress.end(done, of)
  if (bands.length === 0) say(`no band of the folder goes on from block ${top ?? 'none'}`)
  if (lost > 0) return refused(`${lost} bundles found no room on the agenda`)
  return 0
}

async function importAnswers(bulk: Bulk, wanted: Wanted, signal: AbortSignal): Promise<number> {
  const { verify, startHeight } = wanted
  const blocks = new Progress('blocks', systemClock)
  /** Progress by bundles, because nobody knows how many items they have. */
  let bundles: Progress | undefined
  let [transactions, items] = [0, 0]
  const importing = new BulkImport(
    { ...bulk, folder: new NodeFolder(wanted.folder), clock: systemClock },
    { verify, rules: bulk.rules, ...(startHeight === undefined ? {} : { startHeight }) },
    {
      blocks: (done, of) => blocks.show(done, of, `${grouped(transactions)} transactions`),
      transactions: (done) => {
        transactions = done
      },
      bundles: (done, of) => {
        bundles ??= new Progress('bundles', systemClock)
        bundles.show(done, of, `${grouped(items)} items`)
      },
      items: (done) => {
        items = done
      },
    },
  )
  const outcome = await importing.run(signal)
  if (isRefusal(outcome)) return refused(outcome.message)
  blocks.end(outcome.blocks, outcome.blocks)
  bundles?.end(outcome.bundles, outcome.bundles)
  if (outcome.missing > 0)
    say(`${grouped(outcome.missing)} transactions are missing: the gateway will ask nodes for them`)
  if (outcome.bad > 0) say(`${grouped(outcome.bad)} items are bad and were left out`)
  for (const line of outcome.left) say(`${paint('red', 'left')}  ${line}`)
  return outcome.left.length === 0 ? 0 : 1
}
