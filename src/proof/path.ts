import { chunkSizeMax } from '../format/chunk.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { equalBytes, sha256 } from './digest.js'
import { sha256OfPart } from './merkle.js'
import { followPath, type PathQuestion, type ProvenLeaf, type Ruleset } from './path-rules.js'

export { type PathQuestion, type ProvenLeaf, type Ruleset, rulesetAt } from './path-rules.js'

function forged(message: string): Refusal {
  return refuse('forged', 'upstream', `path: ${message}`)
}

/** Follows a path as `followPath` does. */
export function validatePath(question: PathQuestion): ProvenLeaf | Refusal {
  return followPath(question, sha256OfPart)
}

export interface ChunkProof {
  readonly chunk: Uint8Array
  readonly dataPath: Uint8Array
  readonly dataRoot: Uint8Array
  readonly dataSize: number
  /** Place of any byte of the chunk in the transaction's data, counted from 0. */
  readonly offset: number
  readonly ruleset: Ruleset
}

/** Proves a chunk against a transaction's data root: where it lies in the data, or a refusal (forged). */
export function proveChunk(proof: ChunkProof): { readonly start: number; readonly end: number } | Refusal {
  const { dataRoot: root, offset: target, dataSize: size, dataPath: path, ruleset } = proof
  if (proof.chunk.length > chunkSizeMax) return forged(`a chunk of ${proof.chunk.length} bytes`)
  const leaf = validatePath({ root, target, size, path, ruleset })
  if ('refused' in leaf) return leaf
  if (leaf.end - leaf.start !== proof.chunk.length) {
    return forged(`the chunk has ${proof.chunk.length} bytes, not ${leaf.end - leaf.start}`)
  }
  if (!equalBytes(sha256(proof.chunk), leaf.dataHash)) return forged('the chunk does not hash to its leaf')
  return { start: leaf.start, end: leaf.end }
}
