/** Bounds the operations that run while the next one is prepared. */
export class Ahead {
  readonly #running = new Set<Promise<unknown>>()

  constructor(private readonly max: number) {}

  /** Resolves when there is room for more. */
  async room(): Promise<void> {
    while (this.#running.size >= this.max) await Promise.race(this.#running)
  }

  /** Counts an operation until it ends. Its failure is handled by the caller that began it. */
  add(work: Promise<unknown>): void {
    const ended: Promise<unknown> = work
      .catch(() => 'heard by whoever began it')
      .finally(() => this.#running.delete(ended))
    this.#running.add(ended)
  }
}
