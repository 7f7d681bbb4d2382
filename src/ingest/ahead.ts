/** Work that goes on while the next is prepared: so much at most. */
export class Ahead {
  readonly #running = new Set<Promise<unknown>>()

  constructor(private readonly max: number) {}

  /** Resolves when there is room for more. */
  async room(): Promise<void> {
    while (this.#running.size >= this.max) await Promise.race(this.#running)
  }

  /** Counts work until it ends, well or not: whoever began it hears of that. */
  add(work: Promise<unknown>): void {
    const ended: Promise<unknown> = work
      .catch(() => 'heard by whoever began it')
      .finally(() => this.#running.delete(ended))
    this.#running.add(ended)
  }
}
