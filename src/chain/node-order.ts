/** What decides the place of a node in the order. */
export interface NodeHealth {
  /** Calls under way. */
  underWay: number
  /** Failures in a row. */
  failures: number
  /** When the first of them was (monotonic milliseconds). */
  failingSinceMs: number | undefined
  /** Not queried before this moment (monotonic milliseconds) while others answer. */
  coolUntil: number
}

export interface NodeOrderOptions {
  readonly coolMs: number
  readonly coolMaxMs: number
}

/** A node that is only slow, or limits its clients, answers once in such a time. */
const awayMs = 10 * 60_000

/**
 * Which node to ask next. A node that failed is avoided for a while, twice as long after each further failure; one
 * success resets that. Among the others the least busy comes first, and between equals the configured order decides.
 */
export class NodeOrder<Node extends NodeHealth> {
  readonly #nodes: readonly Node[]
  readonly #options: NodeOrderOptions

  constructor(nodes: readonly Node[], options: NodeOrderOptions) {
    if (nodes.length === 0) throw new RangeError('at least one node is needed')
    this.#nodes = nodes
    this.#options = options
  }

  /**
   * All nodes, the best first; avoided ones last, the one that is avoided for the shortest time first among them. `handicap`: so
   * many calls more a node is counted to have under way, by what is known of it for this question.
   */
  ranked(now: number, handicap: (node: Node) => number = () => 0): Node[] {
    const rest = (node: Node): number => Math.max(0, node.coolUntil - now)
    const busy = (node: Node): number => node.underWay + handicap(node)
    return [...this.#nodes].sort((a, b) => rest(a) - rest(b) || busy(a) - busy(b))
  }

  resting(node: Node, now: number): boolean {
    return node.coolUntil > now
  }

  /** Whether it has answered nothing for long: where several nodes decide, it is not one of them. */
  isAway(node: Node, now: number): boolean {
    return node.failingSinceMs !== undefined && now - node.failingSinceMs >= awayMs
  }

  succeeded(node: Node): void {
    node.failures = 0
    node.failingSinceMs = undefined
    node.coolUntil = 0
  }

  failed(node: Node, now: number): void {
    node.failures += 1
    node.failingSinceMs ??= now
    const cool = Math.min(this.#options.coolMs * 2 ** (node.failures - 1), this.#options.coolMaxMs)
    node.coolUntil = now + cool
  }
}
