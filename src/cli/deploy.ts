import { statSync } from 'node:fs'
import { pause, systemClock } from '../actor/clock.js'
import type { SluiceClient } from '../client/client.js'
import { ClientError, type ErrorCode } from '../client/errors.js'
import { type FolderFile, type FolderResult, smallBytesMax, uploadFolder } from '../client/folder.js'
import { chainLayer, serviceLayer } from '../client/folder-index.js'
import { readFolder } from '../client/node/files.js'
import { addressOfOwner } from '../client/signer.js'
import { exitCode } from './exit-code.js'
import { oneLine } from './one-line.js'
import { setOwnName } from './own-names.js'
import { Progress } from './progress.js'
import { fundingOf } from './put.js'
import { type ClientWords, clientCommand, clientOf, creditsText, show, tagsOf, WrongWords } from './wallet.js'
import { changesOf, toldToStop } from './watch-folder.js'

const about = `Files that are on the network already, with the same bytes and tags and by the same key, are not uploaded again.
Prints the highest possible cost before it uploads, and the addresses afterwards. An interrupted upload
continues when the same command runs again.

  --index FILE     the path that stands for the folder (index.html unless given)
  --fallback FILE  the path for what is not there (404.html unless given)
  --tag N=V        a tag of every file; several times for several
  --bundle         puts small files together into one item: one request for a thousand of them
  --usdc MAX       pays in USDC (x402), at most so many micro-USDC for each item
`

const options = {
  index: { type: 'string' },
  fallback: { type: 'string' },
  tag: { type: 'string', multiple: true },
  usdc: { type: 'string' },
  bundle: { type: 'boolean' },
} as const
const deployOptions = { ...options, name: { type: 'string' }, ttl: { type: 'string' } } as const
const syncOptions = { ...options, watch: { type: 'boolean' } } as const

const deployHelp = `sluice deploy: uploads a folder and gives it a manifest and a name

Usage: sluice deploy DIR [--name NAME [--ttl SECONDS]] [--index FILE] [--fallback FILE]

${about}  --name NAME      what the name means from now on, in the registry of this machine's gateway (DATA_PATH)
  --ttl SECONDS    how long the name may be remembered, so that the next deploy is seen after that (60)

Example:
  sluice deploy dist --name docs --key wallet.json
`

const syncHelp = `sluice sync: uploads a folder, and again whatever changes in it

Usage: sluice sync DIR [--watch]

${about}  --watch          stays, and uploads what changes until it is stopped (Ctrl+C); what fails is said, and tried again

Example:
  sluice sync site --watch --key wallet.json
`

/** A name that is deployed to again and again should not be remembered for long. */
const ttlUsualSeconds = 60

type Words = ClientWords & Record<string, unknown>

/** Uploads a folder once. */
export const deploy = clientCommand('deploy', deployHelp, deployOptions, async ([word, ...more], values) => {
  const client = await clientOf(values)
  if (values.ttl !== undefined && values.name === undefined) throw new WrongWords('--ttl is of a --name')
  const ttl = Number(values.ttl ?? ttlUsualSeconds)
  if (!Number.isSafeInteger(ttl) || ttl < 0)
    throw new WrongWords(`--ttl ${values.ttl} is no number of seconds`)
  const result = await uploaded(client, checkedFolder(word, more), values)
  const id = result.manifestResponse?.id ?? ''
  if (typeof values.name !== 'string') return told(client, values, result)
  await setOwnName(values.name, id, ttl)
  return told(client, values, result, nameLink(client, values.name))
})

/** Uploads a folder, and again when it changes. */
export const sync = clientCommand('sync', syncHelp, syncOptions, async ([word, ...more], values) => {
  const client = await clientOf(values)
  const folder = checkedFolder(word, more)
  if (values.watch === true) return watched(client, folder, values)
  return told(client, values, await uploaded(client, folder, values))
})

/** Failures that pass by themselves. A file may vanish, or be written, just while it is read. */
const passing: ReadonlySet<ErrorCode> = new Set([
  'unavailable',
  'rate-limited',
  'not-found',
  'changed-while-read',
])
const againMs = 5000

