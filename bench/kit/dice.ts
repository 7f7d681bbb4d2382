/** Random numbers of the benches; the same seed gives the same numbers (xorshift128). */
export class Dice {
  #a: number
  #b = 362_436_069
  #c = 521_288_629
  #d = 88_675_123

  constructor(seed: number) {
    this.#a = seed | 1
    for (let turn = 0; turn < 20; turn += 1) this.word()
  }

  word(): number {
    const t = this.#a ^ (this.#a << 11)
    this.#a = this.#b
    this.#b = this.#c
    this.#c = this.#d
    this.#d = this.#d ^ (this.#d >>> 19) ^ t ^ (t >>> 8)
    return this.#d >>> 0
  }

  /** From 0 up to, not including, 1. */
  next(): number {
    return this.word() / 2 ** 32
  }

  below(count: number): number {
    return Math.floor(this.next() * count)
  }

  /** Small numbers far more often than large ones: about 1/rank. */
  zipf(count: number): number {
    return Math.min(count - 1, Math.floor(count ** this.next()) - 1)
  }

  /** Mean 0, deviation 1 (Box and Muller). */
  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next())
  }

  bytes(count: number): Buffer {
    const bytes = Buffer.allocUnsafe(count)
    for (let at = 0; at < count; at += 4) bytes.writeUInt32LE(this.word(), Math.min(at, count - 4))
    return bytes
  }
}
