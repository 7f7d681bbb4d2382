import {
  type EntityTag,
  matchesStrongly,
  matchesWeakly,
  parseEntityTag,
  parseEntityTags,
} from '../format/entity-tag.js'
import { type ByteRange, parseRange } from '../format/range.js'
import type { Piece, Request } from '../http/exchange.js'
import type { Exchange } from '../serving/request-exchange.js'
import { enter } from './steps.js'

/** The conditions and the range of a request (RFC 9110 sections 13 and 14). */
export interface Conditions {
  /** GET, HEAD or POST; conditions and ranges count for the first two only. */
  readonly method: string
  readonly range: string | undefined
  readonly ifRange: string | undefined
  readonly ifMatch: string | undefined
  readonly ifNoneMatch: string | undefined
}

/** What the conditions of a request are compared with: the selected representation (RFC 9110 section 3.2). */
export interface Representation {
  readonly sizeBytes: number
  /** Content-Type of each part of a multipart answer. */
  readonly contentType: string
  /** Strong, with quotes; absent while the content has not been hashed. */
  readonly entityTag: string | undefined
  /**
   * Must not be guessable, because content that holds it could forge parts; at most 70 characters (RFC 2046 section 5.1.1).
   */
  readonly boundary: () => string
}

/** Which set of header lines goes with an answer: 200; 206 with one range; 206 with several; 304. */
export type Variant = 'whole' | 'part' | 'parts' | 'unchanged'

export type Plan =
  | {
      readonly variant: Variant
      readonly status: 200 | 206 | 304 | 404
      /** Header lines of this answer alone, each with CRLF in front; '' where there are none. */
      readonly lines: string
      readonly pieces: readonly Piece[]
      /** Body bytes that will be sent: 0 for HEAD and 304. */
      readonly bytes: number
      /** Absent for 304. */
      readonly contentLength: number | undefined
    }
  | {
      readonly variant: 'refused'
      readonly status: 400 | 412 | 416
      readonly lines: string
      readonly text: string
    }

/** A plan that is an answer with content, or a 304. */
export type Planned = Exclude<Plan, { variant: 'refused' }>

/** Step `plan`. */
export function planExchange(exchange: Exchange, shown: Representation): Plan {
  enter(exchange, 'plan')
  return planFor(exchange, shown)
}

/** The plan of an answer. The page for unknown names has status 404, and is always sent whole. */
export function planFor({ request, naming }: Exchange, shown: Representation): Plan {
  const status = naming?.status
  if (status === undefined) return plan(readConditions(request), shown)
  const planned = plan(unconditional(request), shown)
  return planned.variant === 'refused' ? planned : { ...planned, status }
}

/** Reads the conditions off a request. */
export function readConditions(request: Request): Conditions {
  const { method } = request
  if (method !== 'GET' && method !== 'HEAD') return unconditional(request)
  const range = request.header('range')
  return {
    method,
    range,
    ifRange: range === undefined ? undefined : request.header('if-range'),
    ifMatch: request.header('if-match'),
    ifNoneMatch: request.header('if-none-match'),
  }
}

/** A request for the whole, whatever conditions it carries. */
export function unconditional({ method }: Request): Conditions {
  return { method, range: undefined, ifRange: undefined, ifMatch: undefined, ifNoneMatch: undefined }
}

/**
 * Decides what is sent, before any byte of the content is touched. Order of precedence as in RFC 9110 section 13.2.2:
 * If-Match, If-None-Match, If-Range, Range. Content has no modification date, so conditions on dates never apply.
 */
export function plan(conditions: Conditions, shown: Representation): Plan {
  // Fast path: the client sends exactly the tag that it was given. No list has to be parsed, and of the other conditions only
  // If-Match counts.
  if (
    conditions.ifNoneMatch !== undefined &&
    conditions.ifNoneMatch === shown.entityTag &&
    conditions.ifMatch === undefined
  ) {
    return unchanged
  }
  const current = currentTag(conditions, shown)
  if (conditions.ifMatch !== undefined && !matches(conditions.ifMatch, current, matchesStrongly)) {
    return { variant: 'refused', status: 412, lines: '', text: 'Precondition failed' }
  }
  if (conditions.ifNoneMatch !== undefined && matches(conditions.ifNoneMatch, current, matchesWeakly)) {
    return unchanged
  }
  const range = rangeCounts(conditions, current) ? conditions.range : undefined
  const wanted = parseRange(range, shown.sizeBytes)
  switch (wanted.kind) {
    case 'none':
      return whole(conditions, shown)
    case 'malformed':
      // A set with an invalid range in it is refused as a whole (RFC 9110 section 15.5.17), as nginx does and clients expect.
      return range?.includes('=') === true ? unsatisfiable(shown) : malformed
    case 'unsatisfiable':
      return unsatisfiable(shown)
    case 'ranges':
      return wanted.ranges.length > 1
        ? parts(conditions, shown, wanted.ranges)
        : part(conditions, shown, wanted.ranges[0])
  }
}

