import { statSync } from 'node:fs'
import { pause, systemClock } from '../actor/clock.js'
import type { SluiceClient } from '../client/client.js'
import { asClientError, ClientError, type ErrorCode } from '../client/errors.js'
import { type FolderFile, type FolderResult, smallBytesMax, uploadFolder } from '../client/folder.js'
import { chainLayer, serviceLayer } from '../client/folder-index.js'
import type { FolderPlan } from '../client/folder-plan.js'
import { readFolder } from '../client/node/files.js'
import { setName } from '../client/set-name.js'
import { addressOfOwner } from '../client/signer.js'
import { parseName } from '../names/name.js'
import { ttlMaxSeconds } from '../names/name-record.js'
import { WrongWords } from './command.js'
import { exitCode } from './exit-code.js'
import { affordable, chargedText, priceText } from './money.js'
import { oneLine } from './one-line.js'
import { program } from './program-name.js'
import { Progress } from './progress-line.js'
import { fundingOf } from './put.js'
import { stopRequested } from './stop-signal.js'
import { type ClientWords, clientCommand, clientOf, keyOf, show, tagsOf } from './wallet.js'
import { changesOf } from './watch-folder.js'

const about = `Files that are on the network already, with the same bytes and tags and by the same key, are not uploaded again.
Says what all of it costs at most before it uploads, and is never charged more; the addresses afterwards. An interrupted
upload continues when the same command runs again.

Hidden files and folders (.git, .env) are left out, all but .well-known, and so is what .sluiceignore in DIR names, which is
written as .gitignore is.

  --index FILE     the path that stands for the folder (index.html unless given)
  --fallback FILE  the path for what is not there (404.html unless given)
  --tag N=V        a tag of every file; several times for several
  --bundle         puts small files together into one item: one request for a thousand of them
  --usdc MAX       pays in USDC (x402), at most so many micro-USDC for each item
  --include-hidden uploads hidden files, too: whoever has the link can read them for ever
`

const options = {
  index: { type: 'string' },
  fallback: { type: 'string' },
  tag: { type: 'string', multiple: true },
  usdc: { type: 'string' },
  bundle: { type: 'boolean' },
  'include-hidden': { type: 'boolean' },
} as const
const deployOptions = { ...options, name: { type: 'string' }, ttl: { type: 'string' } } as const
const syncOptions = { ...options, watch: { type: 'boolean' } } as const

const deployHelp = `${program} deploy: uploads a folder and gives it a manifest and a name

Usage: ${program} deploy DIR [--name NAME [--ttl SECONDS]] [--index FILE] [--fallback FILE]

${about}  --name NAME      what the name means from now on at the gateway, whose operator says which key may set
                   it (sluice names grant). Where this key may not, the link with the id is told: exit code 6
  --ttl SECONDS    how long the name may be remembered, so that the next deploy is seen after that (60)

Example:
  ${program} deploy dist --name docs --key wallet.json
`

const syncHelp = `${program} sync: uploads a folder, and again whatever changes in it

Usage: ${program} sync DIR [--watch]

${about}  --watch          stays, and uploads what changes until it is stopped (Ctrl+C); what fails is said, and tried again

Example:
  ${program} sync site --watch --key wallet.json
`

/** A name that is deployed to again and again should not be remembered for long. */
const ttlUsualSeconds = 60

type Words = ClientWords & Record<string, unknown>

/** Uploads a folder once. */
export const deploy = clientCommand('deploy', deployHelp, deployOptions, async ([word, ...more], values) => {
  const client = await clientOf(values)
  if (values.ttl !== undefined && values.name === undefined) throw new WrongWords('--ttl is of a --name')
  const ttlSeconds = Number(values.ttl ?? ttlUsualSeconds)
  if (!Number.isSafeInteger(ttlSeconds) || ttlSeconds < 0 || ttlSeconds > ttlMaxSeconds)
    throw new WrongWords(`--ttl ${values.ttl} is no number of seconds up to ${ttlMaxSeconds}`)
  const name = typeof values.name === 'string' ? parseName(values.name)?.full : undefined
  if (values.name !== undefined && name === undefined) throw new WrongWords(`${values.name} is no name`)
  const result = await uploaded(client, checkedFolder(word, more), values)
  const id = result.manifestResponse?.id ?? ''
  const { currentSigner } = client
  if (name === undefined || currentSigner === undefined) return printed(client, values, result)
  const named = await setName(client.addresses.gatewayUrls[0] ?? '', currentSigner, {
    name,
    id,
    ttlSeconds,
  }).catch(asClientError)
  if (typeof named === 'string') return printed(client, values, result, { named })
  // The uploaded files are paid for and stay, so the link is printed anyway.
  const { code, message, advice, status } = named
  await printed(client, values, result, { nameError: { code, message, advice, status } })
  process.stderr.write(`${program} deploy: the name ${name} was not set: ${oneLine(message)}\n  ${advice}\n`)
  return exitCode.unnamed
})

