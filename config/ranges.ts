import { isIP } from 'node:net'
import type { Parsed } from './setting.js'

/** What may be written. */
export const rangesAllowed = 'addresses and ranges such as 10.0.0.0/8 or 2001:db8::/32, comma between'

function isRange(text: string): boolean {
  const [, address = '', bits] = /^([^/]*)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? []
  const version = isIP(address)
  return (
    version !== 0 &&
    !address.includes('%') &&
    (bits === undefined || Number(bits) <= (version === 4 ? 32 : 128))
  )
}

/** Addresses and ranges, comma between. */
export function readRanges(given: string): Parsed<readonly string[]> {
  const value = given.split(',').map((part) => part.trim())
  const bad = value.filter((part) => !isRange(part))
  return bad.length === 0
    ? { value }
    : { wrong: `has entries that are no address or range: ${bad.join(' ')}` }
}