const unchanged: Plan = {
  variant: 'unchanged',
  status: 304,
  lines: '',
  pieces: [],
  bytes: 0,
  contentLength: undefined,
}

const malformed: Plan = { variant: 'refused', status: 400, lines: '', text: "Malformed 'range' header" }

function unsatisfiable({ sizeBytes }: Representation): Plan {
  const lines = `\r\nContent-Range: bytes */${sizeBytes}`
  return { variant: 'refused', status: 416, lines, text: 'Range not satisfiable' }
}

/** The tag of what would be sent; undefined where no condition of the request needs it. */
function currentTag(
  { ifMatch, ifNoneMatch, ifRange }: Conditions,
  { entityTag }: Representation,
): EntityTag | undefined {
  const conditional = ifMatch !== undefined || ifNoneMatch !== undefined || ifRange !== undefined
  return conditional && entityTag !== undefined ? parseEntityTag(entityTag) : undefined
}

/** A malformed list matches nothing; `*` matches any content, also while its tag is not shown. */
function matches(list: string, current: EntityTag | undefined, compare: typeof matchesWeakly): boolean {
  const tags = parseEntityTags(list)
  if (tags === undefined) return false
  return current === undefined ? tags === '*' : compare(tags, current)
}

/**
 * If-Range must be the strong tag of what would be sent; otherwise the client holds parts of other content, and gets the
 * whole.
 */
function rangeCounts({ ifRange }: Conditions, current: EntityTag | undefined): boolean {
  if (ifRange === undefined) return true
  const tag = parseEntityTag(ifRange.trim())
  return tag !== undefined && current !== undefined && matchesStrongly([tag], current)
}

function contentRange({ start, end }: ByteRange, sizeBytes: number): string {
  return `bytes ${start}-${end}/${sizeBytes}`
}

function part(conditions: Conditions, shown: Representation, range: ByteRange | undefined): Plan {
  if (range === undefined) return whole(conditions, shown)
  const lines = `\r\nContent-Range: ${contentRange(range, shown.sizeBytes)}`
  return answer(conditions, 'part', 206, lines, [{ start: range.start, end: range.end + 1 }])
}

function whole(conditions: Conditions, { sizeBytes }: Representation): Plan {
  return answer(conditions, 'whole', 200, '', sizeBytes === 0 ? [] : [{ start: 0, end: sizeBytes }])
}

/** multipart/byteranges (RFC 9110 section 14.6): the parts in the requested order. */
function parts(conditions: Conditions, shown: Representation, ranges: readonly ByteRange[]): Plan {
  const boundary = shown.boundary()
  const pieces: Piece[] = []
  ranges.forEach((range, index) => {
    const partHead =
      `${index === 0 ? '' : '\r\n'}--${boundary}\r\nContent-Type: ${shown.contentType}\r\n` +
      `Content-Range: ${contentRange(range, shown.sizeBytes)}\r\n\r\n`
    const window = { start: range.start, end: range.end + 1 }
    pieces.push({ bytes: Buffer.from(partHead, 'latin1') }, window)
  })
  pieces.push({ bytes: Buffer.from(`\r\n--${boundary}--\r\n`, 'latin1') })
  return answer(conditions, 'parts', 206, '', pieces)
}

function answer(
  conditions: Conditions,
  variant: Variant,
  status: 200 | 206,
  lines: string,
  pieces: readonly Piece[],
): Plan {
  let contentLength = 0
  for (const piece of pieces) contentLength += 'bytes' in piece ? piece.bytes.length : piece.end - piece.start
  if (conditions.method === 'HEAD') return { variant, status, lines, pieces: [], bytes: 0, contentLength }
  return { variant, status, lines, pieces, bytes: contentLength, contentLength }
}
