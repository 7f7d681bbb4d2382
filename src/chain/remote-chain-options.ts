/** Gateways that serve chunks as nodes do. They get no other requests. */
export interface ChunkGateways {
  readonly urls: readonly string[]
  /** Whether they come before the nodes or behind them; `alone`: nodes are not queried for chunks. */
  readonly place: 'before' | 'behind' | 'alone'
  /** How many of them are queried for one chunk at most. */
  readonly queriedMax: number
}

/**
 * How nodes are queried. The timeouts limit waiting, not the whole transfer: a long answer that keeps arriving is never
 * cut.
 */
export interface ChainOptions {
  /** Base URLs of nodes, the preferred first. At least one. */
  readonly nodes: readonly string[]
  /** Base URLs that are queried for chunks before `nodes`. */
  readonly chunkNodes?: readonly string[]
  /** Gateways that are queried for chunks, too. */
  readonly chunkGateways?: ChunkGateways
  /** Timeout of the connection. */
  readonly connectMs: number
  /** From the request to the answer's head. */
  readonly headMs: number
  /** Longest time in which a body may bring almost nothing. */
  readonly stallMs: number
  /** Connections kept to one node. */
  readonly connectionsMax: number
  /** Calls under way, all nodes together. */
  readonly callsMax: number
  /** Calls that may wait for their turn; one more is refused `busy`. */
  readonly waitingMax: number
  /** Attempts for one answer, one after the other; where there are fewer nodes, they are queried again after a pause. */
  readonly attemptsMax: number
  /** How long a node is avoided after its first failure; doubles with each further failure up to `coolMaxMs`. */
  readonly coolMs: number
  readonly coolMaxMs: number
}
