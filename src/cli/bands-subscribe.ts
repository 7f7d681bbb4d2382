import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Config, readConfig } from '../../config/read.js'
import { BandStore } from '../bands/band-store.js'
import { SubscriptionState, subscriptionKey } from '../bands/subscription.js'
import { claimDataFolder } from '../main/data-folder.js'
import { folders } from '../threads/folders.js'
import { bandsFolder } from '../threads/index/bands-options.js'
import { subscriberOptions } from '../threads/index/swarm-options.js'
import { exitCode } from './exit-code.js'
import { fetchPublished } from './fetch-published.js'
import { oneLine } from './one-line.js'
import { paint } from './paint.js'

const help = `sluice bands: fetches bands that other gateways publish

Usage: sluice bands subscribe
       sluice bands status

  subscribe  fetches, once, what the gateways in INDEX_SUBSCRIPTIONS publish, and ends; the gateway must not run (it does
             this by itself). A later run continues an interrupted one. Ends with code 1 where something could not be fetched
  status     what is known about each publisher, and which of its bands are here or being fetched; may run while the gateway runs

Examples:
  INDEX_SUBSCRIPTIONS=https://gateway.example#KEY sluice bands subscribe
  DATA_PATH=/srv/sluice sluice bands status
`

/** The settings, or an exit code where they or the words are wrong. */
function configured(words: readonly string[]): Config | number {
  if (words[0] === '--help') {
    process.stdout.write(help)
    return 0
  }
  if (words.length > 0) return wrong('no words are expected; see sluice bands subscribe --help')
  const config = readConfig()
  return Array.isArray(config) ? wrong(config.join('\n  ')) : config
}

function wrong(message: string): number {
  process.stderr.write(`sluice bands: ${message}\n`)
  return exitCode.usage
}

/** Fetches what others publish, once. */
export async function subscribe(words: readonly string[]): Promise<number> {
  const config = configured(words)
  if (typeof config === 'number') return config
  if (config.swarm.subscriptions.length === 0) return wrong('set INDEX_SUBSCRIPTIONS to ADDRESS#KEY')
  const { root } = folders(config)
  const claim = await claimDataFolder(root)
  try {
    if (!(await fetchPublished(subscriberOptions(config), bandsFolder(root)))) return exitCode.failed
    process.stdout.write(`${paint('green', 'done')}  all that is published is here\n`)
    return 0
  } finally {
    await claim.release()
  }
}

/** Shows what is known of publishers, and their bands. */
export async function status(words: readonly string[]): Promise<number> {
  const config = configured(words)
  if (typeof config === 'number') return config
  const path = bandsFolder(folders(config).root)
  const state = await SubscriptionState.open(path)
  const { subscriptions } = subscriberOptions(config)
  if (subscriptions.length === 0)
    process.stdout.write('no publisher is followed: name some in INDEX_SUBSCRIPTIONS\n')
  for (const subscription of subscriptions) {
    const seen = state.seen.get(subscriptionKey(subscription))
    const checked = seen === undefined ? '' : new Date(seen.checkedMs).toISOString()
    const about = seen === undefined ? 'never reached' : `sequence ${seen.sequence}, checked ${checked}`
    process.stdout.write(`${subscription.url}  ${about}  ${paint('red', oneLine(seen?.problem ?? ''))}\n`)
  }
  for (const { index, id, folder } of await new BandStore(path).list('installed')) {
    process.stdout.write(`${paint('green', 'here')}      ${index}/${id}  ${await bytesIn(folder)} bytes\n`)
  }
  const fetching = join(path, 'fetching')
  for (const index of await namesIn(fetching)) {
    for (const id of await namesIn(join(fetching, index))) {
      const bytes = await bytesIn(join(fetching, index, id, 'files'))
      process.stdout.write(`fetching  ${index}/${id}  ${bytes} bytes\n`)
    }
  }
  return 0
}

function namesIn(path: string): Promise<string[]> {
  return readdir(path).catch(() => [])
}

/** What its files take on disk, without the parts that are still to be fetched (sparse files). */
async function bytesIn(folder: string): Promise<number> {
  let bytes = 0
  for (const name of await namesIn(folder)) {
    const { blocks, size } = await stat(join(folder, name))
    bytes += Math.min(size, blocks * 512)
  }
  return bytes
}
