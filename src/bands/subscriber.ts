import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import {
  BandFetch,
  bandBytes,
  bandDigest,
  dropUnwanted,
  type FetchParts,
  fetchPlace,
  type Wanted,
} from './band-fetch.js'
import { isExpired } from './document.js'
import { FetchedTorrents, trackerOf } from './fetched-torrents.js'
import { follow } from './follow.js'
import type { Band, BandKind, Shelved } from './protocol.js'
import type { PublisherKeys } from './publisher-keys.js'
import { bandFolder, type Shelf } from './shelf.js'
import { type Subscription, SubscriptionState, subscriptionKey } from './subscription.js'
import type { Offering } from './swarm.js'
import { keyOf, type Listing, planBands } from './wanted-bands.js'

export interface SubscriberOptions {
  readonly subscriptions: readonly Subscription[]
  /** Domains of signatures that are accepted. */
  readonly domains: readonly string[]
  readonly pollMs: number
  /** A band that nobody lists any more is kept so long. */
  readonly graceMs: number
  /** Of everything fetched from others. */
  readonly bytesMax: number
  readonly bandsAtOnce: number
}

export interface SubscriberParts extends FetchParts {
  readonly keys: PublisherKeys
  readonly shelf: Shelf
  /** What is fetched: bands of other kinds are skipped. */
  readonly kinds: readonly BandKind[]
  /** Bands that are not wanted count as not listed; undefined: all are. */
  readonly wants?: ((band: Band) => boolean) | undefined
  readonly log: Log
}

/** A band that was wrong is looked at again after so long. */
const forgedAgainMs = 3_600_000

/**
 * Follows publications: fetches what they list, puts it in place once it is proven whole, and drops what was superseded. One
 * turn at a time looks at the lists; bands come in beside it.
 */
export class Subscriber {
  readonly #listings = new Map<string, Listing>()
  readonly #jobs = new Map<string, BandFetch>()
  /** Each with all that follows from it. */
  readonly #working = new Set<Promise<void>>()
  readonly #retryMs = new Map<string, number>()
  readonly #end = new AbortController()
  #turn: Promise<void> = Promise.resolve()
  #timer: Timer | undefined
  readonly #faults = new Map<string, string>()
  #missing: readonly string[] = []
  #offerings: readonly Offering[] = []
  readonly #torrents: FetchedTorrents

  private constructor(
    private readonly options: SubscriberOptions,
    private readonly parts: SubscriberParts,
    private readonly state: SubscriptionState,
  ) {
    this.#torrents = new FetchedTorrents(parts.shelf.root)
  }

  /** Reads what is known from before. Rejects where that is unreadable. */
  static async open(options: SubscriberOptions, parts: SubscriberParts): Promise<Subscriber> {
    const state = await SubscriptionState.open(parts.shelf.root)
    const subscriber = new Subscriber(options, parts, state)
    for (const subscription of options.subscriptions) {
      const read = await state.document(subscription)
      if (read !== undefined) subscriber.#list(subscription, read.document.indexes, true)
    }
    subscriber.#offer(await parts.shelf.list('installed'))
    return subscriber
  }

