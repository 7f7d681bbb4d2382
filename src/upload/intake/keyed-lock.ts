/** A lock for each name: calls with the same name run one after the other. */
export class KeyedLock {
  readonly #running = new Map<string, Promise<unknown>>()

  isTaken(id: string): boolean {
    return this.#running.has(id)
  }

  /** Runs `act` after all earlier calls for the same id have ended. */
  async run<T>(id: string, act: () => Promise<T>): Promise<T> {
    for (let first = this.#running.get(id); first !== undefined; first = this.#running.get(id)) await first
    // No await between the loop and `set`, so only one caller enters.
    const outcome = act()
    this.#running.set(id, outcome)
    try {
      return await outcome
    } finally {
      this.#running.delete(id)
    }
  }
}
