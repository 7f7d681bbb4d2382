import { rowKeyBytes } from './row-key.js'

/** Lists whose last block is known: some 60 bytes each, twice as many at most. */
const tailsMax = 2 ** 17
const kinds = 8

/** Where the last blocks of the lists begin that were written to last: so that they need not be searched for. */
export class PostingTails {
  #young = new Generation()
  #old = new Generation()

  /** Copies the first row key of the last block under `prefix` to `into` at `at`; false where it is not known. */
  read(prefix: number, into: Uint8Array, at: number): boolean {
    if (this.#young.read(prefix, into, at)) return true
    if (!this.#old.read(prefix, into, at)) return false
    this.set(prefix, into, at)
    return true
  }

  /** The last block under `prefix` begins with the row key at `at` of `rows`. */
  set(prefix: number, rows: Uint8Array, at: number): void {
    if (this.#young.size >= tailsMax) {
      const old = this.#old
      this.#old = this.#young
      this.#young = old
      old.clear()
    }
    this.#young.set(prefix, rows, at)
  }

  clear(): void {
    this.#young.clear()
    this.#old.clear()
  }

  /** It is somewhere else now. */
  forget(prefix: number): void {
    this.#young.forget(prefix)
    this.#old.forget(prefix)
  }
}

class Generation {
  /** A map for each kind: small whole numbers are far quicker keys than whole prefixes. */
  readonly #kinds = Array.from({ length: kinds }, () => new Map<number, number>())
  #rows = new Uint8Array(1024 * rowKeyBytes)
  size = 0

  read(prefix: number, into: Uint8Array, at: number): boolean {
    const kind = Math.floor(prefix / 2 ** 40)
    const slot = this.#kinds[kind]?.get(prefix - kind * 2 ** 40)
    if (slot === undefined) return false
    for (let byte = 0; byte < rowKeyBytes; byte += 1) into[at + byte] = this.#rows[slot + byte] as number
    return true
  }

  set(prefix: number, rows: Uint8Array, at: number): void {
    const kind = Math.floor(prefix / 2 ** 40)
    const words = this.#kinds[kind]
    const word = prefix - kind * 2 ** 40
    let slot = words?.get(word)
    if (slot === undefined) {
      slot = this.size * rowKeyBytes
      this.size += 1
      words?.set(word, slot)
      if (slot === this.#rows.length) {
        const larger = new Uint8Array(this.#rows.length * 2)
        larger.set(this.#rows)
        this.#rows = larger
      }
    }
    for (let byte = 0; byte < rowKeyBytes; byte += 1) this.#rows[slot + byte] = rows[at + byte] as number
  }

  /** Its slot stays taken until all are cleared. */
  forget(prefix: number): void {
    const kind = Math.floor(prefix / 2 ** 40)
    this.#kinds[kind]?.delete(prefix - kind * 2 ** 40)
  }

  clear(): void {
    for (const words of this.#kinds) words.clear()
    this.size = 0
  }
}
