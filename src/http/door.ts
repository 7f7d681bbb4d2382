/**
 * The strict door. The server's own parser refuses or never finishes most malformed heads; what it lets through although
 * two programs could read it differently (RFC 9112 sections 3.2, 5, 6.3 and 11.2) is refused here, before any route sees it.
 */

/** Names and values of the header lines in the order they came: name, value, name, value. Names are in lower case. */
export type Lines = readonly string[]

/** Bytes of all header lines together; more is refused, however they came in. */
export const headMaxBytes = 16 * 1024

const methodShape = /^[A-Z]{1,20}$/
const targetShape = /^[\x21-\x7e]*$/
/** RFC 3986 authority without user information. */
const hostShape = /^[A-Za-z0-9._~%!$&'()*+,;=:[\]-]*$/
/** Up to 15 digits stay exact in a double. */
const lengthShape = /^[0-9]{1,15}$/

/** What is wrong with a request's first line, or with a body behind it; or undefined. */
export function targetFault(
  method: string,
  path: string,
  query: string,
  framing: Framing,
): string | undefined {
  if (framing.chunked && (method === 'GET' || method === 'HEAD')) return `chunks behind a ${method}`
  if (method !== 'GET' && method !== 'HEAD' && !methodShape.test(method))
    return 'the method has characters that no method has'
  if (!targetShape.test(path) || (query !== '' && !targetShape.test(query)))
    return 'the target has characters that must be escaped'
  return undefined
}

let soundHost = ''

/** Whether a Host line names a host. Most requests name the same one as the last. */
function isHost(host: string): boolean {
  if (host === soundHost) return true
  if (!hostShape.test(host)) return false
  soundHost = host
  return true
}

/** How the body of a request is delimited, or what is wrong with its header lines. */
export interface Framing {
  readonly fault: string | undefined
  /** A body follows the head. */
  readonly body: boolean
  /** The body comes in chunks, of no length known ahead. */
  readonly chunked: boolean
  /** Declared bytes of the body; 0 where there is none or it comes in chunks. */
  readonly length: number
}

const bare: Framing = { fault: undefined, body: false, chunked: false, length: 0 }

function faulty(fault: string): Framing {
  return { fault, body: false, chunked: false, length: 0 }
}

/** Judges the header lines. A request without a body costs no object. */
export function framingOf(lines: Lines): Framing {
  let host: string | undefined
  let length: string | undefined
  let coding: string | undefined
  let bytes = 0
  for (let at = 0; at < lines.length; at += 2) {
    const name = lines[at]!
    const value = lines[at + 1]!
    bytes += name.length + value.length + 4
    // Three lengths tell the three names from nearly all others without comparing text.
    if (name.length === 4 && name === 'host') {
      if (host !== undefined) return faulty('two Host lines')
      host = value
    } else if (name.length === 14 && name === 'content-length') {
      if (length !== undefined) return faulty('two Content-Length lines')
      length = value
    } else if (name.length === 17 && name === 'transfer-encoding') {
      if (coding !== undefined) return faulty('two Transfer-Encoding lines')
      coding = value
    }
  }
  if (bytes > headMaxBytes) return faulty('the header is too large')
  if (host === undefined) return faulty('no Host line')
  if (!isHost(host)) return faulty('the Host line names no host')
  if (length === undefined && coding === undefined) return bare
  return bodyFraming(length, coding)
}

function bodyFraming(length: string | undefined, coding: string | undefined): Framing {
  if (coding !== undefined) {
    if (length !== undefined) return faulty('both Content-Length and Transfer-Encoding')
    if (coding !== 'chunked') return faulty('a Transfer-Encoding other than chunked')
    return { fault: undefined, body: true, chunked: true, length: 0 }
  }
  if (length === undefined || !lengthShape.test(length)) return faulty('a Content-Length that is no number')
  return { fault: undefined, body: Number(length) > 0, chunked: false, length: Number(length) }
}
