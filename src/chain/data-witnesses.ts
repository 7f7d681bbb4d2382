import type { Clock } from '../actor/clock.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { proveInSpan } from './chunk-proof.js'
import { ChunkManner } from './chunk-question.js'
import { distinct, Node } from './node.js'
import { readOffset } from './node-answers.js'
import type { ChainOptions } from './remote-chain-options.js'
import { absenceRefusal } from './verdict.js'

/** Data of a mined transaction that nodes are to show. */
export interface DataWish {
  readonly id: Id
  /** 32 bytes. */
  readonly dataRoot: Uint8Array
  readonly sizeBytes: number
  /** Positions in the data, from 0: the chunk around each is read. */
  readonly offsets: readonly number[]
  /** Names of nodes that are queried behind the others: they took the data from whoever queries. */
  readonly last: ReadonlySet<string>
}

/** `missing`: for one of the positions no node gave a chunk that proves, and one denied that it has any. */
export type DataSeen = 'seen' | 'missing' | Refusal

/** Bytes of JSON that say where a transaction lies. */
const offsetMaxBytes = 1000

/** Nodes that prove, chunk by chunk, that they have the data of a transaction. Gateways are not among them: one may be ours. */
export class DataWitnesses {
  readonly #nodes: readonly { readonly node: Node; readonly manner: ChunkManner }[]

  /** Throws on a malformed address. `addresses`: base URLs of nodes. */
  constructor(
    addresses: readonly string[],
    options: ChainOptions,
    private readonly clock: Clock,
  ) {
    const nodes = distinct(addresses.map((address) => new Node(address, options, clock)))
    this.#nodes = nodes.map((node) => ({ node, manner: new ChunkManner() }))
  }

  async close(): Promise<void> {
    await Promise.all(this.#nodes.map(({ node }) => node.close()))
  }

  /**
   * Reads the wanted chunks one after the other, each from the first node that gives one which proves against the data root. What
   * one node had is requested of it first. Where the data lies in the weave each node says for itself, as the proof shows whether
   * that was right. Ends with the first chunk that nobody gives. A refusal: no node denied it, and none answered.
   */
  async look(wish: DataWish, signal: AbortSignal): Promise<DataSeen> {
    const rank = ({ node }: { readonly node: Node }): number => (wish.last.has(node.name) ? 1 : 0)
    const order = [...this.#nodes].sort((one, other) => rank(one) - rank(other))
    const starts = new Map<Node, Promise<number | Refusal>>()
    for (const offset of wish.offsets) {
      let isDenied = false
      let worst: Refusal = refuse('upstream', 'self', 'no node to ask')
      let found = -1
      for (const [at, { node, manner }] of order.entries()) {
        const start = starts.get(node) ?? this.#start(node, wish, signal)
        starts.set(node, start)
        const outcome = await this.#chunk(node, manner, await start, wish, offset, signal)
        if (!isRefusal(outcome)) {
          found = at
          break
        }
        if (signal.aborted) return outcome
        if (outcome.refused === 'unknown' || outcome.refused === 'forged') isDenied = true
        else worst = outcome
      }
      if (found < 0) return isDenied ? 'missing' : worst
      order.unshift(...order.splice(found, 1))
    }
    return 'seen'
  }

  /** Position in the weave, from 1, of the first byte of the data. */
  async #start(node: Node, { id, sizeBytes }: DataWish, signal: AbortSignal): Promise<number | Refusal> {
    const answer = await node.ask({ path: `/tx/${id}/offset`, maxBytes: offsetMaxBytes }, signal)
    if (isRefusal(answer)) return answer
    if (answer.status !== 200) return absenceRefusal(answer.status, node)
    const place = readOffset(answer.body.toString('utf8'))
    return place?.size === sizeBytes
      ? place.start
      : refuse('upstream', 'upstream', `${node.name} sent an answer that cannot be read`)
  }

  async #chunk(
    node: Node,
    manner: ChunkManner,
    start: number | Refusal,
    { dataRoot, sizeBytes }: DataWish,
    offset: number,
    signal: AbortSignal,
  ): Promise<true | Refusal> {
    if (isRefusal(start)) return start
    const parts = await manner.ask(node, start + offset, this.clock.monotonic(), signal)
    if (isRefusal(parts)) return parts
    const proven = proveInSpan({ ...parts, node: node.name }, { dataRoot, sizeBytes, start }, start + offset)
    return isRefusal(proven) ? proven : true
  }
}
