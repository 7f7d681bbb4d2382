import { systemClock } from '../actor/clock.js'
import { joined } from '../client/bytes.js'
import type { FundingMode } from '../client/funding.js'
import { typeOfName } from '../client/media-type.js'
import { fileSource } from '../client/node/files.js'
import { sourceOfBytes } from '../client/payload.js'
import { Progress } from './progress.js'
import { clientCommand, clientOf, show, tagsOf, WrongWords } from './wallet.js'

const help = `sluice put: uploads a file, or standard input

Usage: sluice put FILE|- [--type TYPE] [--tag NAME=VALUE]... [--paid-by ADDRESS]... [--usdc MAX]

An upload that was interrupted continues when the same command runs again. The receipt is checked.

  --type TYPE     content type; by the name of the file unless given
  --tag N=V       a tag; several times for several
  --paid-by ADDR  whose credits pay, by an approval; several times in order
  --usdc MAX      pays in USDC (x402) up to MAX micro-USDC instead of credits; needs an Ethereum key

Examples:
  sluice put photo.jpg --key wallet.json
  tar c folder | sluice put - --type application/x-tar --key wallet.json --network mainnet
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
  const source = file === '-' ? sourceOfBytes(await standardInput()) : await fileSource(file)
  const tags = tagsOf(values.tag)
  const type = typeof values.type === 'string' ? values.type : typeOfName(file)
  if (!tags.some(({ name }) => name === 'Content-Type')) tags.unshift({ name: 'Content-Type', value: type })
  const paidBy = values['paid-by'] as string[] | undefined
  const progress = new Progress('bytes', systemClock)
  const fundingMode = fundingOf(values.usdc)
  const task = client.upload({ data: source, dataItemOpts: { tags, ...(paidBy && { paidBy }) }, fundingMode })
  for await (const event of task) {
    if (event.type === 'upload') progress.show(event.processedBytes, event.totalBytes)
  }
  const receipt = await task
  const gateway = values.gateway === undefined ? gatewayUrlOf(receipt.dataCaches[0]) : undefined
  const link = `${gateway ?? client.addresses.gatewayUrls[0]}/${receipt.id}`
  return show(values, { ...receipt, link }, [receipt.id, `charged ${receipt.winc} winc`, link])
})

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
