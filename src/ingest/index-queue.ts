import type { Address } from '../actor/address.js'
import { pause } from '../actor/clock.js'
import type { IndexOutcome } from '../catalog/index-protocol.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { CatalogReply, CatalogRequest } from '../catalog/protocol.js'
import { isRefusal } from '../format/refusal.js'

const againMs = 20

/**
 * The one way from this thread to the keeper's index: one message after the other, each composed from what the index
 * holds when all before it are committed. So no message about a block can arrive after the block was unwound.
 */
export class IndexQueue {
  #line: Promise<unknown> = Promise.resolve()

  constructor(
    private readonly keeper: Address<CatalogRequest, CatalogReply>,
    readonly index: ChainIndex,
    private readonly stopped: AbortSignal,
    /** False: messages do not wait for each other. Only where no block is ever unwound meanwhile. */
    private readonly inLine = true,
  ) {}

  /**
   * Writes what `compose` returns, in one transaction; nothing where that is undefined. Resolves after the commit. Rejects when
   * the thread stops, or the keeper is gone.
   */
  write(compose: () => CatalogRequest | undefined): Promise<IndexOutcome | undefined> {
    if (!this.inLine) return this.#write(compose)
    const turn = this.#line.then(() => this.#write(compose))
    this.#line = turn.catch(() => 'told to whoever asked')
    return turn
  }

  async #write(compose: () => CatalogRequest | undefined): Promise<IndexOutcome | undefined> {
    this.index.refresh()
    const request = compose()
    if (request === undefined) return undefined
    for (;;) {
      this.stopped.throwIfAborted()
      const reply = await this.keeper.ask(request)
      if (!isRefusal(reply)) return reply.index
      if (reply.refused !== 'busy') throw new Error(`the catalog does not answer: ${reply.message}`)
      await pause(againMs, this.stopped)
    }
  }
}
