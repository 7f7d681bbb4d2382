import { timingSafeEqual } from 'node:crypto'
import type { Request } from '../../http/exchange.js'
import { sha256 } from '../../proof/digest.js'

/** The operator's key, which requests carry as `Authorization: Bearer {key}`. */
export class AdminKey {
  #expected: Uint8Array = new Uint8Array()
  #line = ''

  constructor(key: string) {
    this.use(key)
  }

  /** From now on only this one opens anything. */
  use(key: string): void {
    this.#line = `Bearer ${key}`
    this.#expected = sha256(Buffer.from(this.#line))
  }

  /** The header for a service that takes the same key. */
  get line(): string {
    return this.#line
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
