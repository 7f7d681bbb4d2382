import { ProvingFetcher } from '../client/fetch/verified-fetch.js'
import { streamPieces } from '../client/payload.js'
import { exitCode } from './exit-code.js'
import { clientCommand, clientOf, WrongWords } from './wallet.js'
import { writeOut } from './write-out.js'

const help = `sluice get: fetches content and proves it before it is written

Usage: sluice get ID|ID/PATH|ar://NAME/PATH [--range FIRST-LAST] [--output FILE]

No gateway is trusted: the owner's signature or the proofs of chunks must be right. With several --gateway another one is asked
where one fails or sends wrong bytes, and a name is accepted where more than half of them agree on it.

  --range A-B     bytes A to B, or A- for the rest
  --output FILE   into a file, which appears when all of it is there; standard output unless given

Examples:
  sluice get 0FJrLrxrFkVTBwRrzCCh88Gm2tG1xPxg8s_IuRZDVzw --network mainnet > picture.jpg
  sluice get ar://site/index.html --gateway http://127.0.0.1:3000
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
  const how = `${response.headers.get('x-verified')}, ${response.headers.get('content-type')}`
  const block = response.headers.get('x-verified-block')
  const where =
    block === null ? '' : `, in block ${block} at height ${response.headers.get('x-verified-height')}`
  process.stderr.write(`proven by ${how}${where}\n`)
  return exitCode.done
})

/** Tells what was wrong with gateways, a line each. The last one waits: the command may end with the very same words. */
class Findings {
  #held: { readonly line: string; readonly message: string } | undefined

  add(line: string, message: string): void {
    this.end()
    this.#held = { line, message }
  }

  /** `said`: what the command itself ends with. */
  end(said?: string): void {
    if (this.#held !== undefined && this.#held.message !== said) process.stderr.write(`${this.#held.line}\n`)
    this.#held = undefined
  }
}

function rangeOf(text: unknown): { start: number; end?: number } | undefined {
  if (text === undefined) return undefined
  const [, start, end] = /^(\d{1,15})-(\d{0,15})$/.exec(String(text)) ?? []
  if (start === undefined) throw new WrongWords(`${String(text)} is no range: write FIRST-LAST`)
  return { start: Number(start), ...(end !== '' && { end: Number(end) }) }
}
