import { errors, jwtVerify, SignJWT } from 'jose'

/** Tokens by which services know each other: JWT (RFC 7519) signed with HMAC-SHA-256 under a secret that both have. */

const lifeSeconds = 3600
/** Clocks of two machines differ. */
const slackSeconds = 60
/** The algorithm is fixed, so that a token cannot choose another one. */
const alg = 'HS256'

const keyOf = (secret: string): Uint8Array => new TextEncoder().encode(secret)

/** A token for an hour from `nowMs`. `secret` must not be empty. */
export function makeServiceToken(secret: string, nowMs: number): Promise<string> {
  const now = Math.floor(nowMs / 1000)
  return new SignJWT()
    .setProtectedHeader({ alg, typ: 'JWT' })
    .setIssuedAt(now)
    .setExpirationTime(now + lifeSeconds)
    .sign(keyOf(secret))
}

/**
 * Whether an Authorization header carries a token of this secret that has begun (`nbf`) and has not run out (`exp`). Tokens of
 * other programs may leave both out, and are then valid as long as the secret is.
 */
export async function isServiceToken(
  authorization: string | undefined,
  secret: string,
  nowMs: number,
): Promise<boolean> {
  const [, token] = /^Bearer ([\w.-]{1,4096})$/i.exec(authorization ?? '') ?? []
  if (token === undefined) return false
  try {
    const rules = { algorithms: [alg], clockTolerance: slackSeconds, currentDate: new Date(nowMs) }
    await jwtVerify(token, keyOf(secret), rules)
    return true
  } catch (error) {
    // Everything that is wrong with a token is an error of this class; others are bugs.
    if (!(error instanceof errors.JOSEError)) throw error
    return false
  }
}
