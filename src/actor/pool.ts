import type { Piscina } from 'piscina'
import type { Log } from './log.js'

export interface PoolOptions {
  /** File of `workers/`, without its ending; each task is one of its exported functions. */
  readonly file: string
  readonly threads: number
  /** Tasks that wait for a hand at most; one more is rejected. */
  readonly waitingMax: number
}

/**
 * One actor with many hands: identical threads without a state of their own behind one mailbox. The first is started by the first
 * task, more of them as work piles up.
 */
export class Pool {
  #pool: Promise<Piscina> | undefined
  #closed = false

  constructor(
    private readonly options: PoolOptions,
    private readonly log: Log,
  ) {}

  /**
   * Runs the function `name` of the file on some thread. The work must be pure: where it fails or its thread dies it is asked for
   * once more. Rejects with the second failure. Errors lose their codes between threads.
   */
  async run<Result>(name: string, task: object): Promise<Result> {
    if (this.#closed) throw new Error('the pool is closed')
    this.#pool ??= this.#open()
    const pool = await this.#pool
    try {
      return (await pool.run(task, { name })) as Result
    } catch (error) {
      this.log.warn({ err: error, name }, 'a task of the pool failed; once more')
      return (await pool.run(task, { name })) as Result
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await (await this.#pool)?.destroy()
  }

  async #open(): Promise<Piscina> {
    const { Piscina } = await import('piscina')
    const { file, threads, waitingMax } = this.options
    return new Piscina({
      filename: new URL(`../../workers/${file}.js`, import.meta.url).href,
      minThreads: 1,
      maxThreads: threads,
      maxQueue: waitingMax,
      // One task after the other: two at once on a thread would only share its time.
      concurrentTasksPerWorker: 1,
    })
  }
}
