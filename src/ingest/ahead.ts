/** Bounds the operations that run while the next one is prepared, by their number and by the bytes that they hold. */
export class Ahead {
  readonly #running = new Set<Promise<unknown>>()
  #bytes = 0

  constructor(
    private readonly max: number,
    private readonly bytesMax = Number.POSITIVE_INFINITY,
  ) {}

  /** Resolves when there is room for more. */
  async room(): Promise<void> {
    while (this.#running.size >= this.max || this.#bytes >= this.bytesMax) await Promise.race(this.#running)
  }

  /** Counts an operation, and the bytes that it holds, until it ends. Its failure is handled by the caller that began it. */
  add(work: Promise<unknown>, bytes = 0): void {
    this.#bytes += bytes
    const ended: Promise<unknown> = work
      .catch(() => 'heard by whoever began it')
      .finally(() => {
        this.#bytes -= bytes
        this.#running.delete(ended)
      })
    this.#running.add(ended)
  }
}
