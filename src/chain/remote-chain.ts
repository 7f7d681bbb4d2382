import { setMaxListeners } from 'node:events'
import { type Clock, pause } from '../actor/clock.js'
import { FairSlots, gaveUp, type Release } from '../actor/fair-slots.js'
import type { Requester } from '../actor/requester.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Transaction } from '../format/transaction.js'
import { AgreedPrices, areConfirmed } from './agreed-price.js'
import { agreedStatus, agreedTransaction, isMinedByMost } from './agreed-status.js'
import { AgreedTips, areHeightsClear, areTipsClear } from './agreed-tip.js'
import type {
  Block,
  BlockHash,
  ByteFlow,
  Chain,
  ChainTip,
  Chunk,
  KnownHeight,
  NodeInfo,
  Posted,
  TransactionOffset,
  TransactionOptions,
  TransactionStatus,
} from './chain.js'
import { ChunkHolders } from './chunk-holders.js'
import { ChunkNodes } from './chunk-nodes.js'
import { dataFlow } from './data-flow.js'
import { againMs, worse } from './gravity.js'
import { blockHeightOf, winstonOf } from './json-fields.js'
import { namedNodes } from './named-nodes.js'
import type { Node, NodeRequest } from './node.js'
import { readBlock, readInfo, readOffset, readPending } from './node-answers.js'
import { NodeOrder } from './node-order.js'
import {
  type NodeRead,
  readAgreeing,
  readTransactionStatus,
  readWith,
  transactionRead,
} from './node-reads.js'
import { heightRequest, statedTip } from './node-tip.js'
import { isPassing, isUnproven } from './passing.js'
import type { ChainOptions } from './remote-chain-options.js'
import { readChunkPosted, readTransactionPosted } from './verdict.js'
import { untilClear } from './witness-answers.js'

/** Largest answers, in bytes of JSON or text. A block of the first protocol lists its hashes. */
const limit = { word: 1_000, record: 16 << 20 }

/** The most that a header of format 2 takes: 4,096 tags (`parseTransaction`), each with the names of its JSON. */
const headerMaxBytes = 128 * 1024

const withData = refuse('too-large', 'upstream', 'nodes send this transaction with its data')

/** Large answers (`Node.ask`) that are read at once: each takes some times its size until it is parsed. */
const largeMax = 4

const turnless = refuse('busy', 'self', 'too many large answers are read')

/** Nodes that are queried for what must not depend on one of them. */
const witnessesMax = 3

/** Nodes refuse to give more data than this in one answer. */
const wholeDataMax = 12 << 20

/** A `Chain` over the HTTP interface of several nodes. */
export class RemoteChain implements Chain {
  readonly #nodes: readonly Node[]
  readonly #nodeOrder: NodeOrder<Node>
  readonly #chunkNodes: ChunkNodes
  /** With those that are queried for chunks alone. */
  readonly #allNodes: readonly Node[]
  readonly #turns: FairSlots
  readonly #largeTurns = FairSlots.unbounded(largeMax)
  readonly #prices: AgreedPrices
  readonly #tips: AgreedTips
  readonly #options: ChainOptions
  readonly #clock: Clock