/** Uploads a folder, and again when it changes. */
export const sync = clientCommand('sync', syncHelp, syncOptions, async ([word, ...more], values) => {
  const client = await clientOf(values)
  const folder = checkedFolder(word, more)
  if (values.watch === true) return watched(client, folder, values)
  return printed(client, values, await uploaded(client, folder, values))
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
  const stop = stopRequested()
  let isFirst = true
  for await (const _ of changesOf(folder, stop)) {
    for (let isDone = false; !isDone && !stop.aborted; ) {
      try {
        await printed(client, values, await uploaded(client, folder, values, stop))
        isDone = true
      } catch (error) {
        if (stop.aborted) break
        if (isFirst || !(error instanceof ClientError)) throw error
        process.stderr.write(`${program} sync: ${oneLine(error.message)}\n  ${error.advice}\n`)
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
  const key = keyOf(values)?.file
  const { files, leftOut } = await readFolder(folder, {
    includeHidden: values['include-hidden'] === true,
    never: key === undefined ? [] : [key],
  })
  sayLeftOut(leftOut)
  if (values.bundle !== true) sayBundle(files)
  const owner = client.currentSigner === undefined ? '' : addressOfOwner(client.currentSigner.owner)
  const { uploadUrl, gatewayUrls } = client.addresses
  const [gateway = ''] = gatewayUrls
  const ask = (url: string, init?: RequestInit): Promise<Response> => fetch(url, init)
  const progress = new Progress('files', systemClock)
  const { index, fallback } = values
  const fundingMode = fundingOf(values.usdc)
  const task = uploadFolder(client, {
    files,
    signal,
    dataItemOpts: { tags: tagsOf(values.tag) },
    fundingMode,
    folderIndex: [serviceLayer(uploadUrl, gateway, owner, ask), chainLayer(gateway, owner, ask)],
    bundleSmallFiles: values.bundle === true,
    onPlan: (plan) => sayPlan(client, plan, values.usdc),
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

/** Says what will be uploaded and what it costs, and resolves with that as the limit. USDC has a limit for each item. */
async function sayPlan(
  client: SluiceClient,
  { itemBytes, itemsInside, files, reusedFiles }: FolderPlan,
  usdc: unknown,
): Promise<bigint | undefined> {
  const bytes = itemBytes.reduce((sum, one) => sum + one, 0)
  const there = reusedFiles === 0 ? '' : `, ${reusedFiles} are there`
  const what = `${files} files to upload${there}; ${itemBytes.length} items, ${bytes} bytes`
  if (usdc !== undefined) {
    process.stderr.write(`${what}: at most ${usdc} micro-USDC for each item\n`)
    return undefined
  }
  const quote = await affordable(client, itemBytes, itemsInside)
  const some = quote.winc === 0n || quote.freeItems === 0 ? '' : `, ${quote.freeItems} of them free`
  process.stderr.write(`${what}${some}: ${priceText(quote)}\n`)
  return quote.winc
}

/** Lines about files that are left out; the rest is counted. */
const leftOutLinesMax = 20

function sayLeftOut(leftOut: readonly string[]): void {
  for (const one of leftOut.slice(0, leftOutLinesMax)) process.stderr.write(`left out: ${oneLine(one)}\n`)
  const more = leftOut.length - leftOutLinesMax
  if (more > 0) process.stderr.write(`left out: ${more} more\n`)
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

async function printed(
  client: SluiceClient,
  values: Words,
  result: FolderResult,
  naming: { readonly named?: string; readonly nameError?: object } = {},
): Promise<number> {
  const { folderIndexSummary: sum, manifestResponse } = result
  const id = manifestResponse?.id ?? ''
  const link = `${client.addresses.gatewayUrls[0]}/${id}/`
  const files = result.fileResponses.map(({ path, id: file, reused }) => ({ path, id: file, reused }))
  const counts = `${sum.uploadedFiles} of ${sum.totalFiles} files uploaded, ${sum.reusedFiles} were there`
  const charged = values.usdc === undefined ? [await chargedText(client, sum.winc)] : []
  const links = naming.named === undefined ? [link] : [link, naming.named]
  return show(values, { id, link, ...naming, ...sum, files }, [counts, id, ...charged, ...links])
}
