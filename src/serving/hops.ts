import { spellings } from '../attest/vocabulary.js'
import type { Request } from '../http/exchange.js'

const hopsNames = spellings('Hops')

/** The first of these header fields that the request has. */
export function firstHeader(request: Request, spelled: readonly string[]): string | undefined {
  for (const name of spelled) {
    const value = request.header(name)
    if (value !== undefined) return value.trim()
  }
  return undefined
}

/** A whole number as header fields have it; undefined where it is none. */
export function wholeNumber(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,16}$/.test(text)) return undefined
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : undefined
}

/** Gateways that the request passed, by its own header; 0 where the header is absent or malformed. */
export function readHops(request: Request): number {
  return wholeNumber(firstHeader(request, hopsNames)) ?? 0
}
