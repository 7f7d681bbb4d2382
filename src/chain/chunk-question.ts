import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { binaryChunkMax, readBinaryChunk } from './binary-chunk.js'
import type { Node, NodeAnswer } from './node.js'
import { type ChunkParts, readChunk } from './node-answers.js'
import { absenceRefusal } from './verdict.js'

/** Bytes of a chunk as JSON: base64url, with two paths. */
const jsonMax = 1_200_000

/** How long a node that did not answer `/chunk2` is not queried so again. */
const againMs = 3_600_000

/** The forms of chunks that a node supports, as its answers have shown. */
export class ChunkManner {
  /** It has answered in binary. */
  #isBinary = false
  #jsonUntilMs = Number.NEGATIVE_INFINITY

  /**
   * The chunk that holds weave byte `offset`, in binary where the node supports it. JSON takes a third more bytes and three times
   * as long to parse. Not every node and no gateway has the binary path, and a 404 can mean the path or the chunk. So JSON is
   * requested too until an answer has shown that the path exists. Not proven. Refusals as those of a `Node`; `unknown`: it has no
   * such chunk.
   */
  async ask(
    node: Node,
    offset: number,
    nowMs: number,
    signal: AbortSignal | undefined,
  ): Promise<ChunkParts | Refusal> {
    if (nowMs < this.#jsonUntilMs) return this.#json(node, offset, signal)
    const answer = await node.ask({ path: `/chunk2/${offset}`, maxBytes: binaryChunkMax }, signal)
    if (isRefusal(answer)) {
      if (this.#isBinary || signal?.aborted === true || answer.refused === 'late') return answer
      return this.#probe(node, offset, nowMs, signal)
    }
    const parts = answer.status === 200 ? readBinaryChunk(answer.body) : undefined
    if (parts !== undefined) {
      this.#isBinary = true
      return parts
    }
    if (this.#isBinary && answer.status !== 200) return absence(answer, node)
    // It is another server behind the same address now, or never was one that knows it.
    this.#isBinary = false
    return this.#probe(node, offset, nowMs, signal)
  }

  async #probe(
    node: Node,
    offset: number,
    nowMs: number,
    signal: AbortSignal | undefined,
  ): Promise<ChunkParts | Refusal> {
    const parts = await this.#json(node, offset, signal)
    if (!isRefusal(parts)) this.#jsonUntilMs = nowMs + againMs
    return parts
  }

  async #json(node: Node, offset: number, signal: AbortSignal | undefined): Promise<ChunkParts | Refusal> {
    const answer = await node.ask({ path: `/chunk/${offset}`, maxBytes: jsonMax }, signal)
    if (isRefusal(answer)) return answer
    if (answer.status !== 200) return absence(answer, node)
    return (
      readChunk(answer.body.toString('latin1')) ??
      refuse('upstream', 'upstream', `${node.name} sent an answer that cannot be read`)
    )
  }
}

/** Nodes answer 400 for positions behind the end of the weave: no failure of the node. */
function absence({ status }: NodeAnswer, node: Node): Refusal {
  return absenceRefusal(status === 400 ? 404 : status, node)
}
