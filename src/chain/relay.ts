import type { Clock } from '../actor/clock.js'
import { FairSlots, gaveUp } from '../actor/fair-slots.js'
import { bufferOf } from '../format/buffer-of.js'
import { Gathered } from '../format/gathered.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { Node, type NodeRequest, type OpenAnswer } from './node.js'
import { NodeOrder } from './node-order.js'
import type { ChainOptions } from './remote-chain-options.js'

/** A node's answer as it comes, to be read to its end or dropped. */
export interface RelayedAnswer extends OpenAnswer {
  readonly node: string
}

/** A proxy for requests of clients to nodes; bodies are not inspected. */
export class Relay {
  readonly #nodes: readonly Node[]
  readonly #nodeOrder: NodeOrder<Node>
  readonly #turns: FairSlots

  constructor(
    private readonly options: ChainOptions,
    private readonly clock: Clock,
  ) {
    this.#nodes = options.nodes.map((address) => new Node(address, options, clock))
    this.#nodeOrder = new NodeOrder(this.#nodes, options)
    this.#turns = new FairSlots({ max: options.callsMax, waitingMax: options.waitingMax })
  }

  /** Aborts every call under way. */
  async close(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.close()))
  }

  /** Calls under way: 0 when everything was given back. */
  get underWay(): number {
    return this.#turns.taken
  }

  /**
   * Tries node after node, at most `attemptsMax`, until one answers with a status below 500 other than 429. With `others` a 404
   * counts only when no other node has a better answer. When all fail, the last error answer is returned as it is. If none
   * answered, it is a refusal: `upstream`, `late`, `too-large`, `busy`. The caller must read the answer to its end or drop it;
   * until then it holds a slot. `client`: whose turn it is, where many wait.
   */
  async ask(
    question: NodeRequest,
    others: boolean,
    client: string,
    signal?: AbortSignal,
  ): Promise<RelayedAnswer | Refusal> {
    const turn = await this.#turns.wait(client, signal)
    if (isRefusal(turn)) return turn
    const answer = await this.#firstGood(question, others, signal)
    if (isRefusal(answer)) {
      turn()
      return answer
    }
    return {
      ...answer,
      next: async () => {
        const piece = await answer.next()
        if (piece === undefined || isRefusal(piece)) turn()
        return piece
      },
      drop: () => {
        answer.drop()
        turn()
      },
    }
  }

  /**
   * Hands what one node took on to at most `count` others, so that it does not depend on that node alone. Resolves
   * with how many took it too; their answers are not used. Nodes that are avoided now are left out, and so are calls
   * for which no slot is free.
   */
  async spread(
    question: NodeRequest,
    { besides, client, count }: { readonly besides: string; readonly client: string; readonly count: number },
    signal?: AbortSignal,
  ): Promise<number> {
    const now = this.clock.monotonic()
    const others = this.#nodeOrder
      .ranked(now)
      .filter((node) => node.name !== besides && !this.#nodeOrder.resting(node, now))
      .slice(0, count)
    const taken = await Promise.all(others.map((node) => this.#tell(node, question, client, signal)))
    return taken.filter((one) => one).length
  }

  async #tell(node: Node, question: NodeRequest, client: string, signal?: AbortSignal): Promise<boolean> {
    const turn = await this.#turns.wait(client, signal)
    if (isRefusal(turn)) return false
    node.underWay += 1
    const answer = await node.open(question, signal)
    node.underWay -= 1
    turn()
    if (isRefusal(answer)) return false
    answer.drop()
    return answer.status < 300
  }

  async #firstGood(
    question: NodeRequest,
    others: boolean,
    signal?: AbortSignal,
  ): Promise<RelayedAnswer | Refusal> {
    let worse: RelayedAnswer | undefined
    let refusal: Refusal = refuse('upstream', 'self', 'no node to ask')
    const order = this.#nodeOrder.ranked(this.clock.monotonic()).slice(0, this.options.attemptsMax)
    for (const node of order) {
      node.underWay += 1
      const answer = await node.open(question, signal)
      node.underWay -= 1
      if (isRefusal(answer)) {
        refusal = answer
        if (answer === gaveUp) break
        this.#nodeOrder.failed(node, this.clock.monotonic())
        continue
      }
      const trouble = answer.status >= 500 || answer.status === 429
      if (trouble) this.#nodeOrder.failed(node, this.clock.monotonic())
      else this.#nodeOrder.succeeded(node)
      const relayed = { ...answer, node: node.name }
      if (!trouble && !(others && answer.status === 404)) {
        worse?.drop()
        return relayed
      }
      // A 404 says more than the error of a failing node.
      if (worse === undefined || (worse.status >= 429 && !trouble)) {
        worse?.drop()
        worse = relayed
      } else relayed.drop()
    }
    return worse ?? refusal
  }
}

/** The body of an answer that is small, or a refusal. Bodies of errors end where `maxBytes` ends them. */
export async function wholeBody(answer: RelayedAnswer): Promise<Buffer | Refusal> {
  const gathered = new Gathered(answer.sizeBytes)
  for (;;) {
    const piece = await answer.next()
    if (piece === undefined) return bufferOf(gathered.bytes())
    if (isRefusal(piece)) return piece
    gathered.add(piece)
  }
}
