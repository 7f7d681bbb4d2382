import { Backoff } from '../../actor/backoff.js'
import type { Clock } from '../../actor/clock.js'

/** A gateway without an answer comes behind the others for the first time, and after many failed trials for the second. */
const [restMs, restMaxMs] = [15_000, 120_000] as const

/** The next gateway gets the request, too, after this time or later. */
const patienceMinMs = 500

/** Share of the youngest answer in the usual time to a head. */
const youngest = 0.1

/** What is known of a request before it is sent. */
export interface Trial {
  readonly begunMs: number
  /** The only request that goes first again after a pause. */
  readonly isProbe: boolean
  /** After so long a gateway that answers may take its place. Undefined: the client's own limit counts. */
  readonly limitMs: number | undefined
}

/** How a gateway answers: how long its heads usually take, and whether it was silent lately. */
export class GatewayHealth {
  readonly #rest: Backoff
  /** Undefined before the first answer. */
  #usualMs: number | undefined

  /** `headMs`: the longest wait for a head. */
  constructor(
    private readonly headMs: number,
    private readonly clock: Clock,
  ) {
    this.#rest = new Backoff({ failuresMax: 1, restMs, restMaxMs }, clock)
  }

  /** It was silent lately, and comes behind the others. */
  get isBehind(): boolean {
    return this.#rest.isDue && this.#rest.isOn
  }

  /** How long its head is waited for before another gateway gets the request, too. */
  get patienceMs(): number {
    return Math.min(this.headMs, Math.max(patienceMinMs, 2 * (this.#usualMs ?? 0)))
  }

  /** Before a request. After a pause one request alone tries whether it answers again; the others are short. */
  begin(): Trial {
    const { isBehind } = this
    const isProbe = this.#rest.isDue && !isBehind
    if (isProbe) this.#rest.hold(this.headMs)
    const limitMs = isBehind ? Math.min(this.headMs, 4 * this.patienceMs) : undefined
    return { begunMs: this.clock.monotonic(), isProbe, limitMs }
  }

  /** It sent a head, whatever the status. */
  answered({ begunMs }: Trial): void {
    const tookMs = this.clock.monotonic() - begunMs
    const usualMs = this.#usualMs ?? tookMs
    this.#usualMs = usualMs + (tookMs - usualMs) * youngest
    this.#rest.well()
  }

  /** It sent no head. One that answered another request meanwhile is not silent: that one id may take it long. */
  silent({ begunMs, isProbe }: Trial): void {
    if (!this.#rest.wasWellSince(begunMs) && (isProbe || !this.isBehind)) this.#rest.failed()
  }

  /** Another gateway was quicker. That is silence where the request waited as long as for which a second one is sent. */
  lost(trial: Trial): void {
    if (this.clock.monotonic() - trial.begunMs >= this.patienceMs) this.silent(trial)
  }
}
