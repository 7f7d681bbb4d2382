import { pause } from '../actor/clock.js'

/** Repeats a piece of work until it is stopped. */
export class Rounds {
  readonly #abort = new AbortController()
  #running: Promise<void> = Promise.resolve()

  /** `round` does what is to be done now and returns how many milliseconds to wait until the next. */
  constructor(private readonly round: (signal: AbortSignal) => Promise<number>) {}

  /** Resolves when they were stopped; rejects with what a round throws. */
  run(): Promise<void> {
    this.#running = this.#run()
    return this.#running
  }

  /** Aborts the round under way and resolves when nothing of it is left. */
  async stop(): Promise<void> {
    this.#abort.abort()
    await this.#running.catch(() => 'told to whoever called run')
  }

  async #run(): Promise<void> {
    const { signal } = this.#abort
    while (!signal.aborted) {
      const waitMs = await this.round(signal)
      if (waitMs > 0) await pause(waitMs, signal)
    }
  }
}
