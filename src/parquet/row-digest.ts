import { runningSha256 } from '../proof/digest.js'
import type { Value } from './l1-layout.js'

const bufferBytes = 65_536

/**
 * Digest of a table's rows in their order, which depends on no file format. It is SHA-256 over each value: 00 for null, else 01,
 * its length (u32, big-endian) and its bytes. Texts are UTF-8, numbers decimal ASCII, booleans `1` or `0`.
 */
export class RowDigest {
  readonly #hash = runningSha256()
  #buffer = Buffer.allocUnsafeSlow(bufferBytes)
  #at = 0

  add(row: readonly Value[]): void {
    for (const value of row) {
      if (value === null) this.#room(1)[this.#at++] = 0
      else if (value instanceof Uint8Array) this.#bytes(value)
      else if (typeof value === 'string') this.#bytes(Buffer.from(value, 'utf8'))
      else this.#ascii(typeof value === 'boolean' ? (value ? '1' : '0') : String(value))
    }
  }

  /** Once, at the end: 64 characters of lowercase hex. */
  hex(): string {
    this.#flush()
    return Buffer.from(this.#hash.digest()).toString('hex')
  }

  #ascii(text: string): void {
    const buffer = this.#room(5 + text.length)
    this.#head(buffer, text.length)
    this.#at += buffer.write(text, this.#at, 'latin1')
  }

  #bytes(bytes: Uint8Array): void {
    const whole = 5 + bytes.length <= bufferBytes
    const buffer = this.#room(whole ? 5 + bytes.length : 5)
    this.#head(buffer, bytes.length)
    if (whole) {
      buffer.set(bytes, this.#at)
      this.#at += bytes.length
      return
    }
    this.#flush()
    this.#hash.update(bytes)
  }

  #head(buffer: Buffer, length: number): void {
    buffer[this.#at] = 1
    buffer.writeUInt32BE(length, this.#at + 1)
    this.#at += 5
  }

  #room(count: number): Buffer {
    if (this.#at + count > bufferBytes) this.#flush()
    return this.#buffer
  }

  #flush(): void {
    if (this.#at > 0) this.#hash.update(this.#buffer.subarray(0, this.#at))
    this.#at = 0
  }
}
