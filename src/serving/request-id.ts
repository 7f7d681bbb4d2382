import { randomFillSync } from 'node:crypto'
import type { Request } from '../http/exchange.js'

const shape = /^[A-Za-z0-9._:-]{1,128}$/
/** 22 of their 24 characters are used: 132 bits. */
const idBytes = 18

/** Random bytes for 256 ids are drawn and encoded at once: two calls into the runtime instead of 512. */
const pool = Buffer.allocUnsafeSlow(idBytes * 256)
const idChars = 24
let spelled = ''
let used = 0

/** The id of a request in logs and answers: the client's own where it is well-formed, else 22 random characters. */
export function requestId(request: Request): string {
  const sent = request.header('x-request-id')
  if (sent !== undefined) {
    const trimmed = sent.trim()
    if (shape.test(trimmed)) return trimmed
  }
  if (used === spelled.length) {
    randomFillSync(pool)
    // 18 bytes are exactly 24 characters, so every id is a slice of one encoded text.
    spelled = pool.toString('base64url')
    used = 0
  }
  used += idChars
  return spelled.slice(used - idChars, used - 2)
}
