import type { Piscina } from 'piscina'
import { type Refusal, refuse } from '../format/refusal.js'
import type { Log } from './log.js'

export interface PoolOptions {
  /** File of `workers/`, without its ending; each task is one of its exported functions. */
  readonly file: string
  readonly threads: number
  /** Tasks that may wait for a thread; one more is refused. */
  readonly waitingMax: number
}

/**
 * Threads that have no task are kept for so long: starting one takes about 50 ms of processor time, in which tasks wait for it.
 * Ended at once, they were started anew each time a second task came while the first one ran.
 */
const idleMs = 60_000

/**
 * A pool of identical threads without a state of their own, behind one mailbox. The first thread starts with the
 * first task, others when tasks wait.
 */
export class Pool {
  #pool: Promise<Piscina> | undefined
  #closed = false
  #held = 0

  constructor(
    private readonly options: PoolOptions,
    private readonly log: Log,
  ) {}

  /**
   * Runs the function `name` of the file on some thread. Refusal: `busy`, where all threads and all places in the
   * queue are taken: the caller tries again later. A task must have no side effects, because it is run once more
   * where it fails or its thread dies. Rejects with the second failure. Errors lose their codes between threads, so
   * expected failures must be returned as results.
   */
  async run<Result>(name: string, task: object): Promise<Result | Refusal> {
    if (this.#closed) throw new Error('the pool is closed')
    const { threads, waitingMax } = this.options
    if (this.#held >= threads + waitingMax) return refuse('busy', 'self', 'the pool of threads is busy')
    this.#held += 1
    try {
      this.#pool ??= this.#open()
      return await this.#twice<Result>(await this.#pool, name, task)
    } finally {
      this.#held -= 1
    }
  }

  async #twice<Result>(pool: Piscina, name: string, task: object): Promise<Result> {
    try {
      return (await pool.run(task, { name })) as Result
    } catch (error) {
      if (this.#closed) throw error
      this.log.warn({ err: error, name }, 'a task in the pool of threads failed: it is run once more')
      return (await pool.run(task, { name })) as Result
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await (await this.#pool)?.destroy()
  }

  async #open(): Promise<Piscina> {
    const { Piscina } = await import('piscina')
    const { file, threads } = this.options
    return new Piscina({
      filename: new URL(`../../workers/${file}.js`, import.meta.url).href,
      minThreads: 1,
      maxThreads: threads,
      idleTimeout: idleMs,
      // No bound here, because `run` has one. One task at a time on each thread: two would only share its time.
      concurrentTasksPerWorker: 1,
      // Otherwise a task that finds no thread free goes to the end of the queue, again and again.
      stricterFIFO: true,
    })
  }
}
