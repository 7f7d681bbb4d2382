import type { Clock, Timer } from '../actor/clock.js'
import type { Meters } from '../actor/meter.js'
import type { Chain } from '../chain/chain.js'
import { type Id, parseId } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import { type BundleRecord, type Bundles, summaryOf, unshownReasons } from './bundling/bundle-records.js'
import type { Bundler } from './bundling/bundler.js'
import type { OpenUploads } from './parts/open-uploads.js'
import type { FreePools } from './records/free-pools.js'
import type { AcceptedItem, Uploads } from './records/uploads.js'

export interface DeskParts {
  readonly uploads: Uploads
  readonly bundles: Bundles
  readonly bundler: Pick<Bundler, 'betweenRounds' | 'repack' | 'trust'>
  readonly open: OpenUploads
  readonly pools: FreePools
  readonly chain: Pick<Chain, 'balance'>
  readonly address: string
  readonly height: () => number | undefined
  readonly partsMaxBytes: number
  readonly meters: Meters
  readonly clock: Clock
}

const shownMax = 50
/** The word for all bundles whose data no node shows. */
const all = 'all'
const lookEveryMs = 5000
const walletEveryMs = 60_000
const states = ['packed', 'posted', 'seeded'] as const

interface Wallet {
  readonly winston: string
  readonly atMs: number
}

/** What became of an operator's order. */
export type DeskOutcome = { readonly done: string } | { readonly refused: string; readonly isUnknown?: true }

/** The upload service as its operator sees it: what is under way and why it is not further, and a hand for what is stuck. */
export class UploadsDesk {
  readonly #timers: readonly Timer[]
  #lookedMs = Number.NEGATIVE_INFINITY
  #wallet: Wallet | undefined

