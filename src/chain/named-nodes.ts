import type { Clock } from '../actor/clock.js'
import { distinct, Node } from './node.js'
import type { ChainOptions } from './remote-chain-options.js'

/** The nodes that the operator names. */
export interface NamedNodes {
  readonly nodes: readonly Node[]
  /** With those that are queried for chunks alone. */
  readonly all: readonly Node[]
  /** For chunks. */
  readonly preferred: readonly Node[]
  /** For chunks alone, and not among the preferred ones. */
  readonly gateways: readonly Node[]
}

/** One of each address. Throws on a malformed one. */
export function namedNodes(options: ChainOptions, clock: Clock): NamedNodes {
  const nodes = options.nodes.map((address) => new Node(address, options, clock))
  const preferred = (options.chunkNodes ?? []).map((address) => {
    const node = new Node(address, options, clock)
    return nodes.find(({ name }) => name === node.name) ?? node
  })
  const own = distinct([...preferred, ...nodes])
  const others = (options.chunkGateways?.urls ?? []).map((address) => new Node(address, options, clock))
  const all = distinct([...own, ...others])
  return { nodes, all, preferred, gateways: all.slice(own.length) }
}
