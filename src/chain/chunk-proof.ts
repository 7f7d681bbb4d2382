import type { Requester } from '../actor/requester.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { validateTxPath } from '../proof/block-tree.js'
import { proveChunk, rulesetAt } from '../proof/path.js'
import type { Block, Chain, Chunk } from './chain.js'
import type { ProvenChunk } from './chunk-cache.js'
import type { WeaveSpan } from './span.js'
import { settledDepth } from './weave-search.js'

/** Proves that a chunk holds weave byte `offset` of a transaction whose data root and place are known. `forged` otherwise. */
export function proveInSpan(
  chunk: Chunk,
  span: Pick<WeaveSpan, 'dataRoot' | 'sizeBytes' | 'start'>,
  offset: number,
): ProvenChunk | Refusal {
  const { dataRoot, sizeBytes: dataSize } = span
  const ruleset = rulesetAt(offset)
  const { chunk: bytes, dataPath } = chunk
  const at = offset - span.start
  const proven = proveChunk({ chunk: bytes, dataPath, dataRoot, dataSize, offset: at, ruleset })
  return isRefusal(proven) ? proven : { chunk: bytes, dataPath, dataRoot, dataSize, ...proven, ruleset }
}

/**
 * The chunk that holds weave byte `offset`, from the first node whose chunk `prove` takes. It is proven before the node counts as
 * one that has it: where the proof fails, the next one gets the request. Refusals: as `Chain.chunk` has them, and of `prove`.
 */
export async function firstProven<Proven extends object>(
  chain: Pick<Chain, 'chunk'>,
  offset: number,
  requester: Requester,
  prove: (chunk: Chunk) => Proven | Refusal,
): Promise<{ readonly chunk: Chunk; readonly proven: Proven } | Refusal> {
  let held: Proven | undefined
  const chunk = await chain.chunk(offset, requester, (given) => {
    const proven = prove(given)
    if (isRefusal(proven)) return proven
    held = proven
    return true
  })
  if (isRefusal(chunk)) return chunk
  const proven = held ?? prove(chunk)
  return isRefusal(proven) ? proven : { chunk, proven }
}

export interface InBlock {
  readonly span: WeaveSpan
  readonly proven: ProvenChunk
}

/**
 * Proves a chunk by the block alone: tx_path leads from the block's tx_root to a data root and its bounds, data_path from there
 * to the chunk. Refusals: `forged`; `upstream` where there is no tx_path or no tx_root to prove anything by.
 */
export function proveInBlock(
  chunk: Chunk,
  block: Block,
  tipHeight: number,
  offset: number,
): InBlock | Refusal {
  const { txPath } = chunk
  const { txRoot, blockSize } = block
  if (txPath === undefined || txRoot === undefined) {
    return refuse('upstream', 'upstream', 'nothing proves which transaction the chunk belongs to')
  }
  const before = block.weaveSize - blockSize
  const leaf = validateTxPath({ txRoot, offset: offset - before - 1, blockSize, path: txPath })
  if (isRefusal(leaf)) return leaf
  const span: WeaveSpan = {
    start: before + leaf.start + 1,
    sizeBytes: leaf.end - leaf.start,
    dataRoot: leaf.dataHash,
    txPath,
    settled: tipHeight - block.height > settledDepth,
  }
  const proven = proveInSpan(chunk, span, offset)
  return isRefusal(proven) ? proven : { span, proven }
}
