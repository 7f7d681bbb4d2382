import type { MessagePort } from 'node:worker_threads'
import { endsWithin } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Part, RunningPart } from '../actor/supervise.js'
import { startThread, type Thread, terminationMs } from '../actor/thread.js'
import type { EdgePorts } from '../threads/edge-given.js'

/** A named thread of the program, and its replacement where it was terminated. */
class Member implements RunningPart {
  readonly lost: Promise<string>
  lose: (reason: string) => void = () => undefined
  #replacing: Promise<void> | undefined
  #isStopping = false

  constructor(
    public thread: Thread,
    /** It runs `workers/<file>`. */
    readonly file: string,
    /** Undefined where the thread must not be replaced. */
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
    void thread.thrown.then((error) =>
      this.log.fatal({ name: thread.name, err: error }, 'a thread threw an error that nobody caught'),
    )
    void thread.gone.then((code) => {
      if (this.#replacing === undefined) this.lose(`ended with code ${code}`)
    })
  }

  async #replace(): Promise<void> {
    const { startNext, thread } = this
    if (startNext === undefined || this.#isStopping) return
    try {
      if (!(await endsWithin(thread.end(), terminationMs)))
        throw new Error(`it did not end within ${terminationMs} ms`)
      if (this.#isStopping) return
      this.thread = await startNext()
      this.#watch(this.thread)
      this.log.warn({ name: thread.name }, 'a thread was replaced')
    } catch (error) {
      this.lose(`could not be replaced: ${(error as Error).message}`)
    }
  }
}

/** The threads that are up, by name. */
export class RunningThreads {
  readonly #members = new Map<string, Member>()
  /** Undefined: that of the settings of the start. */
  #logLevel: string | undefined
  /** The latest message, by file and by its subject. */
  readonly #sent = new Map<string, Map<string, unknown>>()

  constructor(
    private readonly stopMs: number,
    private readonly log: Log,
  ) {}

  /** The `ready` message of a thread. */
  reported<Reported>(name: string): Reported {
    return this.#member(name).thread.reported as Reported
  }

  /** A new message port to a thread's actor. `about` is sent along with it. */
  line(name: string, about?: object): MessagePort {
    return this.#member(name).thread.connect(about)
  }

  /**
   * Says something to all threads of `workers/<file>` that are up, and the last of what is about the same thing to those that
   * are started later.
   */
  tell(file: string, about: string, message: unknown): void {
    const sent = this.#sent.get(file) ?? new Map<string, unknown>()
    this.#sent.set(file, sent.set(about, message))
    for (const member of this.#members.values()) if (member.file === file) member.thread.tell(message)
  }

  /** All threads that are up log at this level from now on, and those that are started later. */
  setLogLevel(level: string): void {
    this.#logLevel = level
    for (const { thread } of this.#members.values()) thread.setLogLevel(level)
  }

  /** Message ports from an edge thread to the actors that every gateway has. */
  edgePorts(): Omit<EdgePorts, 'queries'> {
    return {
      catalog: this.line('catalog'),
      source: this.line('source'),
      moderation: this.line('moderation'),
      ingest: this.line('ingest'),
      ...(this.#members.has('swarm') ? { swarm: this.line('swarm') } : {}),
    }
  }

  /** Node's number of a thread; undefined where none of that name is up. */
  idOf(name: string): number | undefined {
    return this.#members.get(name)?.thread.id
  }

  /** A thread of `workers/<file>` as a part; what `data` returns may hold ports, which move to it. */
  part(name: string, file: string, data: () => object | Promise<object>): Part {
    return this.#part(name, file, data, false)
  }

  /** The same for a thread that owns no state outside itself, so that it can be replaced. */
  replaceable(name: string, file: string, data: () => object | Promise<object>): Part {
    return this.#part(name, file, data, true)
  }

  /** True where another thread may take the place of this one. */
  mayReplace(name: string): boolean {
    return this.#members.get(name)?.startNext !== undefined
  }

  /**
   * Terminates a thread at once and starts a replacement with the same port for sockets, the same rows of the shared
   * tables, and new message ports to all actors. Where that fails the part is lost. Never rejects.
   */
  async replace(name: string): Promise<void> {
    await this.#members.get(name)?.replace()
  }

  /** The part is lost: the program ends, and a fresh one recovers from disk. */
  lose(name: string, reason: string): void {
    this.#members.get(name)?.lose(reason)
  }

  #part(name: string, file: string, data: () => object | Promise<object>, isReplaceable: boolean): Part {
    const start = async (): Promise<Thread> => {
      const thread = await startThread(name, file, await data())
      if (this.#logLevel !== undefined) thread.setLogLevel(this.#logLevel)
      for (const message of this.#sent.get(file)?.values() ?? []) thread.tell(message)
      return thread
    }
    return {
      name,
      start: async () => {
        const member = new Member(
          await start(),
          file,
          isReplaceable ? start : undefined,
          this.stopMs,
          this.log,
        )
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
