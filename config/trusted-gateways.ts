import { type Parsed, readUrl } from './setting.js'

/** One entry of TRUSTED_GATEWAYS_URLS. */
export interface TrustedGatewayEntry {
  readonly url: string
  /** Lower comes first. */
  readonly priority: number
  /** Whether its bytes may be called trusted. */
  readonly trusted: boolean
}

function readEntry(address: string, entry: unknown): Parsed<TrustedGatewayEntry> {
  const url = readUrl(address)
  if ('wrong' in url) return url
  const given = typeof entry === 'object' && entry !== null ? entry : { priority: entry }
  const priority = 'priority' in given ? given.priority : undefined
  const trusted = 'trusted' in given ? given.trusted : true
  if (typeof priority !== 'number' || !Number.isFinite(priority)) {
    return { wrong: `${address}: priority must be a number` }
  }
  if (typeof trusted !== 'boolean') return { wrong: `${address}: trusted must be true or false` }
  return { value: { url: url.value, priority, trusted } }
}

/** Reads the JSON form `{url: priority | {priority, trusted}}`. */
export function readTrustedGateways(text: string): Parsed<readonly TrustedGatewayEntry[]> {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    return { wrong: `is not JSON: ${(error as Error).message}` }
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    return { wrong: 'must be a JSON object, address to priority' }
  }
  const read = Object.entries(json).map(([address, entry]) => readEntry(address, entry))
  const wrong = read.flatMap((one) => ('wrong' in one ? [one.wrong] : []))
  if (wrong.length > 0) return { wrong: wrong.join('; ') }
  return { value: read.flatMap((one) => ('value' in one ? [one.value] : [])) }
}