  /**
   * `pace` is waited for before each request to a node, if it is given: whoever works in the background has a rate of its own.
   * `holders`: what is known of the nodes' chunks, and learned. Throws on an empty list of nodes or a malformed address.
   */
  constructor(
    options: ChainOptions,
    clock: Clock,
    private readonly pace?: () => Promise<void>,
    holders = new ChunkHolders(clock),
  ) {
    const { nodes, all, preferred, gateways } = namedNodes(options, clock)
    this.#nodes = nodes
    this.#allNodes = all
    const { place = 'behind', queriedMax = 0 } = options.chunkGateways ?? {}
    this.#chunkNodes = new ChunkNodes({
      nodes: place === 'alone' && gateways.length > 0 ? gateways : all,
      preferred: new Set(preferred),
      gateways: { nodes: new Set(gateways), comeFirst: place === 'before', queriedMax },
      options,
      clock,
      holders,
      hedges: pace === undefined,
      run: (node, attempt) => this.#try(node, attempt),
    })
    this.#nodeOrder = new NodeOrder(this.#nodes, options)
    this.#turns = new FairSlots({ max: options.callsMax, waitingMax: options.waitingMax })
    this.#prices = new AgreedPrices(clock)
    this.#tips = new AgreedTips(clock)
    this.#options = options
    this.#clock = clock
  }

  /** How many nodes are queried for what must not depend on one of them. */
  get #witnesses(): number {
    return Math.min(witnessesMax, this.#nodes.length)
  }

  /** Calls under way: 0 when everything was given back. */
  get underWay(): number {
    return this.#turns.taken
  }

  /** Aborts every call under way. */
  async close(): Promise<void> {
    await Promise.all(this.#allNodes.map((node) => node.close()))
  }

  info(requester?: Requester): Promise<NodeInfo | Refusal> {
    return this.#get('/info', limit.word * 100, readWith(readInfo), requester)
  }

  async height(requester?: Requester, before?: KnownHeight): Promise<number | Refusal> {
    const read = readWith(blockHeightOf)
    const stated = await this.#askWitnesses(heightRequest, read, requester, areHeightsClear)
    return isRefusal(stated) ? stated : this.#tips.height(stated, this.#witnesses, before)
  }

  blockByHeight(height: number, requester?: Requester): Promise<Block | Refusal> {
    const read = readAgreeing(readBlock, (block) => block.height === height)
    return this.#get(`/block/height/${height}`, limit.record, read, requester)
  }

  blockByHash(hash: BlockHash, requester?: Requester): Promise<Block | Refusal> {
    const read = readAgreeing(readBlock, (block) => block.hash === hash)
    return this.#get(`/block/hash/${hash}`, limit.record, read, requester)
  }

  currentBlock(requester?: Requester): Promise<Block | Refusal> {
    return this.#get('/block/current', limit.record, readWith(readBlock), requester)
  }

  transaction(
    id: Id,
    { signed = true, withoutData = false, ...requester }: TransactionOptions = {},
  ): Promise<Transaction | Refusal> {
    const bound = withoutData
      ? { maxBytes: headerMaxBytes, whenLarger: withData }
      : { maxBytes: limit.record }
    return this.#ask({ path: `/tx/${id}`, ...bound }, transactionRead(id, signed), requester)
  }

  async agreedTransaction(id: Id, requester?: Requester): Promise<Transaction | Refusal> {
    const question = { path: `/tx/${id}`, maxBytes: limit.record }
    const answers = await this.#askWitnesses(question, transactionRead(id, true), requester)
    return isRefusal(answers) ? answers : agreedTransaction(answers, this.#witnesses)
  }

  pending(requester?: Requester): Promise<readonly Id[] | Refusal> {
    return this.#get('/tx/pending', limit.record, readWith(readPending), requester)
  }

  pendingTransaction(id: Id, requester?: Requester): Promise<Transaction | Refusal> {
    return this.#get(`/unconfirmed_tx/${id}`, limit.record, transactionRead(id, true), requester)
  }

  transactionStatus(id: Id, requester?: Requester): Promise<TransactionStatus | Refusal> {
    return this.#get(`/tx/${id}/status`, limit.word, readTransactionStatus, requester)
  }

  async agreedStatus(id: Id, requester?: Requester): Promise<TransactionStatus | Refusal> {
    const question = { path: `/tx/${id}/status`, maxBytes: limit.word }
    const stated = await this.#askWitnesses(question, readTransactionStatus, requester, isMinedByMost)
    return isRefusal(stated) ? stated : agreedStatus(stated, this.#witnesses)
  }

  transactionOffset(id: Id, requester?: Requester): Promise<TransactionOffset | Refusal> {
    return this.#get(`/tx/${id}/offset`, limit.word, readWith(readOffset), requester)
  }

  chunk(
    offset: number,
    requester?: Requester,
    check?: (chunk: Chunk) => true | Refusal,
  ): Promise<Chunk | Refusal> {
    const signal = requester?.signal
    return this.#whileTurn(requester, () => this.#chunkNodes.ask({ offset, signal, check }))
  }

  async transactionData(id: Id, sizeBytes: number, requester?: Requester): Promise<ByteFlow | Refusal> {
    if (sizeBytes > wholeDataMax) return refuse('too-large', 'self', 'nodes give so much data in chunks only')
    const turn = await this.#turn(requester)
    if (isRefusal(turn)) return turn
    const signal = requester?.signal
    const question = { path: `/tx/${id}/data`, maxBytes: Math.ceil((sizeBytes * 4) / 3) }
    const flow = await this.#rounds((node) => dataFlow(node, question, sizeBytes, turn, signal), signal)
    if (isRefusal(flow)) turn()
    return flow
  }

  async tip(requester?: Requester): Promise<ChainTip | Refusal> {
    const stated = await this.#witness(
      (node) => statedTip(node.name, (question, read) => this.#read(node, question, read, requester)),
      requester,
      areTipsClear,
    )
    return isRefusal(stated) ? stated : this.#tips.tip(stated, this.#witnesses)
  }

  async price(sizeBytes: number, target?: string, requester?: Requester): Promise<bigint | Refusal> {
    const path =
      target === undefined ? `/price/${sizeBytes}` : `/price/${sizeBytes}/${encodeURIComponent(target)}`
    const question = { path, maxBytes: limit.word }
    const stated = await this.#askWitnesses(question, readWith(winstonOf), requester, areConfirmed)
    return isRefusal(stated) ? stated : this.#prices.decide(stated, sizeBytes)
  }

  balance(address: string, requester?: Requester): Promise<bigint | Refusal> {
    const path = `/wallet/${encodeURIComponent(address)}/balance`
    return this.#get(path, limit.word, readWith(winstonOf), requester)
  }

  /** One node could take it and lose it, so several get it. */
  async postTransaction(transaction: object, requester?: Requester): Promise<Posted | Refusal> {
    const posted = await this.#postToSeveral(transaction, requester)
    if (isRefusal(posted) && posted.refused === 'malformed')
      this.#tips.refused((transaction as { readonly last_tx?: unknown }).last_tx)
    return posted
  }

  async #postToSeveral(transaction: object, requester?: Requester): Promise<Posted | Refusal> {
    const question = { path: '/tx', post: JSON.stringify(transaction), maxBytes: limit.word * 100 }
    const isTaken = (come: readonly unknown[]): boolean => come.includes('accepted')
    const posted = await this.#askWitnesses(question, readTransactionPosted, requester, isTaken)
    if (isRefusal(posted)) return posted
    if (posted.includes('accepted')) return 'accepted'
    return posted.includes('known') ? 'known' : this.#ask(question, readTransactionPosted, requester)
  }

  postChunk(chunk: object, requester?: Requester): Promise<Posted | Refusal> {
    const question = { path: '/chunk', post: JSON.stringify(chunk), maxBytes: limit.word * 100 }
    return this.#ask(question, readChunkPosted, requester)
  }

  #turn({ client, signal }: Partial<Requester> = {}): Promise<Release | Refusal> {
    // One signal may be used by many calls (a read-ahead of chunks), so that many listeners are no leak.
    if (signal !== undefined) setMaxListeners(0, signal)
    return this.#turns.wait(client, signal)
  }

  #get<T>(
    path: string,
    maxBytes: number,
    read: NodeRead<T>,
    requester?: Partial<Requester>,
  ): Promise<T | Refusal> {
    return this.#ask({ path, maxBytes }, read, requester)
  }

  #ask<T>(question: NodeRequest, read: NodeRead<T>, requester?: Partial<Requester>): Promise<T | Refusal> {
    const attempt = (node: Node): Promise<T | Refusal> => this.#read(node, question, read, requester)
    return this.#whileTurn(requester, () => this.#rounds(attempt, requester?.signal))
  }

  /**
   * The answers of several nodes to one question, as `#witness`. `isClear`: who has not answered by then is not waited for, and
   * counts as a refusal.
   */
  #askWitnesses<T>(
    question: NodeRequest,
    read: NodeRead<T>,
    requester?: Requester,
    isClear?: (come: readonly (T | Refusal)[], queried: number) => boolean,
  ): Promise<(T | Refusal)[] | Refusal> {
    return this.#witness((node) => this.#read(node, question, read, requester), requester, isClear)
  }

  /**
   * What `ask` gives for each of several nodes, at least one; a refusal where there is no turn for it. A node that is away is
   * queried too, and left out where it fails: it still counts where most must state the same (`#witnesses`).
   */
  #witness<T>(
    ask: (node: Node) => Promise<T | Refusal>,
    requester?: Requester,
    isClear: (come: readonly (T | Refusal)[], queried: number) => boolean = () => false,
  ): Promise<(T | Refusal)[] | Refusal> {
    return this.#whileTurn(requester, async () => {
      const nowMs = this.#clock.monotonic()
      const nodes = this.#nodeOrder.ranked(nowMs).slice(0, witnessesMax)
      const away = nodes.map((node) => this.#nodeOrder.isAway(node, nowMs))
      const calls = nodes.map((node) => this.#try(node, ask))
      const come = await untilClear(calls, (some) => isClear(some, nodes.length))
      const answers = come.map((one) => one ?? notWaitedFor)
      const counted = answers.filter(
        (one, at) => away[at] !== true || !isRefusal(one) || one.refused === 'unknown',
      )
      return counted.length > 0 ? counted : answers
    })
  }

  /**
   * One node's answer. A large one needs a turn of its own, which lasts until it is parsed. Where none is free it is requested
   * again with the turn: a node counts an answer that is not read as a broken connection.
   */
  async #read<T>(
    node: Node,
    question: NodeRequest,
    read: NodeRead<T>,
    { client, signal }: Partial<Requester> = {},
  ): Promise<T | Refusal> {
    let turn: Release | undefined
    const large = (): Refusal | undefined => {
      const slot = this.#largeTurns.take(client)
      if (typeof slot === 'string') return turnless
      turn = slot
      return undefined
    }
    try {
      let answer = await node.ask(question, signal, large)
      if (answer === turnless) {
        const slot = await this.#largeTurns.wait(client, signal)
        if (isRefusal(slot)) return slot
        turn = slot
        answer = await node.ask(question, signal)
      }
      return isRefusal(answer) ? answer : read(answer, node)
    } finally {
      turn?.()
    }
  }

  async #whileTurn<T>(
    requester: Partial<Requester> | undefined,
    act: () => Promise<T | Refusal>,
  ): Promise<T | Refusal> {
    const turn = await this.#turn(requester)
    if (isRefusal(turn)) return turn
    try {
      return await act()
    } finally {
      turn()
    }
  }

  /**
   * Asks node after node until one answers. When all had a failure that may pass, it asks them once more after a
   * pause. A node that is avoided now is not queried after another one has answered "unknown".
   */
  async #rounds<T>(
    attempt: (node: Node) => Promise<T | Refusal>,
    signal: AbortSignal | undefined,
  ): Promise<T | Refusal> {
    let worst: Refusal | undefined
    let left = this.#options.attemptsMax
    for (let waitMs = againMs; left > 0; waitMs *= 2) {
      for (const node of this.#nodeOrder.ranked(this.#clock.monotonic()).slice(0, left)) {
        if (worst?.refused === 'unknown' && this.#nodeOrder.resting(node, this.#clock.monotonic()))
          return worst
        left -= 1
        const outcome = await this.#try(node, attempt)
        if (!isRefusal(outcome) || outcome === gaveUp) return outcome
        worst = worse(worst, outcome)
      }
      if (worst === undefined || !isPassing(worst) || left <= 0) break
      await pause(waitMs, signal)
      if (signal?.aborted === true) return gaveUp
    }
    return worst ?? refuse('upstream', 'self', 'no node to ask')
  }

  async #try<T>(node: Node, attempt: (node: Node) => Promise<T | Refusal>): Promise<T | Refusal> {
    await this.pace?.()
    node.underWay += 1
    const outcome = await attempt(node).finally(() => {
      node.underWay -= 1
    })
    if (!isRefusal(outcome) || outcome.refused === 'unknown') this.#nodeOrder.succeeded(node)
    else if (
      outcome !== gaveUp &&
      outcome !== withData &&
      outcome.refused !== 'malformed' &&
      !isUnproven(outcome)
    ) {
      this.#nodeOrder.failed(node, this.#clock.monotonic())
    }
    return outcome
  }
}

const notWaitedFor = refuse('late', 'upstream', 'the node was slower than others')
