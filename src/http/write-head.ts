import { STATUS_CODES } from 'node:http'
import { BoundedMap } from '../actor/bounded-map.js'
import type { Head, KeptHead, SplitHead, TextHead } from './exchange.js'
import { statusLines } from './status.js'

const wide = /[\u0100-\uffff]/

/**
 * Characters beyond Latin-1 become '?': written by their low byte alone, U+010A would be a line break. The search puts the text
 * into one piece of memory, too: text that was added up keeps each of its parts until then.
 */
function narrow(text: string): string {
  return wide.test(text) ? text.replaceAll(/[\u0100-\uffff]/g, '?') : text
}

/** The status line, without its end. Nodes and other gateways may answer with any status, which is passed on. */
export function statusLine(status: number): string {
  return `HTTP/1.1 ${statusLines[status] ?? `${status} ${STATUS_CODES[status] ?? 'Unknown'}`}`
}

/**
 * A head in two parts: `lead` are the lines up to the value that differs, `rest` those behind it, with CRLF in front. Making one
 * costs as much as writing a head; using it costs two copies.
 */
export function splitHeadOf(status: number, lead: string, rest: string): SplitHead {
  return { before: beginning(status, lead), after: narrow(rest) }
}

/** Beginnings of heads by status and lead; a few are shared by all heads. */
const beginnings = new BoundedMap<string, string>(64)

function beginning(status: number, lead: string): string {
  const key = `${status} ${lead}`
  const known = beginnings.get(key)
  if (known !== undefined) return known
  const made = narrow(`${statusLine(status)}\r\n${lead}`)
  beginnings.set(key, made)
  return made
}

/** Writes ASCII text at `at`, returns where it ends. For short texts a loop is faster than a call of `Buffer.write`. */
function writeShort(out: Uint8Array, text: string, at: number): number {
  for (let index = 0; index < text.length; index += 1) out[at + index] = text.charCodeAt(index)
  return at + text.length
}

function writeKept(out: Buffer, { split, id, lines }: KeptHead): number {
  const { before, after } = split
  if (before.length + id.length + after.length + lines.length > out.length - ownBytes)
    throw new RangeError(tooLarge)
  out.write(before, 'latin1')
  const at = writeShort(out, id, before.length)
  out.write(after, at, 'latin1')
  return writeShort(out, lines, at + after.length)
}

/** Longer ones say nothing more: the body has the whole text. */
const reasonMax = 200

/** A status line with words of its own (RFC 9112 section 4: no control characters). */
function reasonedLine(status: number, reason: string): string {
  return `HTTP/1.1 ${status} ${reason.slice(0, reasonMax).replaceAll(/[^\x20-\x7e]/g, ' ')}`
}

function writeText(out: Buffer, { status, block, reason }: TextHead): number {
  const line = reason === undefined ? statusLine(status) : reasonedLine(status, reason)
  const text = narrow(block === '' ? line : `${line}\r\n${block}`)
  if (text.length > out.length - ownBytes) throw new RangeError(tooLarge)
  return out.write(text, 'latin1')
}

const tooLarge = 'a head is larger than any head may be'
/** Room for the lines that the server writes itself. */
const ownBytes = 256

/** Writes a whole interim answer to the start of `out`: the lines of its head alone. Returns its bytes. */
export function writeInterim(out: Buffer, head: TextHead): number {
  return writeShort(out, '\r\n\r\n', writeText(out, head))
}

/**
 * Writes a whole head to the start of `out`: status line, lines, then those of the server itself: `date` (a whole line), the
 * length where there is one, `close`. Returns its bytes. Throws a RangeError where it has no room: a bug.
 */
export function writeHead(
  out: Buffer,
  head: Head,
  date: string,
  contentLength: number | undefined,
  close: boolean,
): number {
  const start = 'split' in head ? writeKept(out, head) : writeText(out, head)
  let at = writeShort(out, date, start)
  if (contentLength !== undefined) {
    at = writeShort(out, '\r\nContent-Length: ', at)
    at = writeShort(out, `${contentLength}`, at)
  }
  return writeShort(out, close ? '\r\nConnection: close\r\n\r\n' : '\r\n\r\n', at)
}
