import type { FramedHead } from './exchange.js'
import { statusLines } from './status.js'

/** Status line and header lines in Latin-1, up to the place of the request's id and from there on. */
export interface Frame {
  readonly before: Uint8Array
  readonly after: Uint8Array
}

const wide = /[\u0100-\uffff]/
const scratch = Buffer.allocUnsafeSlow(64 * 1024)

/** What Latin-1 cannot say must not become a line break by its low byte. */
function narrow(text: string): string {
  return wide.test(text) ? text.replaceAll(/[\u0100-\uffff]/g, '?') : text
}

/** The status line's words. */
function statusLine(status: number): string {
  return statusLines[status] ?? `${status} Unknown`
}

/**
 * A frame of a head: `lead` are the lines up to the value that differs, `rest` those behind it, with CRLF in front. Making one
 * costs as much as writing a head; using it costs two copies.
 */
export function frameOf(status: number, lead: string, rest: string): Frame {
  return {
    before: Buffer.from(narrow(`${statusLine(status)}\r\n${lead}`), 'latin1'),
    after: Buffer.from(narrow(rest), 'latin1'),
  }
}

/** Writes ASCII text at `at`; where it ends. A call into the runtime costs more than a short loop. */
function writeShort(out: Uint8Array, text: string, at: number): number {
  for (let index = 0; index < text.length; index += 1) out[at + index] = text.charCodeAt(index)
  return at + text.length
}

/** Status line and lines of a framed head, `lastLine` behind them. Valid until the next call of this file. */
export function framedBytes({ frame, id, lines }: FramedHead, lastLine: string): Uint8Array {
  const { before, after } = frame
  const tail = lastLine === '' ? lines : `${lines}\r\n${lastLine}`
  const length = before.length + id.length + after.length + tail.length
  const out = length <= scratch.length ? scratch : Buffer.allocUnsafe(length)
  out.set(before)
  let at = writeShort(out, id, before.length)
  out.set(after, at)
  at = writeShort(out, tail, at + after.length)
  return out.subarray(0, at)
}

/** The same for a head of text. Valid until the next call of this file. */
export function textBytes(status: number, block: string, lastLine: string): Uint8Array {
  const lines = [statusLine(status), block, lastLine].filter((line) => line !== '')
  const text = narrow(lines.join('\r\n'))
  if (text.length > scratch.length) return Buffer.from(text, 'latin1')
  return scratch.subarray(0, scratch.write(text, 'latin1'))
}
