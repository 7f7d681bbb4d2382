/** How nodes are asked. Times watch progress only: a long answer that keeps coming is never cut. */
export interface ChainOptions {
  /** Base URLs of nodes, the preferred first. At least one. */
  readonly nodes: readonly string[]
  /** To a connection. */
  readonly connectMs: number
  /** From the request to the answer's head. */
  readonly headMs: number
  /** Longest window in which a body may bring next to nothing. */
  readonly stallMs: number
  /** Connections kept to one node. */
  readonly connectionsMax: number
  /** Calls under way, all nodes together. */
  readonly callsMax: number
  /** Calls that may wait for their turn; one more is refused `busy`. */
  readonly waitingMax: number
  /** Questions put to nodes for one answer, one after the other; more than there are nodes: asked again after a pause. */
  readonly attemptsMax: number
  /** First cool-off of a node that failed; doubles up to `coolMaxMs` while it goes on failing. */
  readonly coolMs: number
  readonly coolMaxMs: number
}
