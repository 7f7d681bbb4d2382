import { Backoff } from '../../actor/backoff.js'
import type { Timer } from '../../actor/clock.js'
import { type Id, idOfBytes } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { tagOf } from '../../format/tag.js'
import { transactionJson } from '../../format/transaction.js'
import { sha256 } from '../../proof/digest.js'
import { signatureData } from '../../proof/transaction-proof.js'
import { diskRefusal, isDiskError, isPlaceError, tryWrite } from '../../store/disk-error.js'
import type { AcceptedItem } from '../records/uploads.js'
import { BundleData } from './bundle-data.js'
import { type BundleRecord, type BundleSummary, rewardOf, summaryOf } from './bundle-records.js'
import type { BundlerParts } from './bundler-parts.js'
import { DamagedBundles } from './damaged-bundles.js'
import { againMaxMs, isFirstSending, isSending, isStepDue } from './due.js'
import { LostBundles } from './lost-bundles.js'
import { NextBundle } from './next-bundle.js'
import { Posting } from './posting.js'
import { ReadableData } from './readable-data.js'
import { fullAgainMs, retryLater } from './retrying.js'
import { SeededBundles } from './seeded-bundles.js'
import { type Damage, Sending } from './sending.js'

/** Between two rounds while there is nothing to do. */
const idleEveryMs = 1000
/** Nothing more is packed while so many are not posted, or so many not sent to their end. */
const [packedMax, openMax] = [8, 32] as const
/** Bundles whose transactions are requested at once. */
const looksAtOnce = 16
/** Until something is packed again that failed. */
const againMs = 1000
/** Longest pause before items of bundles that were given up are packed again. */
const packAgainMaxMs = 1_800_000

/** Brings accepted items onto the chain. Every step is on disk before the next begins; whatever fails is tried again. */
export class Bundler {
  #timer: Timer | undefined
  #everyMs: number | undefined
  #running: Promise<void> | undefined
  #isClosed = false
  /** Logged once, and not four times a second. */
  #isFailing = false
  readonly #orders: (() => void)[] = []
  readonly #next: NextBundle
  readonly #lost: LostBundles
  readonly #posting: Posting
  readonly #seeded: SeededBundles
  readonly #sending: Sending
  readonly #damagedBundles: DamagedBundles
  readonly #readable: ReadableData
  /** Nothing is packed while it is on. Bundles that nodes refuse one after the other make it longer. */
  readonly #packing: Backoff
  /** Packed since the last one that made it longer, and not posted yet. */
  readonly #fresh = new Set<Id>()

