import type { Attributes } from '../../catalog/attributes.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import type { Found } from '../source.js'
import type { Window } from '../source-messages.js'
import { windowIn } from '../window-in.js'

function differ(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) !== 0
}

/** The wanted window in a payload of the size that a source announces, or what is wrong with that size. Pure. */
export function judgeSize(
  found: Found,
  known: Attributes | undefined,
  window: Window | undefined,
): Window | Refusal | undefined {
  if (!Number.isSafeInteger(found.sizeBytes) || found.sizeBytes < 0) {
    return refuse('upstream', 'upstream', 'the source announced no valid size')
  }
  if (known?.verified === true && !found.proven && known.size !== found.sizeBytes) {
    return refuse('forged', 'upstream', 'the source announced another size than the proven one')
  }
  return window && windowIn(window, found.sizeBytes)
}

/** What is wrong with the SHA-256 of a whole payload. What was proven on the way needs no other witness. Pure. */
export function judgeDigest(
  found: Found,
  known: Attributes | undefined,
  digest: Uint8Array,
): Refusal | undefined {
  if (found.declaredDigest !== undefined && differ(found.declaredDigest, digest)) {
    return refuse('forged', 'upstream', 'the bytes do not match the digest that the source declared')
  }
  if (found.proven || known?.digest === undefined) return undefined
  if (differ(known.digest, digest)) {
    return refuse('forged', 'upstream', 'the bytes do not match the digest on record')
  }
  return undefined
}

/**
 * True where the digest on record is as much in doubt as the new one: neither is proven, and the server does not contradict
 * itself. It is forgotten then, so that the next fetch starts without a prejudice. Pure.
 */
export function unsettles(found: Found, known: Attributes | undefined, digest: Uint8Array): boolean {
  if (known === undefined || known.verified) return false
  return found.declaredDigest === undefined || !differ(found.declaredDigest, digest)
}