  /** Goes on until it is stopped. `failed` is called where the disk refuses: nothing can be done here then. */
  start(failed: (error: unknown) => void): void {
    const again = (): void => {
      this.poll()
        .then(() => {
          if (!this.#end.signal.aborted) this.#timer = this.parts.clock.after(this.options.pollMs, again)
        })
        .catch(failed)
    }
    again()
  }

  /** Asks every publisher, and begins what is to be done; it goes on when this resolves. Rejects where the disk refuses. */
  async poll(): Promise<void> {
    const { clock, asking, keys, log } = this.parts
    const following = { state: this.state, keys, domains: this.options.domains, asking }
    for (const subscription of this.options.subscriptions) {
      const key = subscriptionKey(subscription)
      const nowMs = clock.now()
      const read = await follow(subscription, following, nowMs, this.#end.signal)
      if (this.#end.signal.aborted) return
      const known = this.state.seen.get(key)
      if (isRefusal(read)) {
        log.warn({ publisher: subscription.url, reason: read.message }, 'publication refused')
        this.#faults.set(subscription.url, read.message)
        if (known !== undefined)
          this.state.seen.set(key, { ...known, checkedMs: nowMs, problem: read.message })
        continue
      }
      this.#faults.delete(subscription.url)
      const expired = isExpired(read.document, nowMs)
      if (expired)
        log.warn({ publisher: subscription.url }, 'publication expired: nothing new is taken from it')
      const problem = expired ? 'expired' : ''
      if (known !== undefined) this.state.seen.set(key, { ...known, checkedMs: nowMs, problem })
      this.#list(subscription, read.document.indexes, expired)
    }
    await this.#serialize(async () => {
      await this.state.save()
      await this.#plan()
    })
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    while (this.#working.size > 0) await Promise.race(this.#working)
  }

  /** Publishers that were refused or not reached the last time, and why. */
  get faults(): readonly string[] {
    return [...this.#faults].map(([url, why]) => `${url}: ${why}`)
  }

  /** Bands that are to be fetched, as of the last look. */
  get missing(): readonly string[] {
    return this.#missing
  }

  /** Bands of others for whoever seeds them on: those in place that are still listed, and what is here of those on their way. */
  get offerings(): readonly Offering[] {
    const begun = [...this.#jobs].flatMap(([key, fetch]) => {
      const { begun, wanted, torrentPath } = fetch
      if (begun === undefined) return []
      const placed = bandFolder(this.parts.shelf.root, 'installed', wanted.index, wanted.band.id)
      // It stays offered, by the same torrent, when it is in place.
      const path = (name: string): string => join(this.#jobs.get(key) === fetch ? fetch.folder : placed, name)
      return [{ ...begun, torrentPath, path, trackers: [trackerOf(wanted.url)] }]
    })
    return [...this.#offerings, ...begun]
  }

  async stop(): Promise<void> {
    this.#end.abort()
    this.#timer?.cancel()
    for (const fetch of this.#jobs.values()) fetch.stop()
    await this.settled()
    await this.#turn
  }

  #list(subscription: Subscription, indexes: Listing['indexes'], isOld: boolean): void {
    const { wants = () => true } = this.parts
    const wanted = indexes.map((index) => ({ ...index, bands: index.bands.filter(wants) }))
    this.#listings.set(subscriptionKey(subscription), { url: subscription.url, indexes: wanted, isOld })
  }

  /** One look at the lists after the other. */
  #serialize(act: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(act)
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  async #plan(): Promise<void> {
    if (this.#end.signal.aborted) return
    const { shelf, clock, kinds, log } = this.parts
    const placed = [...(await shelf.list('own')), ...(await shelf.list('installed'))]
    const plan = planBands([...this.#listings.values()], kinds, placed, this.state.fetched)
    for (const [key, fetch] of this.#jobs) if (!plan.listed.has(key)) fetch.stop()
    for (const gone of plan.gone) {
      const fetched = this.state.fetched.get(gone.key)
      if (fetched === undefined) continue
      if (fetched.goneMs === undefined) this.state.fetched.set(gone.key, { ...fetched, goneMs: clock.now() })
      else if (clock.now() - fetched.goneMs >= this.options.graceMs) {
        await shelf.remove(gone.shelved)
        this.state.fetched.delete(gone.key)
        log.info({ band: gone.key }, 'band removed: nobody lists it any more')
      }
    }
    for (const { key, digest, sizeBytes } of plan.kept) {
      // What was put in place stays what it is, whatever its name stands for by now.
      const { goneMs: _goneMs, ...known } = this.state.fetched.get(key) ?? { digest, sizeBytes }
      this.state.fetched.set(key, known)
    }
    const here = new Set(placed.map(({ index, id }) => keyOf(index, id)))
    for (const key of this.state.fetched.keys()) if (!here.has(key)) this.state.fetched.delete(key)
    await this.state.save()
    this.#offer(placed)
    const torrents = [...this.state.fetched.values()].flatMap(({ torrent }) => torrent ?? [])
    await this.#torrents.sweep(new Set(torrents))
    await dropUnwanted(shelf.root, new Set([...plan.listed, ...this.#jobs.keys()]))
    this.#missing = plan.missing.map(({ index, band }) => keyOf(index, band.id))
    this.#begin(plan.missing)
  }

  #offer(placed: readonly Shelved[]): void {
    this.#offerings = this.#torrents.offerings(placed, this.state.fetched, [...this.#listings.values()])
  }

  #begin(missing: readonly Wanted[]): void {
    const { clock, shelf, log } = this.parts
    let used = [...this.state.fetched.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
    for (const { wanted } of this.#jobs.values()) used += bandBytes(wanted.band)
    for (const wanted of missing) {
      const key = keyOf(wanted.index, wanted.band.id)
      if (this.#jobs.size >= this.options.bandsAtOnce) return
      if (this.#jobs.has(key) || (this.#retryMs.get(key) ?? 0) > clock.monotonic()) continue
      if (used + bandBytes(wanted.band) > this.options.bytesMax) {
        this.#putOff(key, refuse('busy', 'self', 'over the bytes that may be fetched'))
        continue
      }
      used += bandBytes(wanted.band)
      const place = fetchPlace(shelf.root, wanted.index, wanted.band.id)
      const fetch = new BandFetch(wanted, place, this.parts)
      this.parts.log.info(
        { band: key, publisher: wanted.url, bytes: bandBytes(wanted.band) },
        'fetching a band',
      )
      this.#jobs.set(key, fetch)
      const work = this.#bring(fetch, key, place)
        .finally(() => this.#jobs.delete(key))
        .then(() => this.#serialize(() => this.#plan()))
        .catch((error: unknown) => log.error({ err: error, band: key }, 'bands cannot be looked at'))
        .finally(() => this.#working.delete(work))
      this.#working.add(work)
    }
  }

  #putOff(key: string, refusal: Refusal): void {
    const { clock, log } = this.parts
    const waitMs = refusal.refused === 'forged' ? forgedAgainMs : this.options.pollMs
    this.#retryMs.set(key, clock.monotonic() + waitMs)
    log.warn({ band: key, reason: refusal.message }, 'band not taken')
  }

  /** Fetches, checks, puts in place. */
  async #bring(fetch: BandFetch, key: string, place: string): Promise<void> {
    const { wanted } = fetch
    const { shelf, log, kinds } = this.parts
    try {
      const refusal = (await fetch.run()) ?? (await this.#check(kinds, fetch))
      if (this.#end.signal.aborted) return
      if (refusal !== undefined) {
        if (refusal.refused === 'forged') await rm(place, { recursive: true, force: true })
        this.#putOff(key, refusal)
        return
      }
      const { index, band } = wanted
      await this.#serialize(async () => {
        // The word first: a band in place without it would never be dropped.
        const fetched = { digest: bandDigest(band.files), sizeBytes: bandBytes(band) }
        const torrent = band.torrent?.infohashV1
        const isKept = torrent !== undefined && (await this.#torrents.keep(fetch.torrentPath, torrent))
        this.state.fetched.set(key, isKept ? { ...fetched, torrent } : fetched)
        await this.state.save()
        await shelf.place(fetch.folder, 'installed', index, band.id)
        this.#offer(await shelf.list('installed'))
        await rm(place, { recursive: true, force: true })
      })
      log.info({ band: key }, 'band installed')
    } catch (error) {
      this.#retryMs.set(key, this.parts.clock.monotonic() + this.options.pollMs)
      log.error({ err: error, band: key }, 'a band cannot be fetched')
    }
  }

  async #check(kinds: readonly BandKind[], { wanted, folder }: BandFetch): Promise<Refusal | undefined> {
    const kind = kinds.find(({ kind: name }) => name === wanted.kind)
    const refusal = await kind?.check(folder)
    // Whatever is wrong with the inside of a band, it is its publisher's word that was broken.
    return refusal === undefined ? undefined : { ...refusal, refused: 'forged' }
  }
}
