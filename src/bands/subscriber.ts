import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isWithin } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { trackerOf } from '../torrent/named-tracker.js'
import type { SeededTorrent } from '../torrent/swarm.js'
import { BandFetch, type BandFetchParts, bandBytes, fetchPlace, type WantedBand } from './band-fetch.js'
import { type BandStore, bandFolder } from './band-store.js'
import { FetchedTorrents } from './fetched-torrents.js'
import { bandTorrentName } from './index-names.js'
import { Listings } from './listings.js'
import { BegunBands } from './partial-bands.js'
import type { Band, BandKind, StoredBand } from './publication.js'
import type { PublisherKeys } from './publisher-keys.js'
import { type Subscription, SubscriptionState } from './subscription.js'
import { bandKey, planBands } from './wanted-bands.js'

export interface SubscriberOptions {
  readonly subscriptions: readonly Subscription[]
  /** Domains of signatures that are accepted. */
  readonly domains: readonly string[]
  readonly pollMs: number
  /** A band that nobody lists any more is kept so long. */
  readonly graceMs: number
  /** Bytes of everything fetched from others, at most. */
  readonly bytesMax: number
  readonly bandsAtOnce: number
}

export interface SubscriberParts extends BandFetchParts {
  readonly keys: PublisherKeys
  readonly bandStore: BandStore
  /** What is fetched: bands of other kinds are skipped. */
  readonly kinds: readonly BandKind[]
  /** Bands that are not wanted count as not listed; undefined: all are. */
  readonly wants?: ((band: Band) => boolean) | undefined
  readonly log: Log
}

/** Time after which a band with wrong bytes is tried again. */
const forgedAgainMs = 3_600_000

/**
 * Follows publications: fetches what they list, puts it in place once it was checked, and removes what was superseded. The
 * list of each publisher is fetched separately; lists are read one after the other, and bands are fetched meanwhile.
 */
export class Subscriber {
  readonly #listings: Listings
  readonly #jobs = new Map<string, BandFetch>()
  /** Jobs including the steps after the fetch. */
  readonly #working = new Set<Promise<void>>()
  /** When a band may be requested again, by band and publisher. */
  readonly #retryMs = new Map<string, number>()
  readonly #end = new AbortController()
  #turn: Promise<void> = Promise.resolve()
  #missing: readonly string[] = []
  #offerings: readonly SeededTorrent[] = []
  readonly #torrents: FetchedTorrents
  readonly #begun: BegunBands

  private constructor(
    private readonly options: SubscriberOptions,
    private readonly parts: SubscriberParts,
    private readonly state: SubscriptionState,
  ) {
    this.#torrents = new FetchedTorrents(parts.bandStore.root)
    this.#begun = new BegunBands(parts.bandStore.root, parts.log)
    const { subscriptions, domains } = options
    this.#listings = new Listings(subscriptions, { ...parts, state, domains }, this.#end.signal)
  }

  /** Reads what is known from before. Rejects where that is unreadable. */
  static async open(options: SubscriberOptions, parts: SubscriberParts): Promise<Subscriber> {
    const state = await SubscriptionState.open(parts.bandStore.root)
    const subscriber = new Subscriber(options, parts, state)
    await subscriber.#listings.recall()
    subscriber.#offer(await parts.bandStore.list('installed'))
    return subscriber
  }

  /** Goes on until it is stopped. `failed` is called where nothing can be done here. */
  start(failed: (error: unknown) => void): void {
    this.#listings.start(this.options.pollMs, () => this.#looked(), failed)
  }

  /** Asks every publisher, and begins what is to be done; it goes on when this resolves. Rejects where the disk refuses. */
  async poll(): Promise<void> {
    await this.#listings.look()
    await this.#looked()
  }

  /** Something may be listed that was not. */
  #looked(): Promise<void> {
    if (this.#end.signal.aborted) return Promise.resolve()
    return this.#serialize(async () => {
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
    return this.#listings.faults
  }

