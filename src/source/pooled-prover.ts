import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import type { Log } from '../actor/log.js'
import type { ItemHeader } from '../format/item.js'
import type { BlobProver } from './prover.js'

/** Files waiting for a hand at most: beyond that the asker is told to come again by a rejection. */
const waitingMax = 4096

/** A prover whose work is done by a pool of threads (`workers/proof.ts`). */
export class PooledProver implements BlobProver {
  readonly #pool: Piscina

  constructor(
    threads: number,
    private readonly log: Log,
  ) {
    this.#pool = new Piscina({
      filename: fileURLToPath(new URL('../../workers/proof.js', import.meta.url)),
      minThreads: 1,
      maxThreads: threads,
      maxQueue: waitingMax,
      // Threads take one file after the other: two at once would only share its time.
      concurrentTasksPerWorker: 1,
    })
  }

  digest(path: string): Promise<Uint8Array | undefined> {
    return this.#run('digest', { path })
  }

  dataRoot(path: string, sizeBytes: number): Promise<Uint8Array | undefined> {
    return this.#run('dataRoot', { path, sizeBytes })
  }

  isPayload(path: string, header: ItemHeader): Promise<boolean | undefined> {
    return this.#run('isPayload', { path, header })
  }

  async close(): Promise<void> {
    await this.#pool.destroy()
  }

  /** The work is pure, so that a thread that died costs one more try. */
  async #run<Result>(name: string, task: object): Promise<Result> {
    try {
      return (await this.#pool.run(task, { name })) as Result
    } catch (error) {
      this.log.warn({ err: error, name }, 'a proof failed to run; once more')
      return (await this.#pool.run(task, { name })) as Result
    }
  }
}
