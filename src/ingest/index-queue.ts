import { pause } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Address } from '../actor/mailbox-address.js'
import type { Meters } from '../actor/meter.js'
import { Outage } from '../actor/outage.js'
import type { CatalogReply, CatalogRequest } from '../catalog/catalog-messages.js'
import type { IndexOutcome } from '../catalog/index-protocol.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import { isRefusal } from '../format/refusal.js'
import type { BulkWay } from './bulk-way.js'

/** A refused message is sent again after so long, and each time after twice as long: a damaged page stays damaged. */
const againMs = { first: 20, most: 10_000 } as const

/** A pause of this length or more is logged. */
const loggedMs = 320

/** Counts and logs messages that the keeper did not take. */
export interface RefusalWatch {
  /** That they go on for a while, and that one was taken again. */
  readonly outage: Pick<Outage, 'failed' | 'well'>
  /** Each of them. */
  readonly refusals: { add(count: number): void }
}

/** The watch of a thread, with one line in its log when it begins and one when it ends. */
export function refusalWatch(log: Pick<Log, 'warn' | 'info'>, meters: Meters): RefusalWatch {
  const down = 'the index takes no changes: they are sent again, more and more seldom'
  return {
    outage: new Outage(log, down, 'the index takes changes again'),
    refusals: meters.of('index_changes_refused_total'),
  }
}

/**
 * The one way from this thread to the keeper's index: one message after the other, each composed from what the index
 * holds when all before it are committed. So no message about a block can arrive after the block was unwound.
 *
 * Long and short messages have turns: a block, or a few items, do not wait behind the many items of several bundles.
 */
export class IndexQueue {
  readonly #waiting = { short: [] as (() => Promise<void>)[], long: [] as (() => Promise<void>)[] }
  #isWriting = false

  constructor(
    private readonly keeper: Address<CatalogRequest, CatalogReply>,
    readonly index: ChainIndex,
    private readonly stopped: AbortSignal,
    private readonly watch: RefusalWatch,
    /** False: messages do not wait for each other. Only where no block is ever unwound meanwhile. */
    private readonly inLine = true,
    /** Present: what brings rows goes past the tables of the index. */
    private readonly bulk?: BulkWay,
  ) {}

  /**
   * Writes what `compose` returns, in one transaction; nothing where that is undefined. `length`: of the message, in terms of the
   * time that it takes. Resolves after the commit (in bulk: when it was taken). Rejects when the thread stops, or the keeper is
   * gone.
   */
  write(
    compose: () => CatalogRequest | undefined,
    length: 'short' | 'long' = 'short',
  ): Promise<IndexOutcome | undefined> {
    if (!this.inLine) return this.#write(compose)
    return new Promise((resolve, reject) => {
      this.#waiting[length].push(() => this.#write(compose).then(resolve, reject))
      if (!this.#isWriting) void this.#writeAll()
    })
  }

  /** Writes what waits; never rejects. */
  async #writeAll(): Promise<void> {
    this.#isWriting = true
    const { short, long } = this.#waiting
    for (let wasLong = true; short.length + long.length > 0; ) {
      wasLong = wasLong ? short.length === 0 : long.length > 0
      await (wasLong ? long : short).shift()?.()
    }
    this.#isWriting = false
  }

  /** Resolves when all that was written is in the index, as everybody sees it. In bulk that is later than `write` resolves. */
  async keep(): Promise<void> {
    const request = this.bulk?.end()
    if (request !== undefined) await this.#send(request)
  }

  /** Does `act` when all that was written so far is in the index. */
  whenKept(act: () => void): void {
    if (this.bulk === undefined) act()
    else this.bulk.whenListed(act)
  }

  async #write(compose: () => CatalogRequest | undefined): Promise<IndexOutcome | undefined> {
    this.index.refresh()
    const request = compose()
    if (request === undefined) return undefined
    if (this.bulk === undefined) return this.#send(request)
    await this.bulk.begun((begin) => this.#send(begin))
    return this.#send(this.bulk.inBulk(request))
  }

  async #send(request: CatalogRequest): Promise<IndexOutcome | undefined> {
    for (let waitMs: number = againMs.first; ; waitMs = Math.min(2 * waitMs, againMs.most)) {
      this.stopped.throwIfAborted()
      const reply = await this.keeper.ask(request)
      if (!isRefusal(reply)) {
        this.watch.outage.well()
        this.bulk?.note(reply.bulk)
        return reply.index
      }
      if (reply.refused !== 'busy') throw new Error(`the catalog does not answer: ${reply.message}`)
      this.watch.refusals.add(1)
      // A mailbox that was full for a moment is not logged.
      if (waitMs >= loggedMs) this.watch.outage.failed({ reason: reply.message, waitMs })
      await pause(waitMs, this.stopped)
    }
  }
}
