import { createHmac, timingSafeEqual } from 'node:crypto'
import { fieldsOf } from '../chain/shape.js'

/** Tokens by which services know each other: JWT (RFC 7519) signed with HMAC-SHA-256 under a secret that both have. */

const head = Buffer.from(JSON.stringify({ alg: 'HS256', typ: 'JWT' })).toString('base64url')
const lifeSeconds = 3600
/** Clocks of two machines differ. */
const slackSeconds = 60

function mac(text: string, secret: string): Buffer {
  return createHmac('sha256', secret).update(text).digest()
}

/** A token for an hour from `nowMs`. */
export function makeServiceToken(secret: string, nowMs: number): string {
  const iat = Math.floor(nowMs / 1000)
  const claims = Buffer.from(JSON.stringify({ iat, exp: iat + lifeSeconds })).toString('base64url')
  return `${head}.${claims}.${mac(`${head}.${claims}`, secret).toString('base64url')}`
}

/** Whether an Authorization header carries a token of this secret that has not run out. */
export function isServiceToken(authorization: string | undefined, secret: string, nowMs: number): boolean {
  const [, token = ''] = /^Bearer ([\w.-]{1,4096})$/i.exec(authorization ?? '') ?? []
  const [given = '', claims = '', signature = '', ...more] = token.split('.')
  if (more.length > 0 || signature === '') return false
  const right = mac(`${given}.${claims}`, secret)
  const sent = Buffer.from(signature, 'base64url')
  if (sent.length !== right.length || !timingSafeEqual(sent, right)) return false
  const header = fieldsOf(textOf(given))
  const body = fieldsOf(textOf(claims))
  // The signature says who wrote it; the algorithm is fixed, so that no other can be asked for.
  if (header?.alg !== 'HS256' || body === undefined) return false
  const { exp, nbf } = body
  const now = nowMs / 1000
  if (exp !== undefined && !(typeof exp === 'number' && exp + slackSeconds > now)) return false
  return nbf === undefined || (typeof nbf === 'number' && nbf - slackSeconds <= now)
}

const textOf = (part: string): string => Buffer.from(part, 'base64url').toString()