  /** Bands that are to be fetched, as of the last look. */
  get missing(): readonly string[] {
    return this.#missing
  }

  /** Bands of others for whoever seeds them on: those in place that are still listed, and what is here of those on their way. */
  get offerings(): readonly SeededTorrent[] {
    const begun = [...this.#jobs].flatMap(([key, fetch]) => {
      const { begun, wanted, torrentPath } = fetch
      if (begun === undefined) return []
      const placed = bandFolder(this.parts.bandStore.root, 'installed', wanted.index, wanted.band.id)
      // It stays offered, by the same torrent, when it is in place.
      const path = (name: string): string => join(this.#jobs.get(key) === fetch ? fetch.folder : placed, name)
      return [{ ...begun, torrentPath, path, trackers: [trackerOf(wanted.url)] }]
    })
    return [...this.#offerings, ...begun]
  }

  async stop(): Promise<void> {
    this.#end.abort()
    await this.#listings.stop()
    for (const fetch of this.#jobs.values()) fetch.stop()
    await this.settled()
    await this.#turn
  }

  /** One look at the lists after the other. */
  #serialize(act: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(act)
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  async #plan(): Promise<void> {
    if (this.#end.signal.aborted) return
    const { bandStore, clock, kinds, log } = this.parts
    const placed = [...(await bandStore.list('own')), ...(await bandStore.list('installed'))]
    const plan = planBands(this.#listings.current, kinds, placed, this.state.fetched, (key, url) =>
      this.#rests(key, url),
    )
    for (const [key, fetch] of this.#jobs) if (!plan.listed.has(key)) fetch.stop()
    for (const gone of plan.gone) {
      const fetched = this.state.fetched.get(gone.key)
      if (fetched === undefined) continue
      if (fetched.goneMs === undefined) this.state.fetched.set(gone.key, { ...fetched, goneMs: clock.now() })
      else if (!isWithin(clock.now(), fetched.goneMs, this.options.graceMs)) {
        await bandStore.remove(gone.stored)
        this.state.fetched.delete(gone.key)
        log.info({ band: gone.key }, 'a band was removed: no publisher lists it any more')
      }
    }
    for (const { key, digest, sizeBytes } of plan.kept) {
      // The record of a band in place keeps its digest, even where its id now names other files.
      const { goneMs: _goneMs, ...known } = this.state.fetched.get(key) ?? { digest, sizeBytes }
      this.state.fetched.set(key, known)
    }
    const here = new Set(placed.map(({ index, id }) => bandKey(index, id)))
    for (const key of this.state.fetched.keys()) if (!here.has(key)) this.state.fetched.delete(key)
    await this.state.save()
    this.#offer(placed)
    const torrents = [...this.state.fetched.values()].flatMap(({ torrent }) => torrent ?? [])
    await this.#torrents.sweep(new Set(torrents))
    const partial = await this.#begun.sweep(plan.listed, new Set(this.#jobs.keys()))
    for (const name of this.#retryMs.keys()) {
      if (!plan.listed.has(name.split(' ')[0] ?? '')) this.#retryMs.delete(name)
    }
    this.#missing = plan.missing.map(({ index, band }) => bandKey(index, band.id))
    await this.#begin(plan.missing, partial)
  }

  #offer(placed: readonly StoredBand[]): void {
    this.#offerings = this.#torrents.offerings(placed, this.state.fetched, this.#listings.current)
  }

  async #begin(missing: readonly WantedBand[], partial: Map<string, number>): Promise<void> {
    let used = [...this.state.fetched.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
    for (const { wanted } of this.#jobs.values()) used += bandBytes(wanted.band)
    for (const wanted of missing) {
      const key = bandKey(wanted.index, wanted.band.id)
      if (this.#jobs.has(key) || this.#rests(key, wanted.url) || !this.#hasTurn(wanted.url)) continue
      const begunBytes = partial.get(key) ?? 0
      partial.delete(key)
      const leftBytes = this.options.bytesMax - used - bandBytes(wanted.band)
      const hasRoom = await this.#begun.makeRoom(partial, leftBytes)
      if (this.#end.signal.aborted) return
      if (hasRoom) {
        used += bandBytes(wanted.band)
        this.#fetch(wanted, key, begunBytes)
      } else {
        partial.set(key, begunBytes)
        this.#putOff(key, wanted.url, refuse('busy', 'self', 'over the bytes that may be fetched'))
      }
    }
  }

  /**
   * Each publisher may have one band under way, whatever the others do; more only while the total is below
   * `bandsAtOnce`.
   */
  #hasTurn(url: string): boolean {
    if (this.#jobs.size < this.options.bandsAtOnce) return true
    return ![...this.#jobs.values()].some(({ wanted }) => wanted.url === url)
  }

  #rests(key: string, url: string): boolean {
    return (this.#retryMs.get(`${key} ${url}`) ?? 0) > this.parts.clock.monotonic()
  }

  #fetch(wanted: WantedBand, key: string, begunBytes: number): void {
    const { bandStore, log } = this.parts
    const place = fetchPlace(bandStore.root, wanted.index, wanted.band.id)
    const fetch = new BandFetch(wanted, place, this.parts)
    log.info({ band: key, publisher: wanted.url, bytes: bandBytes(wanted.band) }, 'fetching a band')
    this.#jobs.set(key, fetch)
    const work = this.#bring(fetch, key, place, begunBytes)
      .finally(() => this.#jobs.delete(key))
      .then(() => this.#serialize(() => this.#plan()))
      .catch((error: unknown) =>
        log.error({ err: error, band: key }, 'the lists of bands could not be processed'),
      )
      .finally(() => this.#working.delete(work))
    this.#working.add(work)
  }

  #putOff(key: string, url: string, refusal: Refusal): void {
    const { clock, log } = this.parts
    const waitMs = refusal.refused === 'forged' ? forgedAgainMs : this.options.pollMs
    this.#retryMs.set(`${key} ${url}`, clock.monotonic() + waitMs)
    log.warn({ band: key, publisher: url, reason: refusal.message }, 'a band was refused')
  }

  /** Fetches, checks, puts in place. */
  async #bring(fetch: BandFetch, key: string, place: string, begunBytes: number): Promise<void> {
    const { wanted } = fetch
    const { bandStore, log, kinds } = this.parts
    try {
      const refusal = (await fetch.run()) ?? (await this.#check(kinds, fetch))
      if (this.#end.signal.aborted) return
      if (refusal !== undefined) {
        if (refusal.refused === 'forged') await rm(place, { recursive: true, force: true })
        else await this.#begun.failed(key, begunBytes)
        this.#putOff(key, wanted.url, refusal)
        return
      }
      const { index, band } = wanted
      await this.#serialize(async () => {
        // The record is written first: a band in place without a record would never be removed.
        const fetched = { digest: bandTorrentName(band.files), sizeBytes: bandBytes(band) }
        const torrent = band.torrent?.infohashV1
        const isKept = torrent !== undefined && (await this.#torrents.keep(fetch.torrentPath, torrent))
        this.state.fetched.set(key, isKept ? { ...fetched, torrent } : fetched)
        await this.state.save()
        await bandStore.place(fetch.folder, 'installed', index, band.id)
        this.#offer(await bandStore.list('installed'))
        await rm(place, { recursive: true, force: true })
      })
      log.info({ band: key }, 'a band was installed')
    } catch (error) {
      this.#retryMs.set(`${key} ${wanted.url}`, this.parts.clock.monotonic() + this.options.pollMs)
      log.error({ err: error, band: key }, 'a band cannot be fetched')
    }
  }

  async #check(kinds: readonly BandKind[], { wanted, folder }: BandFetch): Promise<Refusal | undefined> {
    const kind = kinds.find(({ kind: name }) => name === wanted.kind)
    const refusal = await kind?.check(folder)
    // The publisher has signed the digests, so a fault inside the band is the publisher's.
    return refusal === undefined ? undefined : { ...refusal, refused: 'forged' }
  }
}
