import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import type { SocketUsage } from './listen.js'

const lookMs = 1000

/**
 * Meters open sockets, and logs when clients have to wait for a free one: once, and again only after a whole second with
 * room.
 */
export class SocketWatch {
  readonly #timer: Timer
  #pauses = 0
  #isFull = false

  /** `usage` returns undefined where the server does not count (the fallback). */
  constructor(
    private readonly usage: () => SocketUsage | undefined,
    private readonly meters: Meters,
    private readonly log: Pick<Log, 'info' | 'warn'>,
    clock: Clock,
  ) {
    this.#timer = clock.every(lookMs, () => this.look())
  }

  look(): void {
    const now = this.usage()
    if (now === undefined) return
    const { open, max, pauses } = now
    this.meters.of('sockets_open').set(open)
    this.meters.of('sockets_max').set(max)
    const since = pauses - this.#pauses
    this.#pauses = pauses
    if (since > 0) this.meters.of('accept_pauses_total').add(since)
    const isFull = since > 0 || (max > 0 && open >= max)
    if (isFull && !this.#isFull)
      this.log.warn({ open, max }, 'the limit of open connections is reached: new ones wait until others end')
    if (!isFull && this.#isFull)
      this.log.info({ open, max }, 'the number of open connections is below the limit again')
    this.#isFull = isFull
  }

  close(): void {
    this.#timer.cancel()
  }
}
