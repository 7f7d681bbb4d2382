import type { MessagePort } from 'node:worker_threads'
import { pause } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Part, RunningPart } from '../actor/supervise.js'
import { startThread, type Thread } from '../actor/thread.js'
import type { Lines } from './threads.js'

/** A thread that is ended while it spins is gone within so long, or it is inside of an addon that never comes back. */
const endMs = 10_000

/** One place among the threads: who has it, and the next one where the first was ended. */
class Member implements RunningPart {
  readonly lost: Promise<string>
  lose: (reason: string) => void = () => undefined
  #replacing: Promise<void> | undefined
  #isStopping = false

  constructor(
    public thread: Thread,
    /** Undefined where no other may take this one's place. */
    readonly startNext: (() => Promise<Thread>) | undefined,
    private readonly stopMs: number,
    private readonly log: Log,
  ) {
    this.lost = new Promise((resolve) => {
      this.lose = resolve
    })
    this.#watch(thread)
  }

  /** Resolves when the next thread is up, or the part is lost. Never rejects. */
  replace(): Promise<void> {
    this.#replacing ??= this.#replace().finally(() => {
      this.#replacing = undefined
    })
    return this.#replacing
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#replacing
    await this.thread.stop(this.stopMs)
  }

  #watch(thread: Thread): void {
    void thread.gone.then((code) => {
      if (this.#replacing === undefined) this.lose(`ended with code ${code}`)
    })
  }

  async #replace(): Promise<void> {
    const { startNext, thread } = this
    if (startNext === undefined || this.#isStopping) return
    try {
      await ended(thread)
      if (this.#isStopping) return
      this.thread = await startNext()
      this.#watch(this.thread)
      this.log.warn({ name: thread.name }, 'a thread was replaced')
    } catch (error) {
      this.lose(`could not be replaced: ${(error as Error).message}`)
    }
  }
}

/** Rejects where the thread does not end. */
async function ended(thread: Thread): Promise<void> {
  const patience = new AbortController()
  const late = pause(endMs, patience.signal).then(() => 'late')
  const outcome = await Promise.race([thread.end(), late])
  patience.abort()
  if (outcome === 'late') throw new Error(`it did not end within ${endMs} ms`)
}

/** The threads that are up, by name. */
export class RunningThreads {
  readonly #members = new Map<string, Member>()

  constructor(
    private readonly stopMs: number,
    private readonly log: Log,
  ) {}

  /** What a thread said when it came up. */
  said<Said>(name: string): Said {
    return this.#member(name).thread.said as Said
  }

  /** A new line to a thread's actor. `about` travels with it. */
  line(name: string, about?: object): MessagePort {
    return this.#member(name).thread.connect(about)
  }

  /** Lines from an edge thread to the actors that it asks. */
  lines(): Lines {
    const [catalogPort, sourcePort] = [this.line('catalog'), this.line('source')]
    const swarm = this.#members.has('swarm') ? { swarmPort: this.line('swarm') } : {}
    const [moderationPort, ingestPort] = [this.line('moderation'), this.line('ingest')]
    return { catalogPort, sourcePort, moderationPort, ingestPort, ...swarm }
  }

  /** Node's number of a thread; undefined where none of that name is up. */
  idOf(name: string): number | undefined {
    return this.#members.get(name)?.thread.id
  }

  /** A thread of `workers/<file>` as a part; what `data` returns may hold ports, which move to it. */
  part(name: string, file: string, data: () => object | Promise<object>): Part {
    return this.#part(name, file, data, false)
  }

  /** The same, of a thread that owns nothing that outlives it, and may be replaced by another. */
  replaceable(name: string, file: string, data: () => object | Promise<object>): Part {
    return this.#part(name, file, data, true)
  }

  /** True where another thread may take the place of this one. */
  mayReplace(name: string): boolean {
    return this.#members.get(name)?.startNext !== undefined
  }

  /**
   * Ends a thread in the middle of whatever it does and starts another in its place: with its sockets' port, its row of the
   * shared tables, and new lines to all actors. Where that fails the part is lost. Never rejects.
   */
  async replace(name: string): Promise<void> {
    await this.#members.get(name)?.replace()
  }

  /** The part is lost: the program ends, and a fresh one recovers from disk. */
  lose(name: string, reason: string): void {
    this.#members.get(name)?.lose(reason)
  }

  #part(name: string, file: string, data: () => object | Promise<object>, isReplaceable: boolean): Part {
    const start = async (): Promise<Thread> => startThread(name, file, await data())
    return {
      name,
      start: async () => {
        const member = new Member(await start(), isReplaceable ? start : undefined, this.stopMs, this.log)
        this.#members.set(name, member)
        return member
      },
    }
  }

  #member(name: string): Member {
    const member = this.#members.get(name)
    if (member === undefined) throw new Error(`no thread ${name} is up`)
    return member
  }
}
