import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { Found } from '../source.js'
import type { Window } from '../source-messages.js'
import { cancelBody } from './cancel-body.js'

/** A body that breaks so often without a byte in between is broken. */
const triesMax = 2

/**
 * The body of `found`, going on where it broke, where its server can send the rest (`found.again`). The rest must be of
 * the same whole, as far as the server says. `window`: of the payload, inclusive, that `found.body` brings. `onRest` is called
 * before each request for a rest.
 */
export async function* resuming(
  found: Found,
  window: Window,
  onRest: () => void,
): AsyncGenerator<Uint8Array | Refusal, undefined> {
  let at = window.start
  let tries = 0
  let body = found.body
  for (;;) {
    let broken: Refusal | undefined
    for await (const piece of body) {
      if (isRefusal(piece)) {
        broken = piece
        break
      }
      at += piece.length
      tries = 0
      yield piece
    }
    if (broken === undefined) return undefined
    let next: Found | undefined
    const isPassing = broken.refused === 'upstream' || broken.refused === 'late'
    while (isPassing && next === undefined && tries < triesMax && at > window.start && at <= window.end) {
      tries += 1
      onRest()
      next = await rest(found, { start: at, end: window.end })
    }
    if (next === undefined) {
      yield broken
      return undefined
    }
    body = next.body
  }
}

async function rest(found: Found, window: Window): Promise<Found | undefined> {
  const next = await found.again?.(window)
  if (next === undefined || isRefusal(next)) return undefined
  const [one, other] = [found.declaredDigest, next.declaredDigest]
  const isSame = one === undefined || other === undefined || Buffer.compare(one, other) === 0
  if (isSame && next.sizeBytes === found.sizeBytes) return next
  void cancelBody(next.body)
  return undefined
}
