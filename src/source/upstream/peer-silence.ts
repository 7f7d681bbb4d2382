import { Backoff, type BackoffOptions } from '../../actor/backoff.js'
import type { Clock } from '../../actor/clock.js'

/**
 * Whether a peer sends heads at all. A peer may search long for ids that nobody knows, and a stranger chooses the ids. So where
 * no head came for `headMs`, the peer gets a request that any gateway answers at once. Only a peer that leaves that one without a
 * head is mute, until it answers such a request after a pause.
 */
export class PeerSilence {
  readonly #rest: Backoff
  /** When the first request began that no head has followed. */
  #sinceMs: number | undefined
  #isProbed = false

  /** `probe` resolves to whether a head came within `headMs`; it never rejects. */
  constructor(
    private readonly headMs: number,
    pauses: Omit<BackoffOptions, 'failuresMax'>,
    private readonly clock: Clock,
    private readonly probe: () => Promise<boolean>,
  ) {
    this.#rest = new Backoff({ ...pauses, failuresMax: 1 }, clock)
  }

  /** True: it gets no request where another peer can get it. */
  get isMute(): boolean {
    return this.#rest.isDue
  }

  /** Begins the next probe of a mute peer, where its pause is over. */
  probeAgain(): void {
    if (this.#rest.isDue && !this.#rest.isOn) void this.#look()
  }

  /** A head came, whatever its status. */
  heard(): void {
    this.#sinceMs = undefined
    this.#rest.well()
  }

  /** A request that began at `begunMs` (monotonic) ended before its head came, also because another peer was quicker. */
  unheard(begunMs: number): void {
    if (this.#rest.wasWellSince(begunMs)) return
    this.#sinceMs = Math.min(this.#sinceMs ?? begunMs, begunMs)
    if (!this.#rest.isDue && this.clock.monotonic() - this.#sinceMs >= this.headMs) void this.#look()
  }

  async #look(): Promise<void> {
    if (this.#isProbed) return
    this.#isProbed = true
    const begunMs = this.clock.monotonic()
    if (await this.probe()) this.heard()
    else if (!this.#rest.wasWellSince(begunMs)) this.#rest.failed()
    this.#isProbed = false
  }
}
