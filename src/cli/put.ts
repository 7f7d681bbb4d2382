import { statSync } from 'node:fs'
import { systemClock } from '../actor/clock.js'
import { joined } from '../client/bytes.js'
import type { SluiceClient } from '../client/client.js'
import type { FundingMode } from '../client/funding.js'
import { typeOfName } from '../client/media-type.js'
import { fileSource } from '../client/node/files.js'
import { sourceOfBytes } from '../client/payload.js'
import { itemSizeOf } from '../client/prepare.js'
import { quoteUploads } from '../client/quote.js'
import { withShortage } from '../client/shortage.js'
import type { TextTag } from '../client/tags.js'
import { WrongWords } from './command.js'
import { chargedText, priceText } from './money.js'
import { program } from './program-name.js'
import { Progress } from './progress-line.js'
import { type ClientWords, clientCommand, clientOf, keyOf, show, tagsOf } from './wallet.js'

const help = `${program} put: uploads a file, or standard input

Usage: ${program} put FILE|- [--type TYPE] [--tag NAME=VALUE]... [--paid-by ADDRESS]... [--usdc MAX]

An upload that was interrupted continues when the same command runs again. The receipt is checked.

  --type TYPE     content type; by the name of the file unless given
  --tag N=V       a tag; several times for several
  --paid-by ADDR  whose credits pay, by an approval; several times in order
  --usdc MAX      pays in USDC (x402) up to MAX micro-USDC instead of credits; needs an Ethereum key

Examples:
  ${program} put photo.jpg --key wallet.json
  tar c folder | ${program} put - --type application/x-tar --key wallet.json --network mainnet
`

const options = {
  type: { type: 'string' },
  tag: { type: 'string', multiple: true },
  'paid-by': { type: 'string', multiple: true },
  usdc: { type: 'string' },
} as const

/** Uploads one file. */
export const put = clientCommand('put', help, options, async ([file, ...more], values) => {
  if (file === undefined || more.length > 0) throw new WrongWords('give one FILE, or - for standard input')
  const client = await clientOf(values)
  if (isKey(file, values)) throw new WrongWords(`${file} is the key: whoever has it can sign as you`)
  const source = file === '-' ? sourceOfBytes(await standardInput()) : await fileSource(file)
  const tags = tagsOf(values.tag)
  const type = typeof values.type === 'string' ? values.type : typeOfName(file)
  if (!tags.some(({ name }) => name === 'Content-Type')) tags.unshift({ name: 'Content-Type', value: type })
  const paidBy = values['paid-by'] as string[] | undefined
  const progress = new Progress('bytes', systemClock)
  const fundingMode = fundingOf(values.usdc)
  if (fundingMode.mode === 'credits') await sayPrice(client, source.size, tags)
  const task = client.upload({ data: source, dataItemOpts: { tags, ...(paidBy && { paidBy }) }, fundingMode })
  const { currentSigner } = client
  const bytes = currentSigner === undefined ? 0 : itemSizeOf(source.size, { tags }, currentSigner)
  const receipt = await withShortage(client, currentSigner?.address, bytes, async () => {
    for await (const event of task) {
      if (event.type === 'upload') progress.show(event.processedBytes, event.totalBytes)
    }
    return task
  })
  const gateway = values.gateway === undefined ? gatewayUrlOf(receipt.dataCaches[0]) : undefined
  const link = `${gateway ?? client.addresses.gatewayUrls[0]}/${receipt.id}`
  return show(values, { ...receipt, link }, [receipt.id, await chargedText(client, receipt.winc), link])
})

/**
 * Says what it costs before it is uploaded. Whether the wallet can pay is judged by the service: an item that it has charged
 * already is not charged again.
 */
async function sayPrice(client: SluiceClient, bytes: number, tags: readonly TextTag[]): Promise<void> {
  const { currentSigner } = client
  if (currentSigner === undefined) return
  const quote = await quoteUploads(client, [itemSizeOf(bytes, { tags }, currentSigner)])
  process.stderr.write(`${bytes} bytes: ${priceText(quote)}\n`)
}

/** Whether a file is the very key that signs, under whatever name. */
function isKey(file: string, values: ClientWords): boolean {
  const key = keyOf(values)?.file
  const [one, other] = [file, key].map((path) => path && statSync(path, { throwIfNoEntry: false }))
  if (!one || !other) return false
  return one.dev === other.dev && one.ino === other.ino
}

/** The gateway that a receipt names: an address, or the name of a host as the services of the network write it. */
function gatewayUrlOf(cache: string | undefined): string | undefined {
  const url = cache === undefined || URL.canParse(cache) ? cache : `https://${cache}`
  return url !== undefined && /^https?:/.test(url) && URL.canParse(url) ? url.replace(/\/+$/, '') : undefined
}

/** How the options say that the upload is paid. */
export function fundingOf(usdc: unknown): FundingMode {
  if (usdc === undefined) return { mode: 'credits' }
  if (typeof usdc !== 'string' || !/^\d{1,12}$/.test(usdc)) throw new WrongWords('--usdc takes micro-USDC')
  return { mode: 'x402', maxMUSDCAmount: BigInt(usdc) }
}

async function standardInput(): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of process.stdin) pieces.push(piece as Uint8Array)
  return joined(...pieces)
}