  constructor(private readonly parts: BundlerParts) {
    const restMs = 2 * againMs
    this.#packing = new Backoff({ failuresMax: 1, restMs, restMaxMs: packAgainMaxMs }, parts.clock)
    this.#next = new NextBundle(parts.uploads, parts.rules, parts.clock, parts.logger)
    this.#lost = new LostBundles(parts)
    this.#posting = new Posting(parts, this.#lost, {
      posted: (bundle) => this.#posted(bundle),
      giveUp: (bundle, reason, counts) => this.#giveUp(bundle, reason, counts),
      drop: (bundle, reason) => this.#drop(bundle, reason, false),
    })
    this.#seeded = new SeededBundles(parts, this.#lost, (bundle, reason) =>
      this.#giveUp(bundle, reason, true),
    )
    this.#readable = new ReadableData(parts)
    this.#damagedBundles = new DamagedBundles(parts.uploads.unreadable, parts.clock)
    this.#sending = new Sending(parts, this.#readable, {
      damaged: (bundle, items, how) => this.#damaged(bundle, items, how),
      whole: (bundle) => this.#damagedBundles.remove(bundle),
    })
  }

  #count(outcome: 'packed' | 'dropped'): void {
    this.parts.meters.of('upload_bundles_total', { outcome }).add(1)
  }

  /** Changes records between two rounds, so that no step writes over what it does. */
  betweenRounds<T>(act: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#orders.push(() => {
        try {
          resolve(act())
        } catch (error) {
          reject(error)
        }
      })
      this.#startRound()
    })
  }

  /** Its items are packed again. */
  repack(bundle: BundleRecord, reason: string): void {
    this.#drop(bundle, reason, !this.#posting.isPoor)
    this.#packMore()
  }

  /** It counts as permanent, though the nodes of this service do not show its data. */
  trust(bundle: BundleRecord): void {
    this.#seeded.trust(bundle)
  }

  /** The next bundle waits for nothing. */
  #packMore(): void {
    this.#packing.well()
    this.#packing.hold(0)
  }

  start(): void {
    this.#schedule(this.parts.rules.everyMs)
  }

  /** A service without items has its next look later: a thread without work wakes up less often. */
  #schedule(ms: number): void {
    if (this.#everyMs === ms || this.#isClosed) return
    this.#everyMs = ms
    this.#timer?.cancel()
    this.#timer = this.parts.clock.every(ms, () => this.#startRound())
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await Promise.all([this.#running, this.#seeded.close(), this.#sending.close()])
  }

  #startRound(): void {
    this.#running ??= this.#round()
      .then(
        () => {
          this.#isFailing = false
        },
        (error: unknown) => {
          if (!this.#isFailing) this.parts.logger.error({ err: error }, 'bundling failed: it is tried again')
          this.#isFailing = true
        },
      )
      .finally(() => {
        this.#running = undefined
        if (this.#orders.length > 0) this.#startRound()
      })
  }

  async #round(): Promise<void> {
    const { bundles, clock, rules, uploads } = this.parts
    for (const act of this.#orders.splice(0)) act()
    if (this.parts.isIdle === true) return
    const failures: unknown[] = []
    // A record that cannot be read, or a bug, keeps one bundle waiting, and no others.
    const step = (bundle: BundleSummary): Promise<void> =>
      this.#step(bundle).catch((error: unknown) => {
        bundles.delay(bundle.id, clock.now() + againMaxMs)
        failures.push(error)
      })
    const due = this.#due()
    const packed = due.filter(({ state }) => state === 'packed')
    const resting = due.filter((one) => !isSending(one)).sort((one, other) => one.dueMs - other.dueMs)
    this.#send(failures)
    await Promise.all([...packed, ...resting.slice(0, looksAtOnce)].map(step))
    this.#send(failures)
    if (this.#mayPack()) await this.#pack().catch((error: unknown) => failures.push(error))
    this.#send(failures)
    if (failures.length > 0) throw failures[0]
    const isBusy = uploads.waiting > 0 || bundles.open().length > 0
    this.#schedule(isBusy ? rules.everyMs : Math.max(rules.everyMs, idleEveryMs))
  }

  #due(): BundleSummary[] {
    const { bundles, clock, rules } = this.parts
    return bundles.open().filter((bundle) => isStepDue(bundle, clock.now(), rules.lookMs))
  }

  #mayPack(): boolean {
    const open = this.parts.bundles.open()
    const packed = open.filter(({ state }) => state === 'packed')
    return !this.#isClosed && packed.length < packedMax && open.filter(isFirstSending).length < openMax
  }

  /** What nodes have the transactions of is sent beside the rounds. */
  #send(failures: unknown[]): void {
    failures.push(...this.#sending.begin(this.#due().filter(({ state }) => state === 'posted')))
  }

  async #step(summary: BundleSummary): Promise<void> {
    // One bundle that fails delays no other.
    const outcome = await this.#nextState(summary).catch((error: unknown) => {
      if (!isDiskError(error) && !isPlaceError(error)) throw error
      return diskRefusal(error)
    })
    if (outcome !== undefined) retryLater(this.parts, summary.id, outcome)
  }

  /** A refusal: the bundle stays in its state. */
  async #nextState(summary: BundleSummary): Promise<Refusal | undefined> {
    const { id, state } = summary
    if (state === 'packed') return this.#posting.post(this.parts.bundles.known(id))
    if (state === 'seeded') return this.#seeded.look(summary)
    return this.#seeded.release(this.parts.bundles.known(id))
  }

  #drop(bundle: BundleRecord, reason: string, counts: boolean): undefined {
    const { givenUp, left } = this.parts.bundles.drop(bundle, reason, counts)
    for (const { place } of left) this.parts.itemLog.release(place)
    this.parts.logger.error({ bundle: bundle.id, reason }, 'a bundle was dropped: its items are packed again')
    this.#sending.forget(bundle.id)
    this.#lost.forget(bundle.id)
    this.#posting.forget(bundle.id)
    this.#seeded.forget(bundle.id)
    this.#damagedBundles.remove(bundle.id)
    this.#count('dropped')
    // A reorganization refuses all that were packed before it, and takes back what was posted: it is one failure, or none.
    if (this.#fresh.has(bundle.id)) {
      this.#fresh.clear()
      this.#packing.failed()
    }
    this.parts.meters.of('upload_items_given_up_total').add(givenUp)
  }

  async #pack(): Promise<void> {
    const { bundles, chain, clock, logFolder, owner, logger, signing } = this.parts
    if (this.#packing.isOn) return
    const items = this.#next.items()
    if (items.length === 0) return
    const data = new BundleData(items, logFolder)
    const [tip, reward] = await Promise.all([chain.tip(), chain.price(data.sizeBytes)])
    if (isRefusal(tip) || isRefusal(reward))
      return this.#holdPacking(isRefusal(tip) ? tip : (reward as Refusal), againMs)
    const tree = await this.#readable.tree(data, items)
    // The next round packs the others.
    if (tree === undefined) return
    const nothing = new Uint8Array(0)
    const unsigned = {
      format: 2 as const,
      owner,
      target: nothing,
      quantity: 0n,
      data: nothing,
      denomination: 0,
      lastTx: Buffer.from(tip.anchor, 'base64url'),
      dataSize: data.sizeBytes,
      dataRoot: tree.root,
      reward,
      tags: [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0'), tagOf('App-Name', 'Sluice')],
    }
    const signature = await signing.data(signatureData(unsigned))
    const id = idOfBytes(sha256(signature))
    const transaction = transactionJson({ ...unsigned, signature, id }, { withData: false })
    const now = clock.now()
    const record: BundleRecord = {
      id,
      state: 'packed',
      transaction,
      sizeBytes: data.sizeBytes,
      items: items.map((item) => item.id),
      anchorHeight: tip.height,
      createdMs: now,
      attempts: 0,
      dueMs: now,
    }
    const kept = tryWrite(() => bundles.pack(record, items, data.offsets))
    if (isRefusal(kept)) return this.#holdPacking(kept, fullAgainMs)
    // Some were moved, or given to others, while it was made: nothing was posted, and the next round packs what is left.
    if (!kept) return
    this.#sending.keep(id, tree)
    this.#posting.made(id)
    // What a power cut takes back would be packed, and paid for, once more.
    await this.parts.uploads.environment.flushed()
    this.#fresh.add(id)
    this.#count('packed')
    logger.info({ bundle: id, items: items.length, sizeBytes: data.sizeBytes }, 'a bundle was packed')
    await this.#step(summaryOf(record))
  }

  #holdPacking({ message: reason }: Refusal, ms: number): void {
    this.parts.logger.warn({ reason }, 'no bundle can be packed')
    this.#packing.hold(ms)
  }

  /** Nodes have its transaction. */
  #posted(bundle: BundleRecord): void {
    this.#fresh.delete(bundle.id)
    this.#packMore()
    const { reason: _, ...rest } = bundle
    this.parts.bundles.put({ ...rest, state: 'posted', attempts: 0, dueMs: this.parts.clock.now() })
  }

  /** Nodes refuse it, or have forgotten it. That is no failure of its items where it offers far less than nodes want. */
  async #giveUp(bundle: BundleRecord, reason: string, counts: boolean): Promise<void> {
    const price = await this.parts.chain.price(bundle.sizeBytes)
    const isCheap = !isRefusal(price) && rewardOf(bundle) * 10n < price * 9n
    if (isCheap) this.#drop(bundle, `its reward is below the price: ${reason}`, false)
    else this.#drop(bundle, reason, counts && !this.#posting.isPoor)
  }

  /** Some items of a bundle that was posted cannot be read: where that is for good the others are packed into another one. */
  #damaged(bundle: BundleRecord, items: readonly AcceptedItem[], how: Damage): Refusal | undefined {
    const { reason, isForGood } = this.#damagedBundles.note(bundle.id, items, how)
    if (!isForGood) return refuse('busy', 'self', reason)
    this.#drop(bundle, reason, false)
    return undefined
  }
}
