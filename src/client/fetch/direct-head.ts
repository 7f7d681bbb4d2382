/** The head of an answer whose body follows as it is, in so many bytes. */
export interface DirectHead {
  readonly status: number
  readonly headers: Headers
  readonly length: number
  /** Whether the connection takes another request after the body. */
  readonly isLasting: boolean
}

/** Where a head ends in `bytes`: behind its empty line; undefined where that has not come. Nothing before `from` is looked at. */
export function endOfHead(bytes: Uint8Array, from: number): number | undefined {
  for (let at = bytes.indexOf(13, from); at >= 0; at = bytes.indexOf(13, at + 1))
    if (bytes[at + 1] === 10 && bytes[at + 2] === 13 && bytes[at + 3] === 10) return at + 4
  return undefined
}

/**
 * Reads a head (RFC 9112 sections 3 to 6). Undefined for every answer that is more than a status, lines and a body of stated
 * length: interim answers, redirects, chunked or compressed bodies, two lengths, malformed lines.
 */
export function directHead(bytes: Uint8Array): DirectHead | undefined {
  // One character for each byte, as `fetch` reads lines.
  const [first = '', ...lines] = new TextDecoder('latin1').decode(bytes.subarray(0, -4)).split('\r\n')
  const [, digits] = /^HTTP\/1\.1 ([245]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/.exec(first) ?? []
  const status = Number(digits)
  if (digits === undefined || status === 204) return undefined
  const headers = new Headers()
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*([\t\x20-\x7e\x80-\xff]*)$/.exec(line) ?? []
    if (name === undefined || value === undefined) return undefined
    headers.append(name, value)
  }
  const lengthText = headers.get('content-length') ?? ''
  if (!/^\d{1,15}$/.test(lengthText) || headers.has('transfer-encoding') || headers.has('content-encoding'))
    return undefined
  const isLasting = !/\bclose\b/i.test(headers.get('connection') ?? '')
  return { status, headers, length: Number(lengthText), isLasting }
}
