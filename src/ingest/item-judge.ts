import { pause } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { Pool } from '../actor/pool.js'
import type { ItemHeader } from '../format/item.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { verifyItemMessage } from '../proof/item-verifier.js'

/** An item's signature, and what it must be a signature of. */
export interface SignedMessage extends Pick<ItemHeader, 'id' | 'signatureType' | 'owner' | 'signature'> {
  readonly message: Uint8Array
}

/** Whether the owner of each item signed it, else why not; in their order. */
export function judgeItems(items: readonly SignedMessage[]): (true | Refusal)[] {
  return items.map((item) => verifyItemMessage(item, item.message))
}

/** Most batches that wait for a thread. Each bundle that is being read has one at a time. */
const waitingMax = 256
/** Between two tries where all those places are taken. */
const againMs = 50

/** Verifies signatures of items on a pool of threads (`workers/proof.ts`). */
export class ItemJudge {
  readonly #pool: Pool | undefined

  /** `threads` 0: on the calling thread. */
  constructor(threads: number, log: Log) {
    this.#pool = threads === 0 ? undefined : new Pool({ file: 'proof', threads, waitingMax }, log)
  }

  /** Resolves when all are judged. Rejects where the pool is closed, or failed twice. */
  async judge(items: readonly SignedMessage[]): Promise<(true | Refusal)[]> {
    if (this.#pool === undefined) return judgeItems(items)
    for (;;) {
      const judged = await this.#pool.run<(true | Refusal)[]>('items', { items })
      if (!isRefusal(judged)) return judged
      // Waiting here slows the reader of the bundle down to the rate at which items are verified.
      await pause(againMs)
    }
  }

  async close(): Promise<void> {
    await this.#pool?.close()
  }
}
