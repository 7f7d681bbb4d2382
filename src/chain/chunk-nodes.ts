import { setMaxListeners } from 'node:events'
import { type Clock, firstOver, pause } from '../actor/clock.js'
import { gaveUp } from '../actor/fair-slots.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Chunk } from './chain.js'
import type { ChunkHolders } from './chunk-holders.js'
import { ChunkManner } from './chunk-question.js'
import { againMs, worse } from './gravity.js'
import type { Node } from './node.js'
import { NodeOrder, type NodeOrderOptions } from './node-order.js'
import { isPassing, isUnproven, unproven } from './passing.js'

/** So many nodes at most are queried for one chunk, where so many are named, and gateways beside them. */
const queriedMax = 50

/** A node that sent nothing for so long is not left, but the next one gets the request, too. */
const hedgeMs = 500
const atOnceMax = 3
/** A node that was silent while others answered comes behind these for so long, as if it had so many calls more under way. */
const [lateMs, lateHandicap] = [30_000, 64] as const

/**
 * Who comes behind by the operator's order counts as so busy. More than an unknown node does, so that the order holds for them,
 * and less than one that is known to have nothing.
 */
const behindHandicap = 1000

export interface ChunkNodesParts {
  /** Nodes that the operator prefers for chunks come first. */
  readonly nodes: readonly Node[]
  readonly preferred: ReadonlySet<Node>
  /** Those of `nodes` that are gateways: before all others or behind them, so many for one chunk at most. */
  readonly gateways: {
    readonly nodes: ReadonlySet<Node>
    readonly comeFirst: boolean
    readonly queriedMax: number
  }
  readonly options: NodeOrderOptions & { readonly attemptsMax: number }
  readonly clock: Clock
  readonly holders: ChunkHolders
  /** False: a silent node is waited for alone. For whoever waits for a turn before each request: that is no silence of a node. */
  readonly hedges: boolean
  /** Runs an attempt at a node, and keeps account of its failures. An unproven chunk is none yet. */
  readonly run: (node: Node, attempt: (node: Node) => Promise<Chunk | Refusal>) => Promise<Chunk | Refusal>
}

interface Attempt {
  readonly node: Node
  readonly begunMs: number
  readonly leave: AbortController
  readonly over: Promise<Chunk | Refusal>
}

export interface ChunkWish {
  readonly offset: number
  readonly signal: AbortSignal | undefined
  readonly check: ((chunk: Chunk) => true | Refusal) | undefined
}

/** What the answers to one wish have shown so far. */
interface Inquiry extends ChunkWish {
  worst: Refusal | undefined
  /** A node has answered "unknown". Many gateways give no chunks at all, so an "unknown" of theirs says less. */
  isLacking: boolean
  /** Who sent a chunk that does not prove. */
  readonly unproven: Map<Node, Refusal>
}

/**
 * Queries nodes for a chunk, and gateways, in the operator's order. Of either, those that had its neighbours come first, then
 * those that the operator prefers, then the others.
 */
export class ChunkNodes {
  readonly #order: NodeOrder<Node>
  readonly #manners = new Map<Node, ChunkManner>()
  /** Until when a node counts as slow for chunks. It may be the only one that has what is wanted, so it is never left out. */
  readonly #lateUntil = new Map<Node, number>()

  constructor(private readonly parts: ChunkNodesParts) {
    this.#order = new NodeOrder(parts.nodes, parts.options)
  }

  /**
   * Asks node after node until one sends the chunk; where all had a failure that may pass, once more after a pause. A node that
   * is avoided now is not queried after another node, no gateway, has answered "unknown". Who sent an unproven chunk counts as
   * failed only where another one sent one that proves: else our own place of it may be wrong. Refusals as those of a `Chain`.
   */
  async ask(wish: ChunkWish): Promise<Chunk | Refusal> {
    const inquiry: Inquiry = { ...wish, worst: undefined, isLacking: false, unproven: new Map() }
    let left = this.#attemptsMax()
    for (let waitMs = againMs; left > 0; waitMs *= 2) {
      const open = this.#ranked(wish.offset).filter((node) => !inquiry.unproven.has(node))
      const ranked = open.slice(0, left)
      left -= ranked.length
      const outcome = await this.#round(ranked, inquiry)
      if (outcome !== undefined) return outcome
      const { worst } = inquiry
      if (worst === undefined || !isPassing(worst) || left <= 0 || ranked.length === 0) break
      await pause(waitMs, wish.signal)
      if (wish.signal?.aborted === true) return gaveUp
    }
    let { worst } = inquiry
    for (const refusal of inquiry.unproven.values()) worst = worse(worst, refusal)
    return worst ?? refuse('upstream', 'self', 'no node to ask')
  }

