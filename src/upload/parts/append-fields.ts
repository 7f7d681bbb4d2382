import { type BareItem, ParseError, parseItem } from 'structured-headers'
import type { Request } from '../../http/exchange.js'
import type { UploadAnswer } from '../requests/upload-answers.js'

/** The media type of bytes that are put behind others. */
export const partialType = 'application/partial-upload'

/**
 * The fields of resumable uploads in a request (draft-ietf-httpbis-resumable-upload-12). Fields that are malformed are
 * as if they were not sent.
 */
export interface AppendFields {
  /** This request brings the last byte. Undefined: the field is absent, so it is no resumable upload. */
  readonly isLast: boolean | undefined
  readonly offset: number | undefined
  /** Bytes of the whole, by `Upload-Length`. */
  readonly length: number | undefined
  /** Bytes of the body of this request; undefined: it comes in chunks. */
  readonly contentBytes: number | undefined
  /** The version of the draft that the client follows. Undefined: none is named, as in the document to come. */
  readonly version: number | undefined
  /** Whether interim answers are understood: all versions but those that nobody here knows. */
  readonly isInformed: boolean
}

const versionField = 'upload-draft-interop-version'
/** Version 3 is the first draft's (as phones have had it since 2023), 9 that of the twelfth. */
const versions = { from: 3, to: 9, inverse: 3, untyped: 5 }

/** Reads the header of a request of a resumable upload (draft-ietf-httpbis-resumable-upload). */
export function appendFields(request: Pick<Request, 'header'>): AppendFields {
  const named = request.header(versionField)
  const version = named === undefined ? undefined : whole(named)
  const isKnown = version !== undefined && version >= versions.from && version <= versions.to
  const flag = truth(request.header('upload-complete'))
  const inverse = version === versions.inverse ? truth(request.header('upload-incomplete')) : undefined
  const size = request.header('content-length')
  const isChunked = request.header('transfer-encoding') !== undefined
  return {
    isLast: flag ?? (inverse === undefined ? undefined : !inverse),
    offset: whole(request.header('upload-offset')),
    length: whole(request.header('upload-length')),
    contentBytes: isChunked ? undefined : Number(size ?? 0),
    version,
    isInformed: isKnown || named === undefined,
  }
}

/** Whether appended bytes must be labelled as such: from the fifth draft on. */
export function isTyped({ version }: AppendFields): boolean {
  return version === undefined || version > versions.untyped || version < versions.from
}

/** The value of a field that is one item (RFC 9651 section 3.3); undefined where it is malformed. */
function bareItem(field: string): BareItem | undefined {
  try {
    return parseItem(field)[0]
  } catch (error) {
    if (error instanceof ParseError) return undefined
    throw error
  }
}

/** A whole number of at least 0. */
function whole(field: string | undefined): number | undefined {
  const value = field === undefined ? undefined : bareItem(field)
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined
}

function truth(field: string | undefined): boolean | undefined {
  const value = field === undefined ? undefined : bareItem(field)
  return typeof value === 'boolean' ? value : undefined
}

/** Header lines about an upload, each with CRLF in front; those that are undefined are left out. */
export interface AppendState {
  readonly isWhole?: boolean
  readonly offset?: number
  readonly length?: number | undefined
  readonly maxBytes?: number
  readonly livesSeconds?: number
  readonly location?: string
}

/** Header lines about the state of a resumable upload, each with CRLF in front, in the version of the request. */
export function appendLines(fields: Pick<AppendFields, 'version'>, state: AppendState): string {
  const { isWhole, offset, length, maxBytes, livesSeconds, location } = state
  const limits = [
    ...(maxBytes === undefined ? [] : [`max-size=${maxBytes}`]),
    ...(livesSeconds === undefined ? [] : [`max-age=${livesSeconds}`]),
  ]
  const isInverse = fields.version === versions.inverse
  const lines: (readonly [string, string | number | undefined])[] = [
    ['Upload-Draft-Interop-Version', fields.version],
    ['Location', location],
    [
      isInverse ? 'Upload-Incomplete' : 'Upload-Complete',
      isWhole === undefined ? undefined : isWhole === isInverse ? '?0' : '?1',
    ],
    ['Upload-Offset', offset],
    ['Upload-Length', length],
    ['Upload-Limit', limits.length === 0 ? undefined : limits.join(', ')],
  ]
  return lines.map(([name, value]) => (value === undefined ? '' : `\r\n${name}: ${value}`)).join('')
}

const problems = {
  'mismatching-upload-offset': 'offset from request does not match offset of resource',
  'completed-upload': 'upload is already completed',
  'inconsistent-upload-length': 'inconsistent length values for upload',
} as const

/** A problem of the draft's (RFC 9457). */
export function appendProblem(
  status: number,
  kind: keyof typeof problems,
  lines: string,
  members: object = {},
): UploadAnswer {
  const type = `https://iana.org/assignments/http-problem-types#${kind}`
  return {
    status,
    json: { type, title: problems[kind], status, ...members },
    type: 'application/problem+json',
    lines,
  }
}
