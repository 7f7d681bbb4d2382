import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { pause, systemClock } from '../../src/actor/clock.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import type { CatalogRequest } from '../../src/catalog/catalog-messages.js'
import { Generations } from '../../src/catalog/generations.js'
import { isRefusal } from '../../src/format/refusal.js'
import { quantile } from '../kit/numbers.js'
import { forkDepth } from './bulk-build.js'
import { madeElsewhere } from './chain-process.js'

/** What a thread is started with that follows a made-up chain. */
export interface FollowedChain {
  readonly path: string
  readonly generations: SharedArrayBuffer
  readonly items: number
  readonly blockMs: number
  /** Blocks between two forks; 0: none. */
  readonly forkEvery: number
  readonly flushRows: number
}

/** What the thread says of the blocks since it last did. */
export interface FollowedBlocks {
  readonly blocks: number
  readonly forks: number
  /** From the moment a block was due or there, to its commit, milliseconds. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly mostMs: number
  /** Milliseconds that it is behind the chain: then blocks come as fast as it takes them. */
  readonly behindMs: number
  readonly ids: readonly Uint8Array[]
  readonly bundles: readonly Uint8Array[]
}

const tellMs = 1000
/** Behind by more than this the chain waits, so that the rate falls and no queue grows. */
const behindMaxMs = 5000

/** A thread with the keeper of an index, which follows a made-up chain: a block each `blockMs`, forks of each depth by turns. */
export class Follower {
  readonly #worker: Worker
  readonly ended: Promise<void>

  constructor(chain: FollowedChain, note: (blocks: FollowedBlocks) => void) {
    this.#worker = new Worker(fileURLToPath(import.meta.url), { workerData: { chain } })
    this.#worker.on('message', note)
    this.ended = new Promise((resolve, reject) => {
      this.#worker.once('error', reject)
      this.#worker.once('exit', () => resolve())
    })
  }

  /** Commits what waits, and ends. */
  async stop(): Promise<void> {
    this.#worker.postMessage('stop')
    await this.ended
  }
}

class Followed {
  readonly #keeper: CatalogKeeper
  readonly #waits: number[] = []
  /** The last blocks, for forks: the height and the messages of each. */
  readonly #last: { height: number; messages: readonly CatalogRequest[] }[] = []
  #blocks = 0
  #forks = 0
  isStopped = false

  constructor(private readonly chain: FollowedChain) {
    const flush = { rows: chain.flushRows, forkDepth }
    const options = { path: chain.path, touchEveryMs: 10_000, flush }
    this.#keeper = new CatalogKeeper(options, new Generations(chain.generations), systemClock)
  }

  async run(tell: (blocks: FollowedBlocks) => void): Promise<void> {
    const { items, blockMs, forkEvery } = this.chain
    let dueMs = systemClock.monotonic()
    let sentMs = dueMs
    let [ids, bundles]: [Uint8Array[], Uint8Array[]] = [[], []]
    for await (const made of madeElsewhere(items, { bundlesPerBlock: 1, isRepeated: true })) {
      ids.push(...made.ids)
      bundles.push(...made.bundles)
      for (const messages of made.blocks) {
        if (this.isStopped) return
        dueMs = Math.max(dueMs + blockMs, systemClock.monotonic() - behindMaxMs)
        await pause(Math.max(0, dueMs - systemClock.monotonic()))
        await this.#take(messages)
        if (forkEvery > 0 && this.#blocks % forkEvery === 0) await this.#fork()
      }
      const nowMs = systemClock.monotonic()
      if (nowMs - sentMs < tellMs) continue
      sentMs = nowMs
      tell({ ...this.#sinceLast(), behindMs: Math.max(0, nowMs - dueMs), ids, bundles })
      ids = []
      bundles = []
    }
  }

  async #take(messages: readonly CatalogRequest[]): Promise<void> {
    const cameMs = systemClock.monotonic()
    await this.#handled(messages)
    this.#waits.push(systemClock.monotonic() - cameMs)
    this.#blocks += 1
    const [first] = messages
    if (first?.kind === 'index-block') this.#last.push({ height: first.block.height, messages })
    if (this.#last.length > forkDepth) this.#last.shift()
  }

  /** Takes the last blocks back and brings them again: one, two and so on up to the depth of forks. */
  async #fork(): Promise<void> {
    const again = this.#last.slice(-1 - (this.#forks % forkDepth))
    const [lowest] = again
    if (lowest === undefined) return
    this.#forks += 1
    await this.#handled([{ kind: 'unwind', fromHeight: lowest.height }])
    for (const { messages } of again) await this.#handled(messages)
  }

  async #handled(messages: readonly CatalogRequest[]): Promise<void> {
    for (const reply of await Promise.all(messages.map((message) => this.#keeper.handle(message)))) {
      if (isRefusal(reply)) throw new Error(`the keeper refuses: ${reply.message}`)
    }
  }

  #sinceLast() {
    const waits = this.#waits.splice(0)
    return {
      blocks: this.#blocks,
      forks: this.#forks,
      p50Ms: quantile(waits, 0.5),
      p99Ms: quantile(waits, 0.99),
      mostMs: Math.max(0, ...waits),
    }
  }

  close(): Promise<void> {
    return this.#keeper.close()
  }
}

async function follow(chain: FollowedChain): Promise<void> {
  const followed = new Followed(chain)
  parentPort?.once('message', () => {
    followed.isStopped = true
  })
  await followed.run((blocks) => parentPort?.postMessage(blocks))
  await followed.close()
}

if (!isMainThread && (workerData as { chain?: FollowedChain } | null)?.chain !== undefined)
  await follow((workerData as { chain: FollowedChain }).chain)
