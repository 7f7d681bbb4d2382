/** The two media types of an answer (GraphQL over HTTP). */
export const responseType = 'application/graphql-response+json'
export const queryJsonType = 'application/json'
export type AnswerType = typeof responseType | typeof queryJsonType

interface Range {
  readonly type: string
  readonly quality: number
}

/**
 * The ranges of an Accept header (RFC 9110 section 12.5.1), in their order. Parameters other than q are not
 * looked at.
 */
function rangesOf(accept: string): Range[] {
  return accept
    .split(',', 50)
    .map((part) => {
      const [type = '', ...parameters] = part.split(';').map((word) => word.trim().toLowerCase())
      const q = parameters.find((parameter) => parameter.startsWith('q='))
      const quality = q === undefined ? 1 : Number(q.slice(2))
      return { type, quality: Number.isNaN(quality) ? 0 : quality }
    })
    .filter(({ type }) => type !== '')
}

/**
 * The media type to answer with: a named type is preferred to a wildcard; `application/json` where all types are
 * accepted, because older clients send such a header. Undefined where nothing that we have is acceptable.
 */
export function answerType(accept: string | undefined): AnswerType | undefined {
  if (accept === undefined || accept.trim() === '') return queryJsonType
  const ranges = rangesOf(accept).filter(({ quality }) => quality > 0)
  const named = ranges
    .filter(({ type }) => type === responseType || type === queryJsonType)
    .sort((one, other) => other.quality - one.quality)[0]
  if (named !== undefined) return named.type as AnswerType
  return ranges.some(({ type }) => type === '*/*' || type === 'application/*') ? queryJsonType : undefined
}

/** Whether the Accept header is that of a browser. */
export function wantsPage(accept: string | undefined): boolean {
  return rangesOf(accept ?? '').some(({ type, quality }) => type === 'text/html' && quality > 0)
}

/** Is a request's body JSON in UTF-8, by its Content-Type? */
export function isJson(contentType: string | undefined): boolean {
  const [type = '', ...parameters] = (contentType ?? '').split(';').map((word) => word.trim().toLowerCase())
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))
  return type === queryJsonType && (charset === undefined || /^charset="?utf-?8"?$/.test(charset))
}