  constructor(private readonly parts: DeskParts) {
    const { clock, meters } = parts
    meters.of('upload_parts_max_bytes').set(parts.partsMaxBytes)
    meters.of('upload_wallet_winston').set(-1)
    this.#timers = [
      clock.every(lookEveryMs, () => this.#look()),
      clock.every(walletEveryMs, () => void this.#askWallet()),
    ]
    void this.#askWallet()
  }

  close(): void {
    for (const timer of this.#timers) timer.cancel()
  }

  async #askWallet(): Promise<void> {
    const { chain, address, clock, meters } = this.parts
    const balance = await chain.balance(address)
    if (isRefusal(balance)) return
    this.#wallet = { winston: String(balance), atMs: clock.now() }
    meters.of('upload_wallet_winston').set(Number(balance))
  }

  /** Sets the gauges. */
  #look(): void {
    const { uploads, bundles, open, clock, meters } = this.parts
    this.#lookedMs = clock.monotonic()
    const underWay = bundles.open().filter(({ state }) => state !== 'permanent')
    const age = (atMs: number | undefined): number => (atMs === undefined ? 0 : (clock.now() - atMs) / 1000)
    meters.of('upload_items_waiting').set(uploads.waiting)
    meters.of('upload_items_waiting_oldest_seconds').set(age(this.#first(uploads.oldest(1))?.receivedMs))
    const paid = this.#first(uploads.oldestPaid(1))
    meters.of('upload_items_waiting_oldest_paid_seconds').set(age(paid?.receivedMs))
    meters.of('upload_items_unreadable').set(uploads.unreadable.count)
    for (const state of states)
      meters.of('upload_bundles', { state }).set(underWay.filter((one) => one.state === state).length)
    const oldest = underWay.length === 0 ? undefined : Math.min(...underWay.map(({ createdMs }) => createdMs))
    meters.of('upload_bundle_oldest_seconds').set(age(oldest))
    const failures = underWay.map(({ attempts, unseen = 0 }) => Math.max(attempts, unseen))
    meters.of('upload_bundle_failures_max').set(Math.max(0, ...failures))
    const unshown = bundles.unshown()
    for (const why of unshownReasons)
      meters.of('upload_bundles_unseen', { why }).set(unshown.filter((one) => one.unshown === why).length)
    const parts = open.listed(0)
    meters.of('upload_parts_open').set(parts.open)
    meters.of('upload_parts_bytes').set(parts.bytes)
  }

  #first([first]: Iterable<Id>): AcceptedItem | undefined {
    return first === undefined ? undefined : this.parts.uploads.find(first)
  }

  /** Everything at a glance. */
  async overview(): Promise<object> {
    const { uploads, open, pools, address, height, clock } = this.parts
    if (clock.monotonic() - this.#lookedMs > lookEveryMs / 2) this.#look()
    return {
      now: clock.now(),
      height: height() ?? null,
      items: {
        kept: uploads.count,
        waiting: uploads.waiting,
        oldestMs: this.#first(uploads.oldest(1))?.receivedMs ?? null,
        unreadable: uploads.unreadable.some(shownMax),
        oldestPaidMs: this.#first(uploads.oldestPaid(1))?.receivedMs ?? null,
      },
      open: open.listed(shownMax),
      bundles: this.parts.bundles.recent,
      unseen: this.#unseen(),
      wallet: { address, ...this.#wallet },
      free: { rules: pools.rules, ...(await pools.listed(10)) },
    }
  }

  /** Bundles deep in the chain whose data no node shows: how many, and the oldest. */
  #unseen(): object {
    const unseen = this.parts.bundles.unshown().sort((one, other) => one.createdMs - other.createdMs)
    return { count: unseen.length, bundles: unseen.slice(0, shownMax) }
  }

  /** An item or a bundle by its id; undefined where there is neither. */
  one(text: string): object | undefined {
    const id = parseId(text)
    if (id === undefined) return undefined
    const [item, bundle] = [this.parts.uploads.find(id), this.parts.bundles.find(id)]
    if (bundle !== undefined) return { bundle: { ...summaryOf(bundle), items: bundle.items.slice(0, 1000) } }
    if (item === undefined) return undefined
    const carrier = item.bundle === undefined ? undefined : this.parts.bundles.find(item.bundle)
    return { item, ...(carrier === undefined ? {} : { bundle: summaryOf(carrier) }) }
  }

  /** Packs the items of a bundle again, or one item that was given up. */
  repack(text: string): Promise<DeskOutcome> {
    return this.parts.bundler.betweenRounds(() => {
      const { uploads, bundler } = this.parts
      const found = this.#found(text)
      if ('refused' in found) return found
      const { item, bundle } = found
      if (bundle !== undefined) {
        if (bundle.state === 'dropped' || bundle.state === 'permanent')
          return { refused: `The bundle is ${bundle.state}` }
        bundler.repack(bundle, 'the operator had it packed again')
        return { done: `The ${bundle.items.length} items of the bundle wait for another one` }
      }
      if (item?.released === true) return { refused: 'The bytes of the item are not kept here any more' }
      if (item === undefined || item.reason === undefined)
        return { refused: 'The item waits for a bundle already' }
      uploads.environment.write(() => uploads.retry(item))
      return { done: 'The item waits for a bundle' }
    })
  }

  /** Sends the chunks of a bundle once more; `all`: those of all bundles whose data no node shows. */
  reseed(text: string): Promise<DeskOutcome> {
    return this.parts.bundler.betweenRounds(() => {
      const { bundles, clock } = this.parts
      if (text === all) {
        const waiting = this.#allUnseen()
        for (const { missing: _, resentTo: __, ...bundle } of waiting)
          bundles.put({ ...bundle, state: 'posted', attempts: 0, dueMs: clock.now() })
        return { done: `The chunks of ${waiting.length} bundles are sent again, one after the other` }
      }
      const found = this.#found(text)
      if ('refused' in found) return found
      const { bundle } = found
      if (bundle === undefined) return { refused: 'The item is in no bundle' }
      if (bundle.released === true) return { refused: 'The bytes of the bundle are not kept here any more' }
      if (bundle.state !== 'seeded' && bundle.state !== 'posted')
        return { refused: `The bundle is ${bundle.state}` }
      const { missing: _, resentTo: __, ...record } = bundle
      bundles.put({ ...record, state: 'posted', attempts: 0, dueMs: clock.now() })
      return { done: 'The chunks of the bundle are sent again' }
    })
  }

  /** Takes a bundle for permanent though no node shows its data; `all`: all of which that is so. */
  trust(text: string): Promise<DeskOutcome> {
    return this.parts.bundler.betweenRounds(() => {
      const found = text === all ? undefined : this.#found(text)
      if (found !== undefined && 'refused' in found) return found
      const wanted = found?.bundle?.id
      const bundles = this.#allUnseen().filter(({ id }) => found === undefined || id === wanted)
      if (found !== undefined && bundles.length === 0)
        return { refused: 'No bundle of it waits for nodes to show its data' }
      for (const bundle of bundles) this.parts.bundler.trust(bundle)
      return { done: `${bundles.length} bundles are permanent: their bytes are removed here in an hour` }
    })
  }

  #allUnseen(): BundleRecord[] {
    return this.parts.bundles.unshown().map(({ id }) => this.parts.bundles.known(id))
  }

  #found(
    text: string,
  ):
    | { readonly item?: AcceptedItem | undefined; readonly bundle?: BundleRecord | undefined }
    | { readonly refused: string; readonly isUnknown: true } {
    const id = parseId(text)
    const item = id === undefined ? undefined : this.parts.uploads.find(id)
    const bundleId = item === undefined ? id : item.bundle
    const bundle = bundleId === undefined ? undefined : this.parts.bundles.find(bundleId)
    if (item === undefined && bundle === undefined)
      return { refused: 'No item and no bundle has this id', isUnknown: true }
    return { item, bundle }
  }
}
