import { trimBlanks } from './blank.js'

/**
 * The Range field (RFC 9110 section 14) against a representation of known size.
 *
 * The caller decides what is answered. Every case has its own kind, because servers differ:
 *
 * - `none`: answer the whole representation (200). `why`: the field is absent, its unit is not bytes (RFC 9110 14.2:
 *   a unit that is not understood MUST be ignored; nginx does so too), or it asks for too many bytes or ranges: more
 *   than `rangesMax` ranges, or more bytes in all than there are (overlaps; nginx answers whole as well).
 * - `malformed`: not a range set by the grammar. RFC 9110 allows to ignore or to refuse it; nginx says 416, others
 *   400.
 * - `unsatisfiable`: well formed, but no range has a byte of this representation (416 with `Content-Range: bytes
 *   *\/size`).
 * - `ranges`: what to send, in the order of the request, clamped to the size; ranges without a byte are left out.
 *
 * Blanks may stand around commas and list elements may be empty (RFC 9110 5.6.1), but nowhere inside a range: nginx
 * takes `0 - 1`, here it is malformed. Numbers may have any length; nginx refuses long ones, here a last position
 * beyond the end means the end, as the RFC says.
 */
export type RangeAnswer =
  | { readonly kind: 'none'; readonly why: 'absent' | 'unit' | 'flood' }
  | { readonly kind: 'ranges'; readonly ranges: readonly ByteRange[] }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'unsatisfiable' }

/** Byte positions, both inclusive, inside the representation. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** Most ranges in one request. No usual client needs more, and each part of the answer has a header of its own. */
const rangesMaxDefault = 64

const spec = /^(?:(\d+)-(\d*)|-(\d+))$/

/** The bytes that one matched spec names: a range, `none` for no byte of this size, undefined for an invalid one. */
function clamp(found: RegExpExecArray, sizeBytes: number): ByteRange | 'none' | undefined {
  const [, first, last, suffix] = found
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), sizeBytes)
    return length === 0 ? 'none' : { start: sizeBytes - length, end: sizeBytes - 1 }
  }
  if (last !== undefined && last !== '' && isBefore(last, first ?? '')) return undefined
  const start = Number(first)
  if (start >= sizeBytes) return 'none'
  return { start, end: last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) }
}

/** Compares decimal texts of any length, exactly. */
function isBefore(a: string, b: string): boolean {
  const left = a.replace(/^0+/, '')
  const right = b.replace(/^0+/, '')
  return left.length === right.length ? left < right : left.length < right.length
}

const absent: RangeAnswer = { kind: 'none', why: 'absent' }

/** Digits up to this many stay exact in a double. */
const digitsMax = 15

/**
 * The range of `bytes=A-B` with nothing else in it, as nearly all are; undefined for everything else, which is then
 * read by the whole grammar.
 */
function readUsual(field: string, sizeBytes: number): ByteRange | undefined {
  if (!field.startsWith('bytes=')) return undefined
  const dash = field.indexOf('-', 6)
  const start = readDigits(field, 6, dash)
  const end = readDigits(field, dash + 1, field.length)
  if (dash < 0 || start < 0 || end < start || start >= sizeBytes) return undefined
  return { start, end: Math.min(end, sizeBytes - 1) }
}

/** A number of 1 to 15 digits; -1 where it is none. */
function readDigits(text: string, from: number, to: number): number {
  if (to <= from || to - from > digitsMax) return -1
  let value = 0
  for (let at = from; at < to; at += 1) {
    const digit = text.charCodeAt(at) - 48
    if (digit < 0 || digit > 9) return -1
    value = value * 10 + digit
  }
  return value
}

/** Reads a Range field, or undefined for its absence, against `sizeBytes`. At most `rangesMax` ranges are looked at. */
export function parseRange(
  field: string | undefined,
  sizeBytes: number,
  rangesMax = rangesMaxDefault,
): RangeAnswer {
  if (field === undefined) return absent
  const usual = rangesMax > 0 ? readUsual(field, sizeBytes) : undefined
  if (usual !== undefined) return { kind: 'ranges', ranges: [usual] }
  const equals = field.indexOf('=')
  if (equals < 0) return { kind: 'malformed' }
  if (field.slice(0, equals).toLowerCase() !== 'bytes') return { kind: 'none', why: 'unit' }
  const set = field.slice(equals + 1)
  const ranges: ByteRange[] = []
  let specs = 0
  let total = 0
  for (let at = 0; at <= set.length; ) {
    const comma = set.indexOf(',', at)
    const to = comma < 0 ? set.length : comma
    const element = trimBlanks(set.slice(at, to))
    at = to + 1
    if (element === '') continue
    const found = spec.exec(element)
    if (found === null) return { kind: 'malformed' }
    if (++specs > rangesMax) return { kind: 'none', why: 'flood' }
    const range = clamp(found, sizeBytes)
    if (range === undefined) return { kind: 'malformed' }
    if (range === 'none') continue
    ranges.push(range)
    total += range.end - range.start + 1
  }
  if (specs === 0) return { kind: 'malformed' }
  if (ranges.length === 0) return { kind: 'unsatisfiable' }
  return total > sizeBytes ? { kind: 'none', why: 'flood' } : { kind: 'ranges', ranges }
}