/** The first upload has to succeed: what stops it are mostly wrong words. */
async function watched(client: SluiceClient, folder: string, values: Words): Promise<number> {
  const stop = toldToStop()
  let isFirst = true
  for await (const _ of changesOf(folder, stop)) {
    for (let isDone = false; !isDone && !stop.aborted; ) {
      try {
        told(client, values, await uploaded(client, folder, values, stop))
        isDone = true
      } catch (error) {
        if (stop.aborted) break
        if (isFirst || !(error instanceof ClientError)) throw error
        process.stderr.write(`sluice sync: ${oneLine(error.message)}\n  ${error.advice}\n`)
        isDone = !passing.has(error.code)
        if (!isDone) await pause(againMs, stop)
      }
    }
    isFirst = false
  }
  return exitCode.done
}

function checkedFolder(folder: string | undefined, more: readonly string[]): string {
  if (folder === undefined || more.length > 0) throw new WrongWords('give one DIR')
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new WrongWords(`${folder} is no folder`)
  return folder
}

async function uploaded(
  client: SluiceClient,
  folder: string,
  values: Words,
  signal?: AbortSignal,
): Promise<FolderResult> {
  const { files, leftOut } = await readFolder(folder)
  for (const one of leftOut) process.stderr.write(`left out: ${oneLine(one)}\n`)
  await sayPrice(
    client,
    files.map(({ source }) => source.size),
  )
  if (values.bundle !== true) sayBundle(files)
  const owner = client.currentSigner === undefined ? '' : addressOfOwner(client.currentSigner.owner)
  const { uploadUrl, gatewayUrls } = client.addresses
  const [gateway = ''] = gatewayUrls
  const ask = (url: string, init?: RequestInit): Promise<Response> => fetch(url, init)
  const progress = new Progress('files', systemClock)
  const { index, fallback } = values
  const task = uploadFolder(client, {
    files,
    signal,
    dataItemOpts: { tags: tagsOf(values.tag) },
    fundingMode: fundingOf(values.usdc),
    folderIndex: [serviceLayer(uploadUrl, gateway, owner, ask), chainLayer(gateway, owner, ask)],
    bundleSmallFiles: values.bundle === true,
    manifest: {
      ...(typeof index === 'string' && { indexFile: index }),
      ...(typeof fallback === 'string' && { fallbackFile: fallback }),
    },
  })
  for await (const event of task) {
    if (event.type === 'folder') progress.show(event.processedFiles, event.totalFiles, event.currentPhase)
    if (event.type === 'notice') process.stderr.write(`${oneLine(event.message)}\n`)
  }
  return task
}

/** Prints an estimate of the price. Each item has a price beside that of its bytes, so the sum is not exact. */
async function sayPrice(client: SluiceClient, sizes: readonly number[]): Promise<void> {
  const total = sizes.reduce((sum, size) => sum + size, 0)
  const costs = await client.getUploadCosts({ bytes: [total] })
  const winc = costs[0]?.winc ?? '0'
  process.stderr.write(
    `${sizes.length} files, ${total} bytes: about ${creditsText(winc)} if nothing of it is there or free\n`,
  )
}

/** From so many small files on it takes noticeably longer to send each by itself. */
const manyFiles = 100

/** Bundles are not made unasked: a service may give small items away, and charge for the bundle. */
function sayBundle(files: readonly FolderFile[]): void {
  const small = files.filter(({ source }) => source.size <= smallBytesMax).length
  if (small < manyFiles) return
  process.stderr.write(
    `${small} small files: --bundle sends up to a thousand at once, and pays for all their bytes\n`,
  )
}

/** Where a name of this machine's gateway is served: browsers resolve every host below localhost to this machine. */
function nameLink(client: SluiceClient, name: string): string {
  const url = new URL(client.addresses.gatewayUrls[0] ?? 'http://127.0.0.1:3000')
  if (url.hostname === '127.0.0.1') url.hostname = 'localhost'
  url.hostname = `${name}.${url.hostname}`
  return url.href
}

function told(client: SluiceClient, values: Words, result: FolderResult, named?: string): number {
  const { folderIndexSummary: sum, manifestResponse } = result
  const id = manifestResponse?.id ?? ''
  const link = `${client.addresses.gatewayUrls[0]}/${id}/`
  const files = result.fileResponses.map(({ path, id: file, reused }) => ({ path, id: file, reused }))
  const counts = `${sum.uploadedFiles} of ${sum.totalFiles} files uploaded, ${sum.reusedFiles} were there`
  const links = named === undefined ? [link] : [link, named]
  return show(values, { id, link, ...(named && { named }), ...sum, files }, [counts, id, ...links])
}
