import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Signer } from '../attest/answer-signature.js'
import { type Covered, coverage, linesOfUnchanged } from '../attest/covered.js'
import { blockOf, type Line } from '../attest/line.js'
import type { Vocabulary } from '../attest/vocabulary.js'
import { encodeBase64url } from '../format/base64url.js'
import { matchesWeakly, parseEntityTags } from '../format/entity-tag.js'
import type { Request } from '../http/exchange.js'

export interface StatementParts {
  readonly vocabulary: Vocabulary
  /** Undefined: answers are not signed. */
  readonly signer?: Signer
  readonly clock: Clock
  readonly log: Log
}

/** Whether the client has the body with this SHA-256 already, by its conditions. */
export function isUnchanged(request: Request, digest: Uint8Array): boolean {
  const wanted = parseEntityTags(request.header('if-none-match') ?? '')
  return wanted !== undefined && matchesWeakly(wanted, { weak: false, opaque: encodeBase64url(digest) })
}

/** Header blocks of routes beside content, signed where they make a statement about trust. */
export class Statements {
  readonly #cover: (lines: readonly Line[]) => Covered

  constructor(private readonly parts: StatementParts) {
    this.#cover = coverage(parts.vocabulary)
  }

  /** `first` (request id and CORS), then `lines`, then their signature; a 304 has none (`linesOfUnchanged`). */
  block(request: Request, first: string, status: number, lines: readonly Line[]): string {
    const { signer, clock, log } = this.parts
    const found = this.#cover(lines)
    if (status === 304) return `${first}\r\n${blockOf(linesOfUnchanged(lines, found))}`
    const { lines: covered, worthSigning } = found
    const block = `${first}\r\n${blockOf(lines)}`
    if (signer === undefined || !worthSigning) return block
    const { method, path } = request
    try {
      const seconds = Math.floor(clock.now() / 1000)
      return `${block}\r\n${signer.sign({ status, covered, method, path }, seconds)}`
    } catch (error) {
      log.error({ err: error }, 'an answer could not be signed')
      return block
    }
  }
}
