import { type Clock, pause, type Timer } from '../../actor/clock.js'
import type { Address } from '../../actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import { isRefusal } from '../../format/refusal.js'

const attempts = 20
const againMs = 100

/** Sends a change to the keeper until it is committed; false where its mailbox stays full or it is gone. */
export async function insist(
  keeper: Address<CatalogRequest, CatalogReply>,
  message: CatalogRequest,
): Promise<boolean> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const reply = await keeper.ask(message)
    if (!isRefusal(reply)) return true
    if (reply.refused !== 'busy') return false
    await pause(againMs)
  }
  return false
}

/**
 * Every commit has a cost of its own, however few payloads are in it (a flush, and pages that all of them share): at most one in
 * this time.
 */
const betweenMs = 1000

/** Payloads of one commit: a larger one holds up everybody else's for too long. */
const payloadsMax = 1024

/**
 * Changes of the catalog by many payloads, one after the other: they go together, in one message and one commit. The first
 * change after a pause goes at once.
 */
export class CommitBatch {
  #requests: CatalogRequest[] = []
  #payloads = 0
  #outcome: Promise<boolean> | undefined
  #tell: (outcome: Promise<boolean>) => void = () => undefined
  #timer: Timer | undefined
  #nextMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly keeper: Address<CatalogRequest, CatalogReply>,
    private readonly clock: Clock,
    /** Runs before a batch is sent. */
    private readonly before: () => void = () => undefined,
  ) {}

  /** Adds the requests of one payload. Resolves when they are committed; false where the keeper refused them. */
  add(requests: readonly CatalogRequest[]): Promise<boolean> {
    this.#outcome ??= new Promise((resolve) => {
      this.#tell = resolve
    })
    const outcome = this.#outcome
    this.#requests.push(...requests)
    this.#payloads += 1
    const leftMs = this.#nextMs - this.clock.monotonic()
    if (leftMs <= 0 || this.#payloads >= payloadsMax) this.flush()
    else this.#timer ??= this.clock.after(leftMs, () => this.flush())
    return outcome
  }

  /** Sends what waits. Requests that are sent afterwards reach the keeper later. */
  flush(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#outcome === undefined) return
    this.#nextMs = this.clock.monotonic() + betweenMs
    const requests = this.#requests
    this.#requests = []
    this.#payloads = 0
    this.#outcome = undefined
    this.before()
    this.#tell(insist(this.keeper, { kind: 'all', requests }))
  }
}
