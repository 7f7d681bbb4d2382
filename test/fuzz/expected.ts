import { createHash } from 'node:crypto'

/**
 * What each request of the fuzz must get, from the content that was put there and from the texts of HTTP and of the interface
 * alone: nothing of the program is used.
 */

/** Content that was posted. */
export interface Kept {
  readonly id: string
  readonly body: Buffer
  readonly type: string
}

/** Content behind one address. */
export interface Shown {
  readonly kept: Kept
  /** The name that it is asked by. */
  readonly name?: { readonly text: string; readonly resolvedId: string }
}

/** Header of an answer: this value; `absent`; or one of this shape. */
export type Wanted = string | 'absent' | RegExp

export interface Expected {
  readonly status: number
  readonly headers: Readonly<Record<string, Wanted>>
  /** Undefined: any. */
  readonly body?: Buffer
  /** How the body starts, where not all of it is known. */
  readonly start?: Buffer
  /** For HEAD and 304: no body comes, and this length is said; undefined: nothing is known of it. */
  readonly bodiless?: { readonly length: number | undefined }
  /** multipart/byteranges: the parts in their order. */
  readonly parts?: readonly Part[]
}

export interface Part {
  readonly type: string
  readonly range: string
  readonly body: Buffer
}

/** What a request asks for, beside the address. */
export interface Wish {
  readonly method: 'GET' | 'HEAD'
  /** First and last byte, last undefined for an open end, first undefined for the last so many bytes. */
  readonly ranges: readonly (readonly [first: number | undefined, last: number | undefined])[]
  /** The field as it is sent, where it is no set of `ranges`. */
  readonly rangeText?: string
  readonly match?: 'same' | 'other' | 'any'
  readonly noneMatch?: 'same' | 'other' | 'any' | 'weak'
  readonly ifRange?: 'same' | 'other'
}

export const otherTag = `"${'B'.repeat(43)}"`

const digests = new Map<Buffer, Buffer>()

function sha256(body: Buffer): Buffer {
  const known = digests.get(body) ?? createHash('sha256').update(body).digest()
  digests.set(body, known)
  return known
}

/** The tag is the hash; for content by a name with a dot and what the name means. */
export function tagOf({ kept, name }: Shown): string {
  const hash = sha256(kept.body).toString('base64url')
  return name === undefined ? `"${hash}"` : `"${hash}.${name.resolvedId}"`
}

/** The header lines of a wish. */
export function linesOf(shown: Shown, wish: Wish): string[] {
  const tags = { same: tagOf(shown), other: otherTag, any: '*', weak: `${otherTag}, W/${tagOf(shown)}` }
  const range =
    wish.rangeText ?? (wish.ranges.length === 0 ? undefined : `bytes=${wish.ranges.map(spec).join(', ')}`)
  return [
    ...(range === undefined ? [] : [`Range: ${range}`]),
    ...(wish.match === undefined ? [] : [`If-Match: ${tags[wish.match]}`]),
    ...(wish.noneMatch === undefined ? [] : [`If-None-Match: ${tags[wish.noneMatch]}`]),
    ...(wish.ifRange === undefined ? [] : [`If-Range: ${tags[wish.ifRange]}`]),
  ]
}

function spec([first, last]: Wish['ranges'][number]): string {
  return `${first ?? ''}-${last ?? ''}`
}

/** RFC 9110: conditions (13.2.2), then ranges (14). */
export function expectedOf(shown: Shown, wish: Wish): Expected {
  const { kept, name } = shown
  const isHead = wish.method === 'HEAD'
  const named: Record<string, Wanted> =
    name === undefined
      ? { 'x-ns-resolved-id': 'absent', 'x-ns-name': 'absent' }
      : { 'x-ns-resolved-id': name.resolvedId, 'x-ns-name': name.text }
  if (wish.match === 'other') return inWords(412, isHead)
  const own = { etag: tagOf(shown), 'x-gateway-data-id': kept.id, ...named }
  if (wish.noneMatch !== undefined && wish.noneMatch !== 'other') {
    // No line that a signature covers: a cache would put it in the place of the one that it keeps.
    const covered = {
      'x-gateway-data-id': 'absent',
      'x-ns-resolved-id': 'absent',
      'x-ns-name': 'absent',
    } as const
    const headers = { ...own, ...covered, 'content-range': 'absent' } as const
    return { status: 304, headers, bodiless: { length: undefined } }
  }
  const size = kept.body.length
  const digest = `sha-256=:${sha256(kept.body).toString('base64')}:`
  const counts = wish.ifRange !== 'other'
  const found = counts ? satisfied(wish, size) : 'whole'
  if (found === 'none') return { ...inWords(416, isHead), headers: { 'content-range': `bytes */${size}` } }
  if (found === 'malformed') return inWords(400, isHead)
  if (found === 'whole') {
    const headers = { ...own, 'content-type': kept.type, 'content-digest': digest, 'content-range': 'absent' }
    return { status: 200, headers, ...bodyOrLength(isHead, kept.body) }
  }
  const partial = { ...own, 'repr-digest': digest, 'content-digest': 'absent' }
  const [only] = found
  if (found.length === 1 && only !== undefined) {
    const [first, last] = only
    const headers = {
      ...partial,
      'content-type': kept.type,
      'content-range': `bytes ${first}-${last}/${size}`,
    }
    return { status: 206, headers, ...bodyOrLength(isHead, kept.body.subarray(first, last + 1)) }
  }
  const headers = {
    ...partial,
    'content-type': /^multipart\/byteranges; boundary=\S+$/,
    'content-range': 'absent',
  }
  if (isHead) return { status: 206, headers, bodiless: { length: undefined } }
  const parts = found.map(([first, last]) => ({
    type: kept.type,
    range: `bytes ${first}-${last}/${size}`,
    body: kept.body.subarray(first, last + 1),
  }))
  return { status: 206, headers, parts }
}

function bodyOrLength(isHead: boolean, body: Buffer): Pick<Expected, 'body' | 'bodiless'> {
  return isHead ? { bodiless: { length: body.length } } : { body }
}

/** Any words will do, but no content. */
function inWords(status: number, isHead: boolean): Expected {
  const headers: Record<string, Wanted> = {
    'content-type': 'text/plain; charset=utf-8',
    etag: 'absent',
    'x-gateway-data-id': 'absent',
    'content-digest': 'absent',
  }
  return { status, headers, ...(isHead ? { bodiless: { length: undefined } } : {}) }
}

function satisfied(
  { ranges, rangeText }: Wish,
  size: number,
): 'whole' | 'none' | 'malformed' | (readonly [number, number])[] {
  // A unit that is not known is no range; what is none at all is refused.
  if (rangeText !== undefined) return rangeText.includes('=') ? 'whole' : 'malformed'
  if (ranges.length === 0) return 'whole'
  const found: (readonly [number, number])[] = []
  for (const [first, last] of ranges) {
    if (first === undefined) {
      const length = Math.min(last ?? 0, size)
      if (length > 0) found.push([size - length, size - 1])
    } else if (first < size) found.push([first, Math.min(last ?? size - 1, size - 1)])
  }
  if (found.length === 0) return 'none'
  // More than there is, in pieces: all of it is sent instead.
  const total = found.reduce((sum, [first, last]) => sum + last - first + 1, 0)
  return total > size ? 'whole' : found
}
