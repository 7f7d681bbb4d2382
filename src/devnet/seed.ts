import { open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { pause } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { getHead } from './get-head.js'

/** Example name to id, in a fresh devnet. */
export type Examples = Readonly<Record<string, string>>

export interface Planting {
  /** Base URL. */
  readonly gateway: string
  /** Posts the site to the embedded chain and mines it. */
  post(): Promise<Planted>
  /** Folder of the file that lists what was posted. */
  readonly folder: string
  readonly log: Log
  /** Stops the work; rejects with its reason. */
  readonly end: AbortSignal
}

/** What was posted. */
export interface Planted {
  readonly examples: Examples
  /** Example name to the bundle that holds it. */
  readonly roots: Readonly<Record<string, string>>
}

/** How long the gateway may take to prove and cache an example. */
const warmMs = 30_000
/** What was served for so long and is not in the cache is not kept: the disk has too little room. */
const unkeptMs = 5000

/**
 * Puts the site onto the embedded chain, once, and has every example in the gateway's cache when it resolves. A start that
 * was killed half way posts the site again, under other ids. Rejects where node or gateway fail.
 */
export async function plant(planting: Planting): Promise<Examples> {
  const file = join(planting.folder, 'seed.json')
  const known = await remembered(file)
  if (known === undefined) planting.log.info('putting a small site onto the embedded chain')
  const planted = known ?? (await planting.post())
  if (known === undefined) await remember(file, planted)
  for (const [name, id] of Object.entries(planted.examples)) await warm(planting, id, planted.roots[name])
  return planted.examples
}

async function remembered(file: string): Promise<Planted | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Planted
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function remember(file: string, planted: Planted): Promise<void> {
  const draft = await open(`${file}.new`, 'w')
  await draft.writeFile(JSON.stringify(planted, null, 2))
  await draft.sync()
  await draft.close()
  await rename(`${file}.new`, file)
}

/** Requests an id from the gateway until it answers from its cache with proven bytes. */
async function warm({ gateway, end, log }: Planting, id: string, root: string | undefined): Promise<void> {
  const requestHeaders = root === undefined ? {} : { 'X-GATEWAY-Root-Transaction-Id': root }
  let servedMs = 0
  for (let waited = 0; waited <= warmMs; waited += 100) {
    const { statusCode = 0, headers } = await getHead(`${gateway}/raw/${id}`, requestHeaders, end)
    const verified = headers['x-gateway-verified'] ?? headers['x-ar-io-verified']
    // Content that the operator has blocked or limited cannot be cached by this request, and that is no failure of the start.
    if ([402, 429, 451].includes(statusCode)) return
    if (statusCode === 200 && headers['x-cache'] === 'HIT' && verified === 'true') return
    servedMs = statusCode === 200 ? servedMs + 100 : 0
    if (servedMs > unkeptMs) {
      log.warn(
        { id },
        'an example is served, but not from the cache: is there room on the disk of DATA_PATH?',
      )
      return
    }
    await pause(100, end)
  }
  throw new Error(`the gateway did not serve the example ${id} within ${warmMs / 1000} s`)
}
