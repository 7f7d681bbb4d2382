import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { isRefusal } from '../format/refusal.js'
import { diskOutage, isDiskError } from '../store/disk-error.js'
import { countDiskError } from '../store/disk-errors.js'
import { isExpired } from './document.js'
import { type FollowParts, follow } from './follow.js'
import type { Band } from './publication.js'
import { type Subscription, subscriptionKey } from './subscription.js'
import type { Listing } from './wanted-bands.js'

export interface ListingsParts extends FollowParts {
  /** Bands that are not wanted count as not listed; undefined: all are. */
  readonly wants?: ((band: Band) => boolean) | undefined
  readonly clock: Clock
  readonly log: Log
}

/**
 * What publishers list. Each is fetched independently, with one request at a time, so that a slow one does not delay
 * the others.
 */
export class Listings {
  readonly #listings = new Map<string, Listing>()
  readonly #faults = new Map<string, string>()
  readonly #looking = new Map<string, Promise<void>>()
  readonly #timers = new Map<string, Timer>()

  constructor(
    private readonly subscriptions: readonly Subscription[],
    private readonly parts: ListingsParts,
    private readonly end: AbortSignal,
  ) {}

  /**
   * Loads the documents that an earlier process kept. They are marked as old, so that nothing new is fetched because
   * of them.
   */
  async recall(): Promise<void> {
    for (const subscription of this.subscriptions) {
      const read = await this.parts.state.document(subscription)
      const { url = subscription.url } = this.parts.state.seen.get(subscriptionKey(subscription)) ?? {}
      if (read !== undefined) this.#list(subscription, url, read.document.indexes, true)
    }
  }

  /** In the order of the subscriptions. */
  get current(): readonly Listing[] {
    return this.subscriptions.flatMap((one) => this.#listings.get(subscriptionKey(one)) ?? [])
  }

  /** Publishers that were refused or not reached the last time, and why. */
  get faults(): readonly string[] {
    return [...this.#faults].map(([url, why]) => `${url}: ${why}`)
  }

  /** Asks every publisher. Resolves when each has answered or timed out; rejects where writing fails. */
  async look(): Promise<void> {
    await Promise.all(this.subscriptions.map((one) => this.#lookAt(one)))
  }

  /**
   * Asks each publisher, and again `everyMs` after it has answered; `looked` is called after each answer. A disk
   * that is full or fails is tried again with the next look; `failed` is called where anything else goes wrong.
   */
  start(everyMs: number, looked: () => Promise<void>, failed: (error: unknown) => void): void {
    const disk = diskOutage(this.parts.log, 'lists of bands')
    for (const subscription of this.subscriptions) {
      const look = (): void => {
        this.#lookAt(subscription)
          .then(looked)
          .then(() => {
            disk.well()
            again()
          })
          .catch((error: unknown) => {
            if (!isDiskError(error)) return failed(error)
            countDiskError(error)
            disk.failed({ err: error })
            return again()
          })
      }
      const again = (): void => {
        if (this.end.aborted) return
        this.#timers.set(subscriptionKey(subscription), this.parts.clock.after(everyMs, look))
      }
      look()
    }
  }

  /** No further look begins; resolves when those under way are over, which `end` makes soon. */
  async stop(): Promise<void> {
    for (const timer of this.#timers.values()) timer.cancel()
    await Promise.allSettled(this.#looking.values())
  }

  #lookAt(subscription: Subscription): Promise<void> {
    const key = subscriptionKey(subscription)
    const running = this.#looking.get(key)
    if (running !== undefined) return running
    const looking = this.#look(subscription).finally(() => this.#looking.delete(key))
    this.#looking.set(key, looking)
    return looking
  }

  async #look(subscription: Subscription): Promise<void> {
    const { clock, state, log } = this.parts
    const key = subscriptionKey(subscription)
    const nowMs = clock.now()
    const read = await follow(subscription, this.parts, nowMs, this.end)
    if (this.end.aborted) return
    const known = state.seen.get(key)
    const note = (problem: string, url = known?.url): void => {
      const seen = { checkedMs: nowMs, problem, ...(url === undefined ? {} : { url }) }
      if (known !== undefined) state.seen.set(key, { ...known, ...seen })
    }
    if (isRefusal(read)) {
      log.warn({ publisher: subscription.url, reason: read.message }, 'a publication was refused')
      this.#faults.set(subscription.url, read.message)
      note(read.message)
      return
    }
    this.#faults.delete(subscription.url)
    const expired = isExpired(read.document, nowMs)
    if (expired)
      log.warn({ publisher: subscription.url }, 'a publication has expired: no new bands are fetched from it')
    note(expired ? 'expired' : '', read.url)
    this.#list(subscription, read.url, read.document.indexes, expired)
  }

  #list(subscription: Subscription, url: string, indexes: Listing['indexes'], isOld: boolean): void {
    const { wants = () => true } = this.parts
    const wanted = indexes.map((index) => ({ ...index, bands: index.bands.filter(wants) }))
    this.#listings.set(subscriptionKey(subscription), { url, indexes: wanted, isOld })
  }
}
