import type { Log } from './log.js'

/**
 * Logs once that something has stopped working, and once that it works again: a service that is away for an hour gives two lines
 * and not one for each request.
 */
export class Outage {
  #isLogged = false

  /** `down` and `back` are the texts of the two lines. */
  constructor(
    private readonly log: Pick<Log, 'warn' | 'info'>,
    private readonly down: string,
    private readonly back: string,
  ) {}

  /** `about`: what is known of the failure that began it. */
  failed(about: object): void {
    if (!this.#isLogged) this.log.warn(about, this.down)
    this.#isLogged = true
  }

  well(): void {
    if (this.#isLogged) this.log.info(this.back)
    this.#isLogged = false
  }
}
