import type { Log } from '../actor/log.js'
import { Pool } from '../actor/pool.js'
import type { Refusal } from '../format/refusal.js'
import { faultOfPosted } from '../proof/posted-transaction.js'

/** A transaction without data has some 3 KiB, and its tags. */
export const smallMaxBytes = 64 << 10

/**
 * Judges posted transactions. Reading one with all its data takes 0.2 to 0.3 s, in which an edge thread would answer nobody else.
 * So large ones are judged on a thread of a pool, which starts with the first of them.
 */
export class TransactionJudge {
  readonly #pool: Pool

  /** `waitingMax`: large ones that may wait. */
  constructor(waitingMax: number, log: Log) {
    this.#pool = new Pool({ file: 'proof', threads: 1, waitingMax }, log)
  }

  /** Same as `faultOfPosted`. A refusal (`busy`): too many large ones wait. */
  async faultOf(body: Uint8Array): Promise<string | undefined | Refusal> {
    if (body.length <= smallMaxBytes) return faultOfPosted(body)
    return this.#pool.run<string | undefined>('postedFault', { body })
  }

  close(): Promise<void> {
    return this.#pool.close()
  }
}
