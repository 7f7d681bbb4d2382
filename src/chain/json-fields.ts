import { decodeBase64url } from '../format/base64url.js'
import { parsedJson } from '../format/json.js'

/**
 * Readers for values of unknown shape, as they come out of JSON or plain text. Each gives the value, or undefined where the
 * shape is wrong. Nodes write whole numbers as JSON numbers in old records and as decimal text in newer ones.
 */

export type Fields = Readonly<Record<string, unknown>>

/** More than any answer of a node has: a block names at most some thousand transactions. */
const valuesMax = 200_000

/** The object that `text` is JSON of. */
export function fieldsOf(text: string): Fields | undefined {
  return objectOf(parsedJson(text, { values: valuesMax }))
}

/** The fields of a JSON object; undefined for any other value. */
export function objectOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined
}

const decimal = /^(0|[1-9][0-9]*)$/

/** A whole number from 0 to 2^53 - 1, as number or as decimal text without signs, spaces or leading zeros. */
export function wholeOf(value: unknown): number | undefined {
  if (typeof value === 'string') return decimal.test(value) ? wholeOf(Number(value)) : undefined
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

/** Heights above this are no answer: 8,000 years of blocks. Keys of the index have four bytes for a height. */
export const heightMax = 0x7fff_ffff

/** Height of a block, as number or decimal text. */
export function blockHeightOf(value: unknown): number | undefined {
  const height = wholeOf(value)
  return height === undefined || height > heightMax ? undefined : height
}

/** An amount of winston as decimal text: at most 30 digits, far more than the supply. */
export function winstonOf(text: string): bigint | undefined {
  return text.length <= 30 && decimal.test(text) ? BigInt(text) : undefined
}

/** Canonical base64url text of `min` to `max` bytes. */
export function bytesOf(value: unknown, min: number, max: number): Uint8Array | undefined {
  if (typeof value !== 'string' || value.length > Math.ceil((max * 4) / 3)) return undefined
  const bytes = decodeBase64url(value)
  return bytes === undefined || bytes.length < min || bytes.length > max ? undefined : bytes
}

/**
 * The whole number in a field, as decimal text. Where it is a JSON number beyond 2^53 its digits are read out of `text`, the JSON
 * that `fields` came from.
 */
export function decimalIn(text: string, fields: Fields, name: string): string | undefined {
  const value = fields[name]
  if (typeof value === 'string') return value.length <= 100 && decimal.test(value) ? value : undefined
  if (typeof value !== 'number') return undefined
  if (Number.isSafeInteger(value)) return value < 0 ? undefined : String(value)
  return new RegExp(`"${name}"\\s*:\\s*([0-9]{1,100})\\s*[,}]`).exec(text)?.[1]
}