  /** Enough for each node after all gateways: what gateways lack, a node may have. */
  #attemptsMax(): number {
    const { options, nodes, gateways } = this.parts
    const others = nodes.filter((node) => gateways.nodes.has(node)).length
    const own = Math.min(nodes.length - others, queriedMax)
    return Math.max(options.attemptsMax, own + Math.min(others, gateways.queriedMax))
  }

  #ranked(offset: number): Node[] {
    const { clock, holders, preferred, gateways } = this.parts
    const nowMs = clock.monotonic()
    const ranked = this.#order.ranked(nowMs, (node) => {
      const late = (this.#lateUntil.get(node) ?? 0) > nowMs ? lateHandicap : 0
      const behind = gateways.nodes.has(node) === gateways.comeFirst ? 0 : behindHandicap
      return late + behind + holders.handicap(node.name, offset, preferred.has(node))
    })
    let left = gateways.queriedMax
    return ranked.filter((node) => !gateways.nodes.has(node) || left-- > 0)
  }

  /**
   * The first chunk that one of the nodes sends; undefined where none did. A silent node is not waited for alone: the next one
   * is queried, too, and the first answer counts.
   */
  async #round(nodes: readonly Node[], inquiry: Inquiry): Promise<Chunk | Refusal | undefined> {
    const waiting = [...nodes]
    const running = new Set<Attempt>()
    try {
      for (let isSilent = true; ; ) {
        while (waiting[0] !== undefined && this.#isLeftOut(waiting[0], inquiry)) waiting.shift()
        const next = isSilent ? waiting.shift() : undefined
        if (next !== undefined) running.add(this.#begin(next, inquiry))
        if (running.size === 0) return undefined
        const mayHedge = this.parts.hedges && waiting.length > 0 && running.size < atOnceMax
        const first = await firstOver(running, this.parts.clock, mayHedge ? hedgeMs : undefined)
        isSilent = first === undefined
        if (first === undefined) continue
        running.delete(first.attempt)
        if (first.outcome === gaveUp) return first.outcome
        if (!isRefusal(first.outcome)) {
          this.#noteLate(running)
          this.#noteUnproven(inquiry.unproven.keys())
          return first.outcome
        }
        this.#noteRefusal(inquiry, first.attempt.node, first.outcome)
        isSilent = running.size === 0
      }
    } finally {
      for (const { leave } of running) leave.abort()
    }
  }

  #isLeftOut(node: Node, { worst, isLacking, unproven: senders }: Inquiry): boolean {
    if (!isLacking || worst?.refused !== 'unknown' || senders.size > 0) return false
    return this.#order.resting(node, this.parts.clock.monotonic())
  }

  #noteRefusal(inquiry: Inquiry, node: Node, refusal: Refusal): void {
    if (isUnproven(refusal)) {
      inquiry.unproven.set(node, refusal)
      return
    }
    if (refusal.refused === 'unknown' && !this.parts.gateways.nodes.has(node)) inquiry.isLacking = true
    inquiry.worst = worse(inquiry.worst, refusal)
  }

  #begin(node: Node, { offset, signal, check }: ChunkWish): Attempt {
    const { clock, holders, run } = this.parts
    const leave = new AbortController()
    const either = signal === undefined ? leave.signal : AbortSignal.any([signal, leave.signal])
    setMaxListeners(0, either)
    const ask = async (): Promise<Chunk | Refusal> => {
      const parts = await this.#manner(node).ask(node, offset, clock.monotonic(), either)
      if (isRefusal(parts)) {
        if (parts.refused === 'unknown') holders.note(node.name, offset, false)
        return parts
      }
      const chunk = { ...parts, node: node.name }
      const held = check?.(chunk) ?? true
      if (held !== true) return unproven(held)
      holders.note(node.name, offset, true)
      this.#lateUntil.delete(node)
      return chunk
    }
    return { node, leave, begunMs: clock.monotonic(), over: run(node, ask) }
  }

  /** Another one had the chunk. Who was silent for long comes later for a while, so that the next chunk need not wait for it. */
  #noteLate(attempts: Iterable<Attempt>): void {
    const nowMs = this.parts.clock.monotonic()
    for (const { node, begunMs } of attempts)
      if (nowMs - begunMs >= hedgeMs) this.#lateUntil.set(node, nowMs + lateMs)
  }

  /** Another one had a chunk that proves, so that these were wrong. */
  #noteUnproven(senders: Iterable<Node>): void {
    const nowMs = this.parts.clock.monotonic()
    for (const node of senders) this.#order.failed(node, nowMs)
  }

  #manner(node: Node): ChunkManner {
    const known = this.#manners.get(node)
    const manner = known ?? new ChunkManner()
    if (known === undefined) this.#manners.set(node, manner)
    return manner
  }
}
