import { type Clock, systemClock, type Timer } from '../actor/clock.js'
import { type Log, silentLog } from '../actor/log.js'
import { isDiskError } from '../store/disk-error.js'
import type { ForkOptions, GrowingLayer, NodeRecord, PostReply } from './base-layer.js'
import { ChainStore } from './chain-store.js'
import type { DevnetOptions } from './devnet-options.js'
import type { Listening } from './listening.js'
import { LiveLayer } from './live.js'
import { ReplayLayer } from './replay.js'
import { serveChain } from './server.js'

/** A chain at rest makes one block in so many intervals, where that is no longer than `restMs`. */
const restIntervals = 15
const restMs = 30_000

/**
 * Mines a block in each interval. A chain at rest gets fewer: each block costs all that follow the chain a fetch and a commit.
 * Where the disk takes none, the chain stands still until it does.
 */
class Miner {
  #isRefused = false
  #passed = 0
  readonly #restIntervals: number

  constructor(
    private readonly layer: GrowingLayer,
    private readonly logger: Pick<Log, 'error' | 'info'>,
    blockMs: number,
  ) {
    this.#restIntervals = Math.min(restIntervals, Math.max(1, Math.floor(restMs / blockMs)))
  }

  /** An interval is over. */
  turn(): void {
    this.#passed += 1
    if (this.#passed < this.#restIntervals && this.layer.isAtRest()) return
    this.#passed = 0
    this.#mine()
  }

  #mine(): void {
    try {
      this.layer.mine(1)
      if (this.#isRefused) this.logger.info({}, 'the disk of the node takes blocks again')
      this.#isRefused = false
    } catch (error) {
      if (!isDiskError(error)) throw error
      if (!this.#isRefused)
        this.logger.error({ err: error }, 'the disk of the node is full or fails: no blocks are mined')
      this.#isRefused = true
    }
  }
}

/** An embedded base-layer node: its own chain, or a folder of real records, behind the HTTP interface of nodes. */
export class Devnet {
  readonly #listening: Listening
  readonly #store: ChainStore | undefined
  readonly #live: GrowingLayer | undefined
  readonly #timer: Timer | undefined
  #stopping: Promise<void> | undefined

  private constructor(listening: Listening, store?: ChainStore, live?: GrowingLayer, timer?: Timer) {
    this.#listening = listening
    this.#store = store
    this.#live = live
    this.#timer = timer
  }

  /** `onChanged` is called after each change of the chain. Rejects where the folder or the port cannot be had. */
  static async start(
    options: DevnetOptions,
    clock: Clock = systemClock,
    logger: Pick<Log, 'error' | 'info'> = silentLog,
    onChanged: () => void = () => undefined,
  ): Promise<Devnet> {
    if (options.replayPath !== undefined) {
      return new Devnet(await serveChain(new ReplayLayer(options.replayPath), options.host, options.port))
    }
    const store = new ChainStore(options.dataPath)
    const live = new LiveLayer(store, options, clock, onChanged)
    const listening = await serveChain(live, options.host, options.port)
    const miner = new Miner(live, logger, options.blockMs)
    const timer = options.blockMs > 0 ? clock.every(options.blockMs, () => miner.turn()) : undefined
    return new Devnet(listening, store, live, timer)
  }

  /** `http://host:port`. */
  get url(): string {
    return this.#listening.url
  }

  /** Same as `POST /tx`: takes node JSON, returns status and text. */
  submit(transaction: unknown): PostReply {
    return this.#growing().submit(transaction)
  }

  /** Same as `POST /chunk`. */
  submitChunk(chunk: unknown): PostReply {
    return this.#growing().submitChunk(chunk)
  }

  /** Adds new winston to an address; returns its balance. */
  mint(address: string, winston: bigint): bigint {
    return this.#growing().mint(address, winston)
  }

  /** Mines blocks now; returns the new tip as node JSON. */
  mine(blocks = 1): NodeRecord {
    return this.#growing().mine(blocks)
  }

  /** Replaces the last `depth` blocks by a longer branch; returns the new tip as node JSON. */
  fork(depth: number, options?: ForkOptions): NodeRecord {
    return this.#growing().fork(depth, options)
  }

  /** Answers the requests under way, then closes the chain. A second call waits for the first. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    this.#timer?.cancel()
    await this.#listening.close()
    await this.#store?.close()
  }

  #growing(): GrowingLayer {
    if (this.#live === undefined) throw new Error('a replayed chain does not grow')
    return this.#live
  }
}
