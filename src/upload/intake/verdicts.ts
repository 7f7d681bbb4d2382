import { verifiedBy } from '../../../native/ed25519/ed25519.js'
import type { Refusal } from '../../format/refusal.js'
import type { ItemJudge, SignedMessage } from '../../ingest/item-judge.js'
import { verifyItemMessage } from '../../proof/item-verifier.js'

/** More in one task would let the last of them wait for the first. */
const batchMax = 32

interface Waiting {
  readonly signed: SignedMessage
  readonly resolve: (held: true | Refusal) => void
  readonly reject: (error: unknown) => void
}

/**
 * Ed25519 signatures, the kind of nearly all small items, are checked on this thread. The addon needs some 35 us for one, which
 * is what a message to the pool costs this thread.
 */
const atOnceTypes: ReadonlySet<number> = new Set(verifiedBy === 'addon' ? [2, 4] : [])

/** Has signatures checked by a pool of threads, several in one message where several wait. */
export class Verdicts {
  readonly #waiting: Waiting[] = []
  #underWay = 0

  constructor(
    private readonly judge: Pick<ItemJudge, 'judge'>,
    /** Tasks at once: one for each worker, and one that waits for it. */
    private readonly tasksMax: number,
  ) {}

  /** The same as `verdict` for one item that a client has sent and waits for: cheap signatures are checked on this thread. */
  async verdictNow(signed: SignedMessage): Promise<true | Refusal> {
    return atOnceTypes.has(signed.signatureType)
      ? verifyItemMessage(signed, signed.message)
      : this.verdict(signed)
  }

  /** True where the owner signed it, else why not. */
  verdict(signed: SignedMessage): Promise<true | Refusal> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ signed, resolve, reject })
      // What comes in the same turn goes into the same message.
      if (this.#waiting.length === 1) queueMicrotask(() => this.#send())
    })
  }

  #send(): void {
    if (this.#waiting.length === 0 || this.#underWay >= this.tasksMax) return
    const batch = this.#waiting.splice(0, batchMax)
    this.#underWay += 1
    void this.judge
      .judge(batch.map(({ signed }) => signed))
      .then(
        (held) => {
          for (const [at, { resolve }] of batch.entries()) resolve(held[at] as true | Refusal)
        },
        (error: unknown) => {
          for (const { reject } of batch) reject(error)
        },
      )
      .finally(() => {
        this.#underWay -= 1
        this.#send()
      })
  }
}
