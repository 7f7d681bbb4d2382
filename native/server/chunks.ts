import { headMaxBytes } from './wire.js'

type Phase =
  | 'size'
  | 'extension'
  | 'size-lf'
  | 'data'
  | 'data-cr'
  | 'data-lf'
  | 'line-start'
  | 'line'
  | 'line-lf'
  | 'end-lf'

const cr = 13
const lf = 10
const nameShape = /[A-Za-z0-9!#$%&'*+\-.^_`|~]/
const valueShape = /[\t\x20-\x7e\x80-\xff]/

/** The strict reader of bodies in chunks, as chunks.h has it (RFC 9112 section 7.1). */
export class ChunkReader {
  /** True once the last chunk and its trailers were read. */
  whole = false
  failed = false
  #phase: Phase = 'size'
  #left = 0
  #digits = 0
  /** Bytes of extensions and trailers of the whole body. */
  #beside = 0
  #named = false

  /** Takes bytes up to the end of them, or of the body. Pieces of the body go to `give`. Returns how many were taken. */
  take(bytes: Uint8Array, give: (piece: Uint8Array) => void): number {
    let at = 0
    while (at < bytes.length && !this.whole && !this.failed) {
      if (this.#phase === 'data') {
        const end = Math.min(bytes.length, at + this.#left)
        give(bytes.subarray(at, end))
        this.#left -= end - at
        at = end
        if (this.#left === 0) this.#phase = 'data-cr'
        continue
      }
      this.#step(bytes[at] ?? 0)
      at += 1
    }
    return at
  }

  #expect(right: boolean, next: Phase): void {
    if (right) this.#phase = next
    else this.failed = true
  }

  #aside(right: boolean): void {
    this.#beside += 1
    if (!right || this.#beside > headMaxBytes) this.failed = true
  }

  #step(byte: number): void {
    const text = String.fromCharCode(byte)
    switch (this.#phase) {
      case 'size':
        this.#size(byte, text)
        break
      case 'extension':
        if (byte === cr) this.#phase = 'size-lf'
        else this.#aside(valueShape.test(text))
        break
      case 'size-lf':
        this.#expect(byte === lf, this.#left === 0 ? 'line-start' : 'data')
        this.#digits = 0
        break
      case 'data-cr':
        this.#expect(byte === cr, 'data-lf')
        break
      case 'data-lf':
        this.#expect(byte === lf, 'size')
        break
      case 'line-start':
        this.#named = false
        this.#phase = byte === cr ? 'end-lf' : 'line'
        if (byte !== cr) this.#aside(nameShape.test(text))
        break
      case 'line':
        this.#trailer(byte, text)
        break
      case 'line-lf':
        this.#expect(byte === lf, 'line-start')
        break
      case 'end-lf':
        this.whole = byte === lf
        this.failed = !this.whole
        break
    }
  }

  #size(byte: number, text: string): void {
    if (/[0-9A-Fa-f]/.test(text)) {
      this.#digits += 1
      this.#left = this.#left * 16 + Number.parseInt(text, 16)
      this.failed = this.#digits > 12
    } else if (this.#digits === 0) this.failed = true
    else if (byte === cr) this.#phase = 'size-lf'
    else this.#expect(text === ';', 'extension')
  }

  #trailer(byte: number, text: string): void {
    if (byte === cr) {
      this.#expect(this.#named, 'line-lf')
      return
    }
    this.#aside((this.#named || text === ':' ? valueShape : nameShape).test(text))
    if (text === ':') this.#named = true
  }
}
