import { BoundedMap } from '../../actor/bounded-map.js'
import type { Clock } from '../../actor/clock.js'
import { FreeShares } from '../../actor/free-shares.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { GatewayLine } from '../../source/upstream/gateway-line.js'

/** Lookups at the same time, of which one client has a quarter. */
export const lookupsMax = 256
/** Items that the network has, so that the same one is looked up once. */
const rememberedMax = 4096

/** On a chain of one's own nothing is posted elsewhere. */
export const onlyHere: Pick<EarlierPost, 'isKnown'> = { isKnown: async () => false }

/**
 * Finds out whether an item was posted elsewhere before. A signed item names no service, so anybody who has seen it could post it
 * here as well. Where its owner's credits pay for it, or are shared by it, only its first appearance on the network may do so.
 */
export class EarlierPost {
  readonly #shares = FreeShares.quarters(lookupsMax)
  readonly #known = new BoundedMap<Id, true>(rememberedMax)

  /** `gateways`: base URLs, at least one. All are asked at once. */
  constructor(
    private readonly gateways: readonly string[],
    private readonly line: Pick<GatewayLine, 'ask'>,
    private readonly clock: Clock,
    private readonly patienceMs: number,
  ) {}

  /**
   * Whether a gateway of the network has the item. One that has it decides. Otherwise at least one must state that it has not:
   * the refusal `upstream` where none does, `busy` where too many are looked up. `client`: address of the uploader; undefined:
   * this machine's own. Only for items whose owner has signed them and can pay: each call is a request to all gateways, which
   * limit those who ask too often.
   */
  async isKnown(id: Id, client: string | undefined): Promise<boolean | Refusal> {
    if (this.#known.get(id) === true) return true
    const leave = this.#shares.take(client ?? 'own')
    if (typeof leave === 'string') return refuse('busy', 'self', 'too many paid uploads begin at once')
    try {
      const isKnown = await this.#ask(id)
      if (isKnown === true) this.#known.set(id, true)
      return isKnown
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
      return refuse(
        'upstream',
        'upstream',
        'no gateway of the network states whether the item was posted before',
      )
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
