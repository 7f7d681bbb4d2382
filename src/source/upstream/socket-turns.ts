import type { Clock } from '../../actor/clock.js'
import { FairSlots } from '../../actor/fair-slots.js'
import type { AnySignal } from '../../actor/lazy-signal.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { placeHeldFirst, type TakePlace } from './take-place.js'

/** Sockets to each of the configured gateways, shared by turns of clients; each is held until its answer is over. */
export class SocketTurns {
  /** Keyed by the base URL of a gateway. */
  readonly #sockets = new Map<string, FairSlots>()

  /** `max`: sockets to one gateway. */
  constructor(
    private readonly max: number,
    private readonly patienceMs: number,
    private readonly clock: Clock,
  ) {}

  /** Waits for a socket, `patienceMs` at most. The rest of a body that broke waits for none. Refusal: `busy`, of this side. */
  async wait(url: string, client: string | undefined, signal: AnySignal): Promise<TakePlace | Refusal> {
    const slots = this.#slotsOf(url)
    const slot = await slots.waitFor(client, this.patienceMs, this.clock, signal)
    if (!isRefusal(slot)) return placeHeldFirst(slot, () => slots.force(client))
    return refuse('busy', 'self', `too many requests to ${url} are under way`)
  }

  #slotsOf(url: string): FairSlots {
    const known = this.#sockets.get(url)
    if (known !== undefined) return known
    const made = FairSlots.unbounded(this.max)
    this.#sockets.set(url, made)
    return made
  }
}
