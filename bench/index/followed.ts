import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { pause, systemClock } from '../../src/actor/clock.js'
import { ranks, stepBack } from '../../src/actor/priority.js'
import { processorTime } from '../../src/actor/processor-time.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import type { CatalogRequest } from '../../src/catalog/catalog-messages.js'
import { Generations } from '../../src/catalog/generations.js'
import { isRefusal } from '../../src/format/refusal.js'
import { quantile } from '../kit/numbers.js'
import { forkDepth } from './bulk-build.js'
import { madeElsewhere } from './chain-process.js'

/** What a process is started with that follows a made-up chain. */
export interface FollowedChain {
  readonly path: string
  readonly items: number
  readonly blockMs: number
  /** Blocks between two forks; 0: none. */
  readonly forkEvery: number
  readonly flushRows: number
  /** Blocks that come at once, in one transaction: as where much is behind. */
  readonly blocksAtOnce: number
}

/** Memory of a process, MiB: its own, its heap, and what objects of it have outside (with files that are mapped). */
export interface MemoryUse {
  readonly ownMiB: number
  readonly heapMiB: number
  readonly outsideMiB: number
}

/** Memory of this process. */
export function memoryUse(): MemoryUse {
  const { heapTotal, external } = process.memoryUsage()
  const own = /RssAnon:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'latin1'))?.[1]
  const miB = (bytes: number): number => Math.round(bytes / 2 ** 20)
  return { ownMiB: miB(Number(own) * 1024), heapMiB: miB(heapTotal), outsideMiB: miB(external) }
}

/** What the process says of the blocks since it last did. */
export interface FollowedBlocks {
  readonly blocks: number
  readonly forks: number
  /** From the moment a block was due or there, to its commit, milliseconds. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly mostMs: number
  /** Milliseconds that it is behind the chain: then blocks come as fast as it takes them. */
  readonly behindMs: number
  /** Rows that it took since it began, and processor time of the thread that writes, milliseconds. */
  readonly rows: number
  readonly ranMs: number
  readonly memory: MemoryUse
  readonly ids: readonly Uint8Array[]
  readonly bundles: readonly Uint8Array[]
}

const tellMs = 1000
/** Behind by more than this the chain waits, so that the rate falls and no queue grows. */
const behindMaxMs = 5000

/** A process with the keeper of an index, which follows a made-up chain: a block each `blockMs`, forks of each depth by turns. */
export class Follower {
  readonly #child: ChildProcess
  readonly ended: Promise<void>

  constructor(chain: FollowedChain, note: (blocks: FollowedBlocks) => void) {
    this.#child = fork(fileURLToPath(import.meta.url), ['--follow', JSON.stringify(chain)], {
      serialization: 'advanced',
      // As the program is started.
      execArgv: ['--single-threaded-gc', '--no-memory-reducer'],
    })
    this.#child.on('message', (blocks) => note(blocks as FollowedBlocks))
    this.ended = new Promise((resolve, reject) => {
      this.#child.once('error', reject)
      this.#child.once('exit', () => resolve())
    })
  }

  /** Stops it in the middle of what it does (SIGSTOP), until `goOn`. */
  halt(): void {
    this.#child.kill('SIGSTOP')
  }

  goOn(): void {
    this.#child.kill('SIGCONT')
  }

  /** Commits what waits, and ends. */
  async stop(): Promise<void> {
    if (this.#child.connected) this.#child.send('stop')
    await this.ended
  }
}

class Followed {
  readonly #keeper: CatalogKeeper
  readonly #waits: number[] = []
  /** The last blocks, for forks: the height and the messages of each. */
  readonly #last: { height: number; messages: readonly CatalogRequest[] }[] = []
  #blocks = 0
  #rows = 0
  #forks = 0
  isStopped = false

  constructor(private readonly chain: FollowedChain) {
    const flush = { rows: chain.flushRows, forkDepth }
    const options = { path: chain.path, touchEveryMs: 10_000, flush }
    this.#keeper = new CatalogKeeper(options, new Generations(), systemClock)
  }

  async run(tell: (blocks: FollowedBlocks) => void): Promise<void> {
    const { items, blockMs, forkEvery, blocksAtOnce } = this.chain
    const waiting: (readonly CatalogRequest[])[] = []
    let dueMs = systemClock.monotonic()
    let sentMs = dueMs
    let [ids, bundles]: [Uint8Array[], Uint8Array[]] = [[], []]
    for await (const made of madeElsewhere(items, { bundlesPerBlock: 1, isRepeated: true })) {
      ids.push(...made.ids)
      bundles.push(...made.bundles)
      waiting.push(...made.blocks)
      while (waiting.length >= blocksAtOnce && !this.isStopped) {
        const some = waiting.splice(0, blocksAtOnce)
        dueMs = Math.max(dueMs + blockMs * some.length, systemClock.monotonic() - behindMaxMs)
        await pause(Math.max(0, dueMs - systemClock.monotonic()))
        await this.#take(some)
        if (forkEvery > 0 && this.#blocks % forkEvery < some.length) await this.#fork()
      }
      if (this.isStopped) return
      const nowMs = systemClock.monotonic()
      if (nowMs - sentMs < tellMs) continue
      sentMs = nowMs
      tell({ ...this.#sinceLast(), behindMs: Math.max(0, nowMs - dueMs), ids, bundles })
      ids = []
      bundles = []
    }
  }

  async #take(blocks: readonly (readonly CatalogRequest[])[]): Promise<void> {
    const cameMs = systemClock.monotonic()
    await this.#handled(blocks.flat())
    this.#waits.push(systemClock.monotonic() - cameMs)
    this.#blocks += blocks.length
    for (const messages of blocks) {
      const [first] = messages
      if (first?.kind === 'index-block') this.#last.push({ height: first.block.height, messages })
    }
    this.#last.splice(0, this.#last.length - forkDepth)
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
      this.#rows += reply.index?.added ?? 0
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
      rows: this.#rows,
      ranMs: processorTime.monotonic(),
      memory: memoryUse(),
    }
  }

  close(): Promise<void> {
    return this.#keeper.close()
  }
}

async function follow(chain: FollowedChain): Promise<void> {
  stepBack(ranks.keeper)
  const followed = new Followed(chain)
  const stop = (): void => {
    followed.isStopped = true
  }
  process.once('message', stop)
  process.once('disconnect', stop)
  await followed.run((blocks) => process.send?.(blocks))
  await followed.close()
  process.disconnect()
}

if (process.argv[2] === '--follow') await follow(JSON.parse(process.argv[3] ?? '{}') as FollowedChain)
