import { hashBlocks } from '../../native/digest/digest.js'

/** Hash trees of BEP 52: binary, SHA-256, leaves of 16 KiB, filled up with zero leaves to a power of two. */

/** `zeroNodes[n]` is the node over 2^n leaves of 32 zero bytes. 2^40 leaves are 16 PiB. */
const zeroNodes: readonly Uint8Array[] = (() => {
  const nodes: Uint8Array[] = [new Uint8Array(32)]
  for (let height = 1; height <= 40; height += 1) {
    const below = nodes[height - 1]!
    nodes.push(hashBlocks(Buffer.concat([below, below]), 64))
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
  return hashBlocks(layer.length % 64 === 0 ? layer : Buffer.concat([layer, zeroNode(height)]), 64)
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
