import type { Attributes } from '../../catalog/attributes.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import { forbiddenBytes } from '../refusals.js'
import type { Found } from '../source.js'
import type { ContentRequest, Window } from '../source-messages.js'
import { windowIn } from '../window-in.js'
import type { TransferParts } from './transfer-parts.js'
import { attributesFound, type TransferTarget, type WholeTransfer } from './transfer-target.js'

/** Held back of a payload until its digest is known to be none that is blocked: it costs nobody more than the last moment. */
const heldBytes = 256 * 1024

/** Judges the payload of one transfer: is it what it must be, and may it be served? */
export class TransferJudge {
  constructor(
    private readonly request: ContentRequest,
    private readonly parts: Pick<TransferParts, 'forbidden' | 'keeper' | 'suspects'>,
  ) {}

  /** Judges a payload that is all there, with its SHA-256. */
  async judge(target: TransferTarget, digest: Uint8Array): Promise<WholeTransfer | Refusal> {
    const { found, known, body, base, fileBytes } = target
    const { suspects, keeper } = this.parts
    const { id } = this.request
    const doubt = judgeDigest(found, known, digest)
    if (doubt !== undefined) {
      if (unsettles(found, known, digest)) await keeper.ask({ kind: 'distrust', id })
      return doubt
    }
    const attributes = attributesFound(id, found, known, digest)
    if (this.forbids(digest)) {
      // Recorded, it is refused before its first byte next time. Only proven or trusted sources bind an id to blocked bytes.
      if (!found.proven && !found.trusted) suspects.add(id)
      else await keeper.ask({ kind: 'learn', attributes: [attributes] })
      return forbiddenBytes()
    }
    suspects.clear(id)
    return { found, body, known, base, fileBytes, attributes, digest }
  }

  /** Whether nothing of a payload may be shown before all of it was judged. */
  isSuspect(sizeBytes: number): boolean {
    const { suspects, forbidden } = this.parts
    return suspects.has(this.request.id) || forbidden?.isBlockedSize(sizeBytes) === true
  }

  forbids(digest: Uint8Array): boolean {
    return this.parts.forbidden?.blocksDigest(digest) ?? false
  }

  /** Bytes that may be shown before the judgement: those that do not prove in the end must not complete anybody's body. */
  shownMax(fileBytes: number): number {
    const mayEnd = this.request.window === undefined && this.parts.forbidden?.mayBlockContent === true
    return Math.max(0, fileBytes - (mayEnd ? heldBytes : 1))
  }
}

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
function judgeDigest(found: Found, known: Attributes | undefined, digest: Uint8Array): Refusal | undefined {
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
function unsettles(found: Found, known: Attributes | undefined, digest: Uint8Array): boolean {
  if (known === undefined || known.verified) return false
  return found.declaredDigest === undefined || !differ(found.declaredDigest, digest)
}
