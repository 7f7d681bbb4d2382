import { ProvingFetcher } from '../client/fetch/verified-fetch.js'
import { streamPieces } from '../client/payload.js'
import { WrongWords } from './command.js'
import { exitCode } from './exit-code.js'
import { oneLine } from './one-line.js'
import { program } from './program-name.js'
import { clientCommand, clientOf } from './wallet.js'
import { writeOut } from './write-out.js'

const help = `${program} get: fetches content and proves it before it is written

Usage: ${program} get ID|ID/PATH|ar://NAME/PATH [--range FIRST-LAST] [--output FILE]

No gateway is trusted with bytes: the owner's signature must be right, or for ranges and long data of a transaction the proofs of
its chunks. With several --gateway another one is asked where one fails or sends wrong bytes. What a name means, and which block
content lies in, nothing proves: a name is accepted where more than half of the gateways that answer agree on it.

  --range A-B     bytes A to B, or A- for the rest. A data item is first read once as a whole, because its owner's signature
                  covers nothing less
  --output FILE   into a file, which appears when all of it is there; standard output unless given

Examples:
  ${program} get 0FJrLrxrFkVTBwRrzCCh88Gm2tG1xPxg8s_IuRZDVzw --network mainnet > picture.jpg
  ${program} get ar://site/index.html --gateway http://127.0.0.1:3000
`

const options = { range: { type: 'string' }, output: { type: 'string' } } as const

/** Fetches and proves. */
export const getCommand = clientCommand('get', help, options, async ([reference, ...more], values) => {
  if (reference === undefined || more.length > 0) throw new WrongWords('give one ID or name')
  const client = await clientOf(values)
  const findings = new Findings()
  const fetcher = new ProvingFetcher({
    gatewayUrls: client.addresses.gatewayUrls,
    onFinding: ({ error }) => findings.add(`${error.code}: ${error.message}`, error.message),
  })
  const output = typeof values.output === 'string' ? values.output : undefined
  let response: Response
  try {
    response = await fetcher.fetch(reference, { range: rangeOf(values.range) })
    await writeOut(streamPieces(response.body as ReadableStream<Uint8Array>), output)
  } catch (error) {
    findings.end(error instanceof Error ? error.message : undefined)
    throw error
  }
  findings.end()
  process.stderr.write(`${oneLine(proofText(response.headers))}\n`)
  return exitCode.done
})

/** What is proven, and what is only stated: what a name means and which block it lies in are believed, not computed. */
function proofText(headers: Headers): string {
  const how = `proven by ${headers.get('x-verified')}, ${headers.get('content-type')}`
  const [nameId, block] = [headers.get('x-verified-name-id'), headers.get('x-verified-block')]
  const named =
    nameId === null ? '' : `, the name means ${nameId} (${whose(headers.get('x-verified-name-by'))})`
  if (block === null) return how + named
  const height = headers.get('x-verified-height')
  return `${how}${named}, in block ${block} at height ${height} (${whose(headers.get('x-verified-block-by'))})`
}

function whose(by: string | null): string {
  return by === '1 of 1' ? 'as one gateway says, give more by --gateway' : `as ${by ?? ''} gateways say`
}

/** Prints what was wrong with gateways, a line each. The last one waits: the command may end with the very same words. */
class Findings {
  #held: { readonly line: string; readonly message: string } | undefined

  add(line: string, message: string): void {
    if (this.#held?.line !== line) this.end()
    this.#held = { line, message }
  }

  /** `shown`: what the command itself ends with. */
  end(shown?: string): void {
    if (this.#held !== undefined && this.#held.message !== shown)
      process.stderr.write(`${oneLine(this.#held.line)}\n`)
    this.#held = undefined
  }
}

function rangeOf(text: unknown): { start: number; end?: number } | undefined {
  if (text === undefined) return undefined
  const [, start, end] = /^(\d{1,15})-(\d{0,15})$/.exec(String(text)) ?? []
  if (start === undefined) throw new WrongWords(`${String(text)} is no range: write FIRST-LAST`)
  if (end !== '' && Number(end) < Number(start)) throw new WrongWords(`${String(text)} ends before it begins`)
  return { start: Number(start), ...(end !== '' && { end: Number(end) }) }
}
