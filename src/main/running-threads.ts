import type { MessagePort } from 'node:worker_threads'
import { Backoff } from '../actor/backoff.js'
import { endsWithin, pause, systemClock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Part, RunningPart } from '../actor/supervise.js'
import { startThread, type Thread, type ThreadLine, terminationMs } from '../actor/thread.js'
import type { EdgePorts } from '../threads/edge-given.js'

/** A thread that ended by itself is replaced at once; one that ends again within `steadyMs` after a pause that grows. */
const again = { failuresMax: 2, restMs: 1000, restMaxMs: 60_000 }
const steadyMs = 600_000
/** Starts of a replacement after which the part is lost: it may have met a request that ends it before it was up. */
const startsMax = 5

/** A named thread of the program, and its replacement where it ended or was terminated. */
class Member implements RunningPart {
  readonly lost: Promise<string>
  lose: (reason: string) => void = () => undefined
  #replacing: Promise<void> | undefined
  readonly #stopping = new AbortController()
  readonly #backoff = new Backoff(again, systemClock)
  #startedMs = systemClock.monotonic()

  constructor(
    public thread: Thread,
    /** It runs `workers/<file>`. */
    readonly file: string,
    /** Undefined where the thread must not be replaced. */
    readonly startNext: (() => Promise<Thread>) | undefined,
    private readonly onReplaced: (() => void) | undefined,
    private readonly given: MemberGiven,
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
    this.#stopping.abort()
    await this.#replacing
    await this.thread.stop(this.given.stopMs)
  }

  #watch(thread: Thread): void {
    void thread.thrown.then((error) =>
      this.given.log.fatal({ name: thread.name, err: error }, 'a thread threw an error that nobody caught'),
    )
    void thread.gone.then((code) => this.#ended(thread, code))
  }

  async #ended(thread: Thread, code: number): Promise<void> {
    await this.#replacing
    // It was terminated, and another one has its place.
    if (thread !== this.thread || this.#stopping.signal.aborted) return
    if (this.startNext === undefined) {
      this.lose(`ended with code ${code}`)
      return
    }
    if (systemClock.monotonic() - this.#startedMs > steadyMs) this.#backoff.well()
    this.#backoff.failed()
    const { leftMs } = this.#backoff
    this.given.log.error({ name: thread.name, code, pauseMs: leftMs }, 'a thread ended, and is replaced')
    this.given.onEnded()
    await pause(leftMs, this.#stopping.signal)
    await this.replace()
  }

  async #replace(): Promise<void> {
    const { startNext, thread } = this
    const { signal } = this.#stopping
    if (startNext === undefined || signal.aborted) return
    if (!(await endsWithin(thread.end(), terminationMs))) {
      this.lose(`could not be replaced: it did not end within ${terminationMs} ms`)
      return
    }
    const next = await this.#next(startNext)
    if (next === undefined) return
    this.thread = next
    this.#startedMs = systemClock.monotonic()
    this.#watch(next)
    this.onReplaced?.()
    this.given.log.warn({ name: thread.name }, 'a thread was replaced')
  }

  /** The next thread once it is up. Undefined: the program stops, or the part is lost, because none came up. */
  async #next(start: () => Promise<Thread>): Promise<Thread | undefined> {
    const { signal } = this.#stopping
    for (let tries = 1; !signal.aborted; tries += 1) {
      try {
        return await start()
      } catch (error) {
        if (tries === startsMax) {
          this.lose(`could not be replaced: ${(error as Error).message}`)
          return undefined
        }
        this.#backoff.failed()
        const { leftMs } = this.#backoff
        this.given.log.error(
          { name: this.thread.name, err: error, pauseMs: leftMs },
          'a replacement did not start',
        )
        await pause(leftMs, signal)
      }
    }
    return undefined
  }
}

/** What all threads have in common. */
interface MemberGiven {
  /** A thread that is still up after so long is terminated. */
  readonly stopMs: number
  readonly log: Log
  /** Called for each thread that ended by itself and is replaced. */
  readonly onEnded: () => void
}

/** The threads that are up, by name. */
export class RunningThreads {
  readonly #members = new Map<string, Member>()
  /** Undefined: that of the settings of the start. */
  #logLevel: string | undefined
  /** The latest message, by file and by its subject. */
  readonly #sent = new Map<string, Map<string, unknown>>()
  /** What makes the latest line, by file and by the name of the thread at its other end. */
  readonly #lines = new Map<string, Map<string, () => ThreadLine>>()

  constructor(private readonly given: MemberGiven) {}

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

  /**
   * Gives all threads of `workers/<file>` that are up a line to the thread `to`, which took the place of another one, and those
   * that are started later: theirs may have been made before.
   */
  hand(file: string, to: string, line: () => ThreadLine): void {
    const lines = this.#lines.get(file) ?? new Map<string, () => ThreadLine>()
    this.#lines.set(file, lines.set(to, line))
    for (const member of this.#members.values()) if (member.file === file) member.thread.hand(line())
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
      ...(this.#members.has('cluster') ? { cluster: this.line('cluster') } : {}),
      ...(this.#members.has('swarm') ? { swarm: this.line('swarm') } : {}),
    }
  }

  /** Node's number of a thread; undefined where none of that name is up. */
  idOf(name: string): number | undefined {
    return this.#members.get(name)?.thread.id
  }

  /** A thread of `workers/<file>` as a part; what `data` returns may hold ports, which move to it. */
  part(name: string, file: string, data: () => object | Promise<object>): Part {
    return this.#part(name, file, data)
  }

  /**
   * The same for a thread that owns no state outside itself, so that it can be replaced. `onReplaced`: another one is up in its
   * place, and whoever had a line to it needs a new one.
   */
  replaceable(
    name: string,
    file: string,
    data: () => object | Promise<object>,
    onReplaced: () => void = () => undefined,
  ): Part {
    return this.#part(name, file, data, onReplaced)
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

  #part(name: string, file: string, data: () => object | Promise<object>, onReplaced?: () => void): Part {
    const start = async (): Promise<Thread> => {
      const thread = await startThread(name, file, await data())
      if (this.#logLevel !== undefined) thread.setLogLevel(this.#logLevel)
      for (const message of this.#sent.get(file)?.values() ?? []) thread.tell(message)
      for (const line of this.#lines.get(file)?.values() ?? []) thread.hand(line())
      return thread
    }
    return {
      name,
      start: async () => {
        const member = new Member(
          await start(),
          file,
          onReplaced === undefined ? undefined : start,
          onReplaced,
          this.given,
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
