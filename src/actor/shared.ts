/** Numbers that every thread reads and one thread writes, in shared memory: no message, no lock. */

/** The height of the chain's tip as far as this program knows it. */
export class Tip {
  readonly #cells: Int32Array

  /** `memory` of at least 8 bytes, the same on every thread. */
  constructor(readonly memory: SharedArrayBuffer = new SharedArrayBuffer(8)) {
    this.#cells = new Int32Array(memory)
  }

  /** Height of the tip; -1 while unknown. */
  get height(): number {
    return Atomics.load(this.#cells, 0) - 1
  }

  /** Only the thread that follows the chain calls this. */
  move(height: number): void {
    Atomics.store(this.#cells, 0, height + 1)
  }
}
