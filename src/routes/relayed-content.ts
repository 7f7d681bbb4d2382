import { createHash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'

/** Characters decoded and hashed in one turn of the event loop, about a millisecond. A multiple of four. */
const sliceChars = 1_048_576

/** Members of nodes' JSON that hold content: the data of a transaction, and the chunk in a block's proof of access. */
const names = ['"data"', '"chunk"']

/** Where such text stands in an answer; `end` exclusive. */
export interface ContentSpan {
  readonly start: number
  readonly end: number
}

/** Finds base64url texts that hold content. Empty ones hold none. */
export function contentSpans(body: Buffer): ContentSpan[] {
  const spans: ContentSpan[] = []
  for (const name of names) {
    for (let at = body.indexOf(name); at >= 0; at = body.indexOf(name, at + 1)) {
      const start = valueStart(body, at + name.length)
      const end = start === undefined ? -1 : body.indexOf(0x22, start)
      if (start !== undefined && end > start) spans.push({ start, end })
    }
  }
  return spans
}

/** Where the value begins: behind a colon and a quotation mark, with optional blanks. Undefined where no string follows. */
function valueStart(body: Buffer, from: number): number | undefined {
  let at = from
  let isBehindColon = false
  for (;;) {
    const byte = body[at]
    if (byte === 0x22) return isBehindColon ? at + 1 : undefined
    if (byte === 0x3a && !isBehindColon) isBehindColon = true
    else if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) return undefined
    at += 1
  }
}

/** Whether an answer of a node is, or holds, content that is blocked by its hash. Long ones are checked slice by slice. */
export async function holdsBlocked(
  body: Buffer,
  spans: readonly ContentSpan[],
  isBlocked: (digest: Uint8Array) => boolean,
): Promise<boolean> {
  for (const { start, end } of spans) {
    const hash = createHash('sha256')
    for (let at = start; at < end; at += sliceChars) {
      if (at > start) await turn()
      hash.update(Buffer.from(body.toString('latin1', at, Math.min(end, at + sliceChars)), 'base64url'))
    }
    if (isBlocked(hash.digest())) return true
  }
  return false
}
