import { BoundedMap } from '../../actor/bounded-map.js'
import type { Clock } from '../../actor/clock.js'
import { LeakingCounts } from '../../admission/leaking-counts.js'
import { OutwardTurns } from '../../admission/outward-turns.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { GatewayLine } from '../../source/upstream/gateway-line.js'

/** Stands for uploads of this machine. */
export const ownAddress = '127.0.0.1'

/** Sockets to the gateways. */
export const lookupsMax = 256
/** Gateways limit who asks more often, or ban it. */
const turns = { perSecond: 100, burst: 500, eachPerMinute: 3000 }
/** Items of one wallet that the network had: whoever posts old ones again and again pays for none of them. */
const repeatedMax = 20
const repeated = { leakPerSecond: 1 / 60, max: repeatedMax }
/** Items that the network has, so that the same one is looked up once. */
const rememberedMax = 4096

const tooOften = refuse(
  'busy',
  'client',
  'too many items of this wallet were posted to the network before: try again in some minutes',
)
const crowded = refuse('busy', 'self', 'too many paid uploads begin at once')

/** An item that is to be looked up. */
export interface PostedItem {
  readonly id: Id
  /** Of its signer, in base64url. */
  readonly wallet: string
  /** IP address of the uploader; a loopback address is this machine's own. */
  readonly client: string
  /** Items of this wallet came from there before: it is taken, too, where no gateway states anything. */
  readonly isAtHome: boolean
}

/** On a chain of one's own nothing is posted elsewhere. */
export const onlyHere: Pick<EarlierPost, 'isKnown'> = { isKnown: async () => false }

/**
 * Finds out whether an item was posted elsewhere before. A signed item names no service, so anybody who has seen it could post it
 * here as well. Where its owner's credits pay for it, or are shared by it, only its first appearance on the network may do so.
 */
export class EarlierPost {
  readonly #turns: OutwardTurns
  /** By wallet. */
  readonly #repeated: LeakingCounts
  readonly #known = new BoundedMap<Id, true>(rememberedMax)

  /** `gateways`: base URLs, at least one. All are asked at once. */
  constructor(
    private readonly gateways: readonly string[],
    private readonly line: Pick<GatewayLine, 'ask'>,
    private readonly clock: Clock,
    private readonly patienceMs: number,
  ) {
    this.#turns = new OutwardTurns(turns, clock)
    this.#repeated = new LeakingCounts(clock, repeated)
  }

  /**
   * Whether a gateway of the network has the item. One that has it decides. Otherwise at least one must state that it has not:
   * the refusal `upstream` where none does, `busy` where there is no turn for the question. Only for items whose owner has signed
   * them and can pay: each call is a request to all gateways.
   */
  async isKnown({ id, wallet, client, isAtHome }: PostedItem): Promise<boolean | Refusal> {
    if (this.#known.get(id) === true) return true
    const refusal = await this.#turnOf(wallet, client, isAtHome)
    if (refusal !== undefined) return refusal
    const isKnown = await this.#ask(id)
    if (isKnown === true) {
      this.#known.set(id, true)
      this.#repeated.add(wallet)
    } else this.#turns.worth(client)
    return isKnown
  }

  async #turnOf(wallet: string, client: string, isAtHome: boolean): Promise<Refusal | undefined> {
    // Who is taken without an answer waits for none.
    if (isAtHome) return this.#turns.takeNow(client) ? undefined : crowded
    return this.#repeated.of(wallet) > repeatedMax - 1 ? tooOften : this.#turns.wait(client)
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
