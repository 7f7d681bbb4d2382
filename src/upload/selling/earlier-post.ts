import type { Clock } from '../../actor/clock.js'
import { FreeShares } from '../../actor/free-shares.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { GatewayLine } from '../../source/upstream/gateway-line.js'

/** Lookups at the same time, of which one client has a quarter. More are refused: those who share credits are few. */
const lookupsMax = 32

/**
 * Finds out whether an item was posted elsewhere before. A signed item names no service, so anybody who has seen it could post it
 * here as well. Where it moves credits of its owner, only its first appearance on the network may do so.
 */
export class EarlierPost {
  readonly #shares = FreeShares.quarters(lookupsMax)

  /** `gateways`: base URLs, all asked at once. None on a chain of one's own: nothing was posted elsewhere. */
  constructor(
    private readonly gateways: readonly string[],
    private readonly line: Pick<GatewayLine, 'ask'>,
    private readonly clock: Clock,
    private readonly patienceMs: number,
  ) {}

  /**
   * Whether a gateway of the network has the item. One that has it decides. Otherwise at least one must state that it has not:
   * the refusal (`busy`) where none does. `client`: address of the uploader; undefined: this machine's own.
   */
  async isKnown(id: Id, client: string | undefined): Promise<boolean | Refusal> {
    if (this.gateways.length === 0) return false
    const leave = this.#shares.take(client ?? 'own')
    if (typeof leave === 'string') return refuse('busy', 'self', 'too many orders for shared credits at once')
    try {
      return await this.#ask(id)
    } finally {
      leave()
    }
  }

  async #ask(id: Id): Promise<boolean | Refusal> {
    const stop = new AbortController()
    const timer = this.clock.after(this.patienceMs, () => stop.abort())
    const statuses = this.gateways.map((url) => this.#status(url, id, stop.signal))
    const has = statuses.map(async (status) => {
      const found = await status
      if (found === undefined || found < 200 || found > 299) throw new Error('not there')
    })
    try {
      const isThere = await Promise.any(has).then(
        () => true,
        () => false,
      )
      if (isThere) return true
      // A redirect or an error states nothing about the item.
      if ((await Promise.all(statuses)).some((status) => status === 404)) return false
      return refuse('busy', 'upstream', 'no gateway of the network states whether the item was posted before')
    } finally {
      timer.cancel()
      stop.abort()
    }
  }

  /** The status that a gateway answers with; undefined: it did not answer. */
  async #status(url: string, id: Id, signal: AbortSignal): Promise<number | undefined> {
    const answer = await this.line.ask(url, { method: 'HEAD', path: `/raw/${id}`, headers: {} }, signal)
    if (isRefusal(answer)) return undefined
    answer.drop()
    return answer.statusCode
  }
}
