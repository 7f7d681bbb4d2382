import { timingSafeEqual } from 'node:crypto'
import type { Request } from '../../http/exchange.js'
import { sha256 } from '../../proof/digest.js'

/** The operator's key, which requests carry as `Authorization: Bearer {key}`. */
export class AdminKey {
  readonly #expected: Uint8Array

  constructor(key: string) {
    this.#expected = sha256(Buffer.from(`Bearer ${key}`))
  }

  /**
   * Takes the same time whatever key was sent, because digests are compared. The scheme may be in any letter case (RFC 9110
   * section 11.1).
   */
  opens(request: Request): boolean {
    const shown = request.header('authorization')?.replace(/^bearer +/i, 'Bearer ')
    return shown !== undefined && timingSafeEqual(sha256(Buffer.from(shown)), this.#expected)
  }
}
