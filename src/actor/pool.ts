import type { Piscina } from 'piscina'
import { type Refusal, refuse } from '../format/refusal.js'
import type { Log } from './log.js'

export interface PoolOptions {
  /** File of `workers/`, without its ending; each task is one of its exported functions. */
  readonly file: string
  readonly threads: number
  /** Tasks that wait for a hand at most; one more is refused. */
  readonly waitingMax: number
}

/**
 * One actor with many hands: identical threads without a state of their own behind one mailbox. The first is started by the first
 * task, more of them as work piles up.
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
   * Runs the function `name` of the file on some thread. Refusal: `busy`, where every hand and every place to wait is taken: the
   * caller waits, and asks again later. The work must be pure: where it fails or its thread dies it is asked for once
   * more. Rejects with the second failure. Errors lose their codes between threads: expected failures are results.
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
    const { file, threads } = this.options
    return new Piscina({
      filename: new URL(`../../workers/${file}.js`, import.meta.url).href,
      minThreads: 1,
      maxThreads: threads,
      // No bound of its own (`run` has it). One task after the other: two at once on a thread would only share its time.
      concurrentTasksPerWorker: 1,
    })
  }
}
