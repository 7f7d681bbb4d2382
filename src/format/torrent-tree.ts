import { hash } from 'node:crypto'

/** Hash trees of BEP 52: binary, SHA-256, leaves of 16 KiB, filled up with zero leaves to a power of two. */

/** `zeroNodes[n]` is the node over 2^n leaves of 32 zero bytes. 2^40 leaves are 16 PiB. */
const zeroNodes: readonly Uint8Array[] = (() => {
  const nodes: Uint8Array[] = [new Uint8Array(32)]
  for (let height = 1; height <= 40; height += 1) {
    const below = nodes[height - 1]!
    nodes.push(hash('sha256', Buffer.concat([below, below]), 'buffer'))
  }
  return nodes
})()

/** The node over 2^height leaves that are not there. */
export function zeroNode(height: number): Uint8Array {
  const node = zeroNodes[height]
  if (node === undefined) throw new RangeError(`no tree is ${height} high`)
  return node
}

/** The layer above `layer`, whose nodes are `height` above the leaves; an odd end is paired with a zero node. */
export function layerAbove(layer: Uint8Array, height: number): Uint8Array {
  const pairs = Math.ceil(layer.length / 64)
  const above = new Uint8Array(pairs * 32)
  const pair = new Uint8Array(64)
  for (let index = 0; index < pairs; index += 1) {
    const from = index * 64
    const both = from + 64 <= layer.length ? layer.subarray(from, from + 64) : pair
    if (both === pair) {
      pair.set(layer.subarray(from, from + 32))
      pair.set(zeroNode(height), 32)
    }
    above.set(hash('sha256', both, 'buffer'), index * 32)
  }
  return above
}

/** The root over a layer (32 bytes a node, at least one) whose nodes are `height` above the leaves. */
export function merkleRoot(layer: Uint8Array, height: number): Uint8Array {
  let [nodes, above] = [layer, height]
  while (nodes.length > 32) {
    nodes = layerAbove(nodes, above)
    above += 1
  }
  return nodes
}

/** The root of a piece: of its leaves (32 bytes each), in a tree of exactly `height`. */
export function pieceRoot(leaves: Uint8Array, height: number): Uint8Array {
  let nodes = leaves
  for (let above = 0; above < height; above += 1) nodes = layerAbove(nodes, above)
  return nodes
}
