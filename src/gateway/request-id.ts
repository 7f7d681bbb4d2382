import { randomFillSync } from 'node:crypto'
import type { Request } from '../http/exchange.js'

const shape = /^[A-Za-z0-9._:-]{1,128}$/
/** Of these, 22 characters are used: more than 128 bits. */
const idBytes = 18

/** Randomness is drawn and spelled for 256 ids at once: two calls into the runtime instead of 512. */
const pool = Buffer.allocUnsafeSlow(idBytes * 256)
const idChars = 24
let spelled = ''
let used = 0

/** The name of a request in logs and answers: what the client sent where it is well-formed, else 22 random characters. */
export function requestId(request: Request): string {
  const sent = request.header('x-request-id')
  if (sent !== undefined) {
    const trimmed = sent.trim()
    if (shape.test(trimmed)) return trimmed
  }
  if (used === spelled.length) {
    randomFillSync(pool)
    // 18 bytes are 24 characters: every id is a piece of one text.
    spelled = pool.toString('base64url')
    used = 0
  }
  used += idChars
  return spelled.slice(used - idChars, used - 2)
}
