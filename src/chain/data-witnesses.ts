import type { Clock } from '../actor/clock.js'
import { gaveUp } from '../actor/fair-slots.js'
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

/** What a look has decided: positions in none of the lists are to be looked at again. */
export interface DataSeen {
  readonly seen: readonly number[]
  /** No node gave a chunk that proves, and all denied that they have any. */
  readonly missing: readonly number[]
  /** The same, where one of them did not answer: nodes hold parts of the weave, so it may have this one. Absent: none. */
  readonly doubtful?: readonly number[]
  /** Why the others are not decided: nodes did not answer, or there was no time left. Absent: all are. */
  readonly refusal?: Refusal
}

/** Bytes of JSON that say where a transaction lies. */
const offsetMaxBytes = 1000
/** A node that does not give a chunk in this time does not give it. */
const chunkMaxMs = 10_000
/** A node that takes longer for a chunk is queried behind all others, for so long. */
const [slowFromMs, slowForMs] = [2000, 600_000] as const
/** Chunks that one node may keep a look waiting for; and chunks in a row that nobody answers for, after which it ends. */
const [lateMax, silentMax] = [2, 2] as const

interface Witness {
  readonly node: Node
  readonly manner: ChunkManner
  /** When it was slow last. */
  slowMs: number
}

/** One look: where the data lies in the weave, and how often a node was late, by node. */
interface Look {
  readonly wish: DataWish
  readonly signal: AbortSignal
  readonly order: Witness[]
  readonly starts: Map<Witness, number | Refusal>
  readonly lates: Map<Witness, number>
}

/** Nodes that prove, chunk by chunk, that they have the data of a transaction. Gateways are not among them: one may be ours. */
export class DataWitnesses {
  readonly #witnesses: readonly Witness[]

  /** Throws on a malformed address. `addresses`: base URLs of nodes. */
  constructor(
    addresses: readonly string[],
    options: ChainOptions,
    private readonly clock: Clock,
  ) {
    const nodes = distinct(addresses.map((address) => new Node(address, options, clock)))
    this.#witnesses = nodes.map((node) => {
      return { node, manner: new ChunkManner(), slowMs: Number.NEGATIVE_INFINITY }
    })
  }

  async close(): Promise<void> {
    await Promise.all(this.#witnesses.map(({ node }) => node.close()))
  }

  /**
   * Reads the wanted chunks one after the other, each from the first node that gives one which proves against the data root. What
   * one node had is requested of it first, unless it is slow. Where the data lies in the weave each node says for itself, as the
   * proof shows whether that was right. Ends early where nodes do not answer, or with the signal.
   */
  async look(wish: DataWish, signal: AbortSignal): Promise<DataSeen> {
    const look = { wish, signal, order: this.#ordered(wish.last), starts: new Map(), lates: new Map() }
    const [seen, missing, doubtful]: [number[], number[], number[]] = [[], [], []]
    let [refusal, silent]: [Refusal | undefined, number] = [undefined, 0]
    for (const offset of wish.offsets) {
      const outcome = await this.#shown(look, offset)
      silent = isRefusal(outcome) ? silent + 1 : 0
      if (isRefusal(outcome)) refusal = outcome
      else if (outcome === 'seen') seen.push(offset)
      else if (outcome === 'missing') missing.push(offset)
      else doubtful.push(offset)
      if (signal.aborted || silent >= silentMax) break
    }
    const doubts = doubtful.length === 0 ? {} : { doubtful }
    return { seen, missing, ...doubts, ...(refusal === undefined ? {} : { refusal }) }
  }

  #ordered(last: ReadonlySet<string>): Witness[] {
    const nowMs = this.clock.monotonic()
    const rank = ({ node, slowMs }: Witness): number =>
      (nowMs - slowMs < slowForMs ? 2 : 0) + (last.has(node.name) ? 1 : 0)
    return [...this.#witnesses].sort((one, other) => rank(one) - rank(other))
  }

  /** Whether a node shows the chunk at one position. A refusal: no node denied it, and none answered. */
  async #shown(look: Look, offset: number): Promise<'seen' | 'missing' | 'doubtful' | Refusal> {
    const { order, lates, signal } = look
    let isDenied = false
    let worst: Refusal = refuse('upstream', 'self', 'no node is left to ask')
    // One that was late too often is not queried any more.
    let haveAllAnswered = order.length === this.#witnesses.length
    for (const witness of [...order]) {
      const beganMs = this.clock.monotonic()
      const outcome = await this.#within(look, witness, offset)
      if (signal.aborted) return gaveUp
      const nowMs = this.clock.monotonic()
      const isSlow = nowMs - beganMs > slowFromMs
      if (isSlow) witness.slowMs = nowMs
      const isWell = !isRefusal(outcome)
      if (isSlow || isWell) order.splice(order.indexOf(witness), 1)
      if (isSlow && (lates.get(witness) ?? 0) < lateMax) order.push(witness)
      if (!isSlow && isWell) order.unshift(witness)
      if (isWell) return 'seen'
      if (outcome.refused === 'unknown' || outcome.refused === 'forged') isDenied = true
      else {
        worst = outcome
        haveAllAnswered = false
      }
    }
    if (!isDenied) return worst
    return haveAllAnswered ? 'missing' : 'doubtful'
  }

  /** The same of one node, which has its time for it. */
  async #within(
    { wish, signal, starts, lates }: Look,
    witness: Witness,
    offset: number,
  ): Promise<true | Refusal> {
    const late = new AbortController()
    const timer = this.clock.after(chunkMaxMs, () => late.abort())
    const both = AbortSignal.any([signal, late.signal])
    const start = starts.get(witness) ?? (await this.#start(witness.node, wish, both))
    if (!isRefusal(start) || start.refused === 'unknown') starts.set(witness, start)
    const outcome = isRefusal(start) ? start : await this.#chunk(witness, start, wish, offset, both)
    timer.cancel()
    if (!late.signal.aborted || !isRefusal(outcome)) return outcome
    lates.set(witness, (lates.get(witness) ?? 0) + 1)
    return refuse(
      'late',
      'upstream',
      `${witness.node.name} does not show a chunk within ${chunkMaxMs / 1000} s`,
    )
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
    { node, manner }: Witness,
    start: number,
    { dataRoot, sizeBytes }: DataWish,
    offset: number,
    signal: AbortSignal,
  ): Promise<true | Refusal> {
    const parts = await manner.ask(node, start + offset, this.clock.monotonic(), signal)
    if (isRefusal(parts)) return parts
    const proven = proveInSpan({ ...parts, node: node.name }, { dataRoot, sizeBytes, start }, start + offset)
    return isRefusal(proven) ? proven : true
  }
}
