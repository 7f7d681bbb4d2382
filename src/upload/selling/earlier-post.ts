import { BoundedMap } from '../../actor/bounded-map.js'
import type { Clock } from '../../actor/clock.js'
import { LeakingCounts } from '../../admission/leaking-counts.js'
import { OutwardTurns } from '../../admission/outward-turns.js'
import type { Id } from '../../format/id.js'
import { networkOfAddress } from '../../format/ip.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { GatewayLine } from '../../source/upstream/gateway-line.js'

/** Stands for uploads of this machine. */
export const ownAddress = '127.0.0.1'

/** Sockets to the gateways. */
export const lookupsMax = 256
/** Gateways limit who asks more often, or ban it. */
const turns = { perSecond: 100, burst: 500, eachPerMinute: 3000 }
/**
 * Items of one wallet that the network had, of one network of clients: whoever posts old ones again and again pays for none of
 * them. Never of a wallet alone: anybody can post its public items, and must not keep its owner out.
 */
const repeatedMax = 20
const repeated = { leakPerSecond: 1 / 60, max: repeatedMax }
/** Items that the network has, so that the same one is looked up once. */
const rememberedMax = 4096

const tooOften = refuse(
  'busy',
  'client',
  'from this network too many items of this wallet came that were posted before: try again in some minutes',
)
const crowded = refuse('busy', 'self', 'too many paid uploads begin at once')

/** An item that is to be looked up. */
export interface PostedItem {
  readonly id: Id
  /** Of its signer, in base64url. */
  readonly wallet: string
  /** IP address of the uploader; a loopback address is this machine's own. */
  readonly client: string
  /** Items that this wallet has paid for came from there before: its owner is there, whoever else posts from there. */
  readonly isAtHome: boolean
  /** It is taken, too, where no gateway states anything: its question waits for no turn. */
  readonly isTakenUnasked: boolean
}

/** On a chain of one's own nothing is posted elsewhere. */
export const onlyHere: Pick<EarlierPost, 'isKnown'> = { isKnown: async () => false }

/**
 * Finds out whether an item was posted elsewhere before. A signed item names no service, so anybody who has seen it could post it
 * here as well. Where its owner's credits pay for it, or are shared by it, only its first appearance on the network may do so.
 */
export class EarlierPost {
  readonly #turns: OutwardTurns
  /** By wallet and network. */
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
  async isKnown(item: PostedItem): Promise<boolean | Refusal> {
    const { id, client } = item
    if (this.#known.get(id) === true) return true
    const refusal = await this.#turnOf(item)
    if (refusal !== undefined) return refusal
    const isKnown = await this.#ask(id)
    if (isKnown === true) {
      this.#known.set(id, true)
      this.#repeated.add(pairOf(item))
    } else this.#turns.worth(client)
    return isKnown
  }

  async #turnOf(item: PostedItem): Promise<Refusal | undefined> {
    const { client, isAtHome, isTakenUnasked } = item
    if (isTakenUnasked) return this.#turns.takeNow(client) ? undefined : crowded
    const isOften = !isAtHome && this.#repeated.of(pairOf(item)) > repeatedMax - 1
    return isOften ? tooOften : this.#turns.wait(client)
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

function pairOf({ wallet, client }: PostedItem): string {
  return `${wallet} ${networkOfAddress(client)}`
}
