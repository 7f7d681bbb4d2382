import { once } from 'node:events'
import type { Clock } from '../actor/clock.js'
import { FairSlots, gaveUp } from '../actor/fair-slots.js'
import type { Requester } from '../actor/requester.js'
import { isRefusal } from '../format/refusal.js'
import { distinct, Node } from './node.js'
import type { ChainOptions } from './remote-chain-options.js'

export interface BroadcastOptions {
  /** Nodes that must take a chunk; where fewer are configured, all of them. */
  readonly successesMin: number
  /** Nodes to which one chunk is posted at the same time. */
  readonly concurrency: number
  /** Timeout of the connection. */
  readonly abortMs: number
  /** Timeout of the whole answer of one node. */
  readonly responseMs: number
  /** Posts under way to one node. More wait, for `abortMs` at most, by turns of clients; then the node is skipped. */
  readonly perNodeMax: number
  /** Final refusals in a row, before any success, after which no other node is queried: the others would refuse it too. */
  readonly refusalsMax?: number
  /** Nodes that get a chunk before all others. Of them so many must take it, or all where there are fewer. */
  readonly preferred?: { readonly nodes: readonly string[]; readonly successesMin: number }
}

/** The result of one post, with the field names that clients read. */
export interface NodeOutcome {
  readonly peer: string
  readonly success: boolean
  readonly statusCode: number
  readonly canceled: boolean
  readonly timedOut: boolean
  /** It had too many posts under way all the time, so nothing was sent to it. */
  readonly skipped?: true
}

export interface Broadcasted {
  readonly successCount: number
  /** Those among the nodes that the operator prefers; where he prefers none, all of them. */
  readonly preferredSuccessCount: number
  readonly failureCount: number
  /** Enough nodes took it. */
  readonly enough: boolean
  /** Outcomes of the nodes that had answered by then. */
  readonly results: readonly NodeOutcome[]
}

const usualRefusalsMax = 5
/** 303: the node keeps the chunk temporarily. */
const taken = new Set([200, 202, 208, 303])

/** A node, and the places for posts to it. */
interface Target {
  readonly node: Node
  readonly places: FairSlots
}

/** Posts chunks to nodes. */
export class Broadcast {
  readonly #targets: readonly Target[]
  readonly #preferred: ReadonlySet<string>
  readonly #successesMin: number
  readonly #preferredMin: number

  constructor(
    chain: ChainOptions,
    private readonly options: BroadcastOptions,
    private readonly clock: Clock,
  ) {
    const calls = { ...chain, connectMs: options.abortMs, headMs: options.responseMs }
    const connectionsMax = Math.min(chain.connectionsMax, options.perNodeMax)
    const build = (address: string): Node => new Node(address, { ...calls, connectionsMax }, clock)
    const preferred = distinct((options.preferred?.nodes ?? []).map(build))
    const nodes = distinct([...preferred, ...chain.nodes.map(build)])
    this.#targets = nodes.map((node) => ({ node, places: FairSlots.unbounded(options.perNodeMax) }))
    this.#successesMin = Math.min(options.successesMin, nodes.length)
    this.#preferredMin = Math.min(options.preferred?.successesMin ?? 0, preferred.length)
    this.#preferred = new Set((preferred.length === 0 ? nodes : preferred).map(({ name }) => name))
  }

  async close(): Promise<void> {
    await Promise.all(this.#targets.map(({ node }) => node.close()))
  }

  /**
   * Posts node JSON of a chunk to the preferred nodes and of them to the least busy ones first, until enough took it, or none is
   * left, or `refusalsMax` in a row refused it for good. Resolves as soon as that is known; posts that are under way then go on,
   * and those that wait end. `client`: whose post it is, '' for this program's own. Never rejects.
   */
  async chunk(json: string, client = ''): Promise<Broadcasted> {
    const results: NodeOutcome[] = []
    let refusals = 0
    const clear = new AbortController()
    const isPreferred = (name: string): boolean => this.#preferred.has(name)
    const successes = (): number => results.filter(({ success }) => success).length
    const preferredSuccesses = (): number =>
      results.filter(({ success, peer }) => success && isPreferred(peer)).length
    const isEnough = (): boolean =>
      successes() >= this.#successesMin && preferredSuccesses() >= this.#preferredMin
    const { refusalsMax = usualRefusalsMax } = this.options
    const isClear = (): boolean => isEnough() || (successes() === 0 && refusals >= refusalsMax)
    const rank = ({ node }: Target): number => (isPreferred(node.name) ? 0 : 1)
    const left = [...this.#targets]
      .sort((a, b) => rank(a) - rank(b) || a.places.taken - b.places.taken)
      .values()
    const worker = async (): Promise<void> => {
      for (const target of left) {
        if (isClear()) return
        // Only a preferred one can still be missing.
        if (successes() >= this.#successesMin && !isPreferred(target.node.name)) continue
        const outcome = await this.#post(target, json, { client, signal: clear.signal })
        refusals = outcome.statusCode >= 400 && outcome.statusCode < 499 ? refusals + 1 : 0
        results.push(outcome)
        if (isClear()) clear.abort()
      }
    }
    const threads = Array.from({ length: this.options.concurrency }, worker)
    await Promise.race([once(clear.signal, 'abort'), Promise.all(threads)])
    const successCount = successes()
    return {
      successCount,
      preferredSuccessCount: preferredSuccesses(),
      failureCount: results.length - successCount,
      enough: isEnough(),
      results: [...results],
    }
  }

  /** `signal`: ends the wait for a place. What waits for one holds the whole chunk, and nobody waits for its end any more. */
  async #post({ node, places }: Target, json: string, { client, signal }: Requester): Promise<NodeOutcome> {
    const plain = { peer: node.name, success: false, canceled: false, timedOut: false }
    const { abortMs, responseMs } = this.options
    const place = await places.waitFor(client, abortMs, this.clock, signal)
    if (isRefusal(place)) return { ...plain, statusCode: 503, skipped: true }
    const end = new AbortController()
    const timer = this.clock.after(responseMs, () => end.abort())
    const answer = await node.ask({ path: '/chunk', post: json, maxBytes: 100_000 }, end.signal)
    place()
    timer.cancel()
    if (!isRefusal(answer)) return { ...plain, success: taken.has(answer.status), statusCode: answer.status }
    const timedOut = answer === gaveUp || answer.refused === 'late'
    return { ...plain, timedOut, statusCode: timedOut ? 504 : 502 }
  }
}

/**
 * The status for a chunk that not enough nodes took: the most frequent one; between equals a 4xx, then the lower
 * number.
 */
export function commonFailure(results: readonly NodeOutcome[]): number {
  const counts = new Map<number, number>()
  for (const { success, statusCode } of results) {
    if (!success) counts.set(statusCode, (counts.get(statusCode) ?? 0) + 1)
  }
  const isClients = (status: number): number => (status >= 400 && status < 500 ? 0 : 1)
  const [first] = [...counts].sort(
    ([a, timesA], [b, timesB]) => timesB - timesA || isClients(a) - isClients(b) || a - b,
  )
  return first?.[0] ?? 500
}
