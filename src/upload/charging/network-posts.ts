import { BoundedMap } from '../../actor/bounded-map.js'
import type { Clock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { LeakingCounts } from '../../admission/leaking-counts.js'
import { OutwardTurns } from '../../admission/outward-turns.js'
import type { Id } from '../../format/id.js'
import { networkOfAddress } from '../../format/ip.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { UpstreamClient } from '../../source/upstream/upstream-client.js'
import { UncheckedItems } from './unchecked-items.js'

/** Stands for uploads of this machine. */
export const ownAddress = '127.0.0.1'

/** Sockets to the gateways. */
export const lookupsMax = 256
/** Gateways limit who asks more often, or ban it. */
const turns = { perSecond: 100, burst: 500, eachPerMinute: 3000 }
/**
 * So many items of one wallet from one network of clients may have been posted before. Then more are refused, because nobody pays
 * for them. Not counted by the wallet alone: anybody can post its public items, and must not keep its owner out.
 */
const repeatedMax = 20
/** After so many from one network nothing of the wallet is taken from there unchecked. */
const doubtedMax = 10
/** At the owner's home the bound is so many times higher: a stranger on the same network must not keep the owner out. */
const homeTimes = 10
const repeated = { leakPerSecond: 1 / 60, max: repeatedMax * homeTimes }
/** Items that the network has, so that the same one is looked up once. */
const rememberedMax = 4096

const tooOften = refuse(
  'busy',
  'client',
  'too many items of this wallet came from this network that were posted before: try again in some minutes',
)

/** A gateway counts as away after so many questions in a row without any answer, of which only some in a time count. */
const silentMax = 12
const silentEachMs = 300_000

/** Why questions are given up that are not needed any more. */
const decided = Symbol('decided')

/** Between two lines of the log about a gateway. */
const namedEachMs = 600_000

const unstated = refuse(
  'upstream',
  'upstream',
  'the gateways of the network do not state whether the item was posted before',
)

/** An item that is to be looked up. */
export interface PostedItem {
  readonly id: Id
  /** Address of its signer, base64url. */
  readonly wallet: string
  /** Size of the whole item. */
  readonly bytes: number
  /** IP address of the uploader; a loopback address is this machine's own. */
  readonly client: string
  /** Items that this wallet has paid for came from there before: its owner is there, whoever else posts from there. */
  readonly isAtHome: boolean
  /** At home it may count as new where nobody states anything, within `UncheckedItems`. */
  readonly mayGoUnchecked: boolean
}

/** Whether items were posted before (to this service, its other machines or the network). */
export interface PostHistory {
  /** Refusals: it is not known now. */
  wasPosted(item: PostedItem): Promise<boolean | Refusal>
  /** What became of an item that is new: `isPaid` where it was accepted and paid for. To be called once after `wasPosted`. */
  noteOutcome(item: PostedItem, isPaid: boolean): void
}

/** On a chain of one's own nothing is posted elsewhere. */
export const neverPosted: PostHistory = {
  wasPosted: async () => false,
  noteOutcome: () => undefined,
}

/**
 * Looks up at the gateways of the network whether an item was posted before. A signed item names no service, so anybody who has
 * seen it could post it here as well. Where its owner's credits pay for it, or are shared by it, only its first appearance on
 * the network may do so.
 */
export class NetworkPosts implements PostHistory {
  readonly #turns: OutwardTurns
  /** Keyed by wallet and network. */
  readonly #repeated: LeakingCounts
  readonly #unchecked: UncheckedItems
  readonly #known = new BoundedMap<Id, true>(rememberedMax)
  /** Questions in a row that a gateway did not answer; absent: it answered its last one, or there was none yet. */
  readonly #silent = new Map<string, { readonly count: number; readonly lastMs: number }>()
  /** When each gateway was last named in the log. */
  readonly #namedMs = new Map<string, number>()

  /** `gateways`: base URLs, at least one. All get each question at once. */
  constructor(
    private readonly gateways: readonly string[],
    private readonly client: Pick<UpstreamClient, 'request'>,
    private readonly clock: Clock,
    private readonly patienceMs: number,
    private readonly log: Pick<Log, 'warn'>,
  ) {
    this.#turns = new OutwardTurns(turns, clock)
    this.#repeated = new LeakingCounts(clock, repeated)
    this.#unchecked = new UncheckedItems(clock)
  }

  /**
   * Whether a gateway of the network has the item. One that has it decides. False: all gateways state that they do not have it,
   * except those that are away (`#isAbsent`). Refusals: `upstream` where one does not state it, `busy` where there is no turn for
   * the question. Only for items whose owner has signed them and can pay: each call is a request to all gateways. Call
   * `noteOutcome` afterwards.
   */
  async wasPosted(item: PostedItem): Promise<boolean | Refusal> {
    const { id, bytes, isAtHome, mayGoUnchecked } = item
    if (this.#known.get(id) === true) return true
    const pair = pairOf(item)
    const isKnown = (await this.#turnOf(item)) ?? (await this.#ask(id))
    if (isKnown === true) {
      this.#known.set(id, true)
      this.#repeated.add(pair)
    } else if (isKnown === false) this.#unchecked.noteNew(pair)
    else if (isAtHome && mayGoUnchecked && this.#repeated.of(pair) < doubtedMax) {
      // Strangers can fill the line for nothing: then only those go on whose own items are most of it.
      const isEarned = isKnown.refused === 'busy'
      return this.#unchecked.take(pair, bytes, isEarned) ? false : isKnown
    }
    return isKnown
  }

  /**
   * What became of an item that is new. A question was in vain where the item was not paid for. So it was for an order for shared
   * credits, which costs nothing. Who causes many of these waits behind others, and is refused after some.
   */
  noteOutcome(item: PostedItem, isPaid: boolean): void {
    if (isPaid) this.#turns.noteUseful(item.client)
    else this.#repeated.add(pairOf(item))
  }

  async #turnOf(item: PostedItem): Promise<Refusal | undefined> {
    const { client, isAtHome, mayGoUnchecked } = item
    // An order for credits that comes to nothing costs nothing, wherever it comes from.
    // Not refused for what others posted: as `mayBeUnsure` of `ServicePosts`.
    const mayBeUnsure = isAtHome && mayGoUnchecked
    const max = isAtHome ? repeatedMax * homeTimes : repeatedMax
    return !mayBeUnsure && this.#repeated.of(pairOf(item)) > max - 1 ? tooOften : this.#turns.wait(client)
  }

  async #ask(id: Id): Promise<boolean | Refusal> {
    const stop = new AbortController()
    const timer = this.clock.after(this.patienceMs, () => stop.abort())
    const statuses = this.gateways.map((url) => this.#status(url, id, stop.signal))
    const has = statuses.map(async (status) => {
      if (!isThere(await status)) throw new Error('not there')
    })
    try {
      const isFound = await Promise.any(has).then(
        () => true,
        () => false,
      )
      return isFound || this.#isAbsent(await Promise.all(statuses))
    } finally {
      timer.cancel()
      stop.abort(decided)
    }
  }

  /**
   * False: all gateways that are not away answered 404. A gateway is away only where it answers nothing at all. One that refuses
   * questions, bans this machine or fails may be the only one with the item, and strangers can bring that about.
   */
  #isAbsent(statuses: readonly (number | undefined)[]): false | Refusal {
    const nowMs = this.clock.monotonic()
    const unclear = this.gateways.filter((url, at) => {
      if (statuses[at] === 404) return false
      return (this.#silent.get(url)?.count ?? 0) < silentMax
    })
    for (const url of unclear) this.#name(url, statuses[this.gateways.indexOf(url)], nowMs)
    return unclear.length > 0 || !statuses.includes(404) ? unstated : false
  }

  /** An operator can remove a gateway that keeps others from paying. */
  #name(url: string, status: number | undefined, nowMs: number): void {
    if (nowMs - (this.#namedMs.get(url) ?? Number.NEGATIVE_INFINITY) < namedEachMs) return
    this.#namedMs.set(url, nowMs)
    const why =
      'a gateway of TRUSTED_GATEWAYS_URLS does not state whether it has an item: paid uploads may be refused'
    this.log.warn({ url, status }, why)
  }

  /** The status that a gateway answers with; undefined: it did not answer. */
  async #status(url: string, id: Id, signal: AbortSignal): Promise<number | undefined> {
    const answer = await this.client.request(url, { method: 'HEAD', path: `/raw/${id}`, headers: {} }, signal)
    if (isRefusal(answer)) {
      // Another gateway may have been faster.
      if (signal.reason !== decided) this.#noteSilence(url)
      return undefined
    }
    answer.drop()
    this.#silent.delete(url)
    return answer.statusCode
  }

  #noteSilence(url: string): void {
    const nowMs = this.clock.monotonic()
    const { count, lastMs } = this.#silent.get(url) ?? { count: 0, lastMs: Number.NEGATIVE_INFINITY }
    if (nowMs - lastMs >= silentEachMs) this.#silent.set(url, { count: count + 1, lastMs: nowMs })
  }
}

/** A redirect or an error states nothing about the item. */
function isThere(status: number | undefined): boolean {
  return status !== undefined && status >= 200 && status <= 299
}

function pairOf({ wallet, client }: PostedItem): string {
  return `${wallet} ${networkOfAddress(client)}`
}
