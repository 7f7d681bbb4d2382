import type { ProvenChunk } from '../../src/chain/chunk-cache.js'
import { chunkSizes } from '../../src/format/chunk.js'
import { sha256 } from '../../src/proof/digest.js'
import { MerkleTree } from '../../src/proof/merkle.js'
import type { Ruleset } from '../../src/proof/path.js'

/** The chunks of data with their proofs, cut in the usual way or at these ends. */
export function chunksOf(
  data: Uint8Array,
  ruleset: Ruleset = 'rebase',
  ends: readonly number[] = usualEnds(data.length),
): ProvenChunk[] {
  const pieces = ends.map((end, at) => data.subarray(ends[at - 1] ?? 0, end))
  const tree = new MerkleTree(pieces.map((piece, at) => ({ hash: sha256(piece), end: ends[at] ?? 0 })))
  return pieces.map((chunk, at) => ({
    chunk,
    dataPath: tree.path(at),
    dataRoot: tree.root,
    dataSize: data.length,
    start: ends[at - 1] ?? 0,
    end: ends[at] ?? 0,
    ruleset,
  }))
}

function usualEnds(sizeBytes: number): number[] {
  let end = 0
  return [...chunkSizes(sizeBytes)]
    .filter((size) => size > 0)
    .map((size) => {
      end += size
      return end
    })
}
