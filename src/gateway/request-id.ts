import { randomFillSync } from 'node:crypto'
import type { Request } from '../http/exchange.js'

const shape = /^[A-Za-z0-9._:-]{1,128}$/
const idBytes = 16

/** Randomness is drawn for 256 ids at once: one call into the system instead of 256. */
const pool = Buffer.allocUnsafeSlow(idBytes * 256)
let used = pool.length

/** The name of a request in logs and answers: what the client sent where it is well-formed, else 16 random bytes. */
export function requestId(request: Request): string {
  const sent = request.header('x-request-id')
  if (sent !== undefined) {
    const trimmed = sent.trim()
    if (shape.test(trimmed)) return trimmed
  }
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += idBytes
  return pool.toString('base64url', used - idBytes, used)
}
