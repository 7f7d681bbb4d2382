import { Backoff } from '../../actor/backoff.js'
import type { Timer } from '../../actor/clock.js'
import { type Id, idOfBytes } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { tagOf } from '../../format/tag.js'
import { transactionJson } from '../../format/transaction.js'
import { sha256 } from '../../proof/digest.js'
import type { MerkleTree } from '../../proof/merkle.js'
import { signatureData } from '../../proof/transaction-proof.js'
import { diskRefusal, isDiskError, isPlaceError, tryWrite } from '../../store/disk-error.js'
import type { AcceptedItem } from '../records/uploads.js'
import { BundleData } from './bundle-data.js'
import { type BundleRecord, type BundleSummary, summaryOf } from './bundle-records.js'
import type { BundlerParts } from './bundler-parts.js'
import { DamagedBundles } from './damaged-bundles.js'
import { againMaxMs, isFirstSending, isResending, isSending, isStepDue } from './due.js'
import { NextBundle } from './next-bundle.js'
import { ReadableData } from './readable-data.js'
import { Resending } from './resending.js'
import { SeededBundles } from './seeded-bundles.js'
import { postChunks } from './seeding.js'

/** Between two rounds while there is nothing to do. */
const idleEveryMs = 1000
/** Bundles at once that are not sent to their end: each may hold a tree of some MB. Those that wait for their depth hold none. */
const openMax = 8
/** Bundles whose transactions are requested at once. */
const looksAtOnce = 16
/** Until a failed step is tried again; doubles up to the longest. */
const againMs = 1000
/** Longest pause before items of bundles that were given up are packed again. */
const packAgainMaxMs = 1_800_000
const stepsMax = 20
/** Until a step is tried again whose end could not be written. */
const fullAgainMs = 30_000
/** Chunks that are posted at once. */
const chunksAtOnce = 4

/** Brings accepted items onto the chain. Every step is on disk before the next begins; whatever fails is tried again. */
export class Bundler {
  readonly #trees = new Map<Id, MerkleTree>()
  #timer: Timer | undefined
  #everyMs: number | undefined
  #running: Promise<void> | undefined
  #isClosed = false
  /** Logged once, and not four times a second. */
  #isFailing = false
  readonly #orders: (() => void)[] = []
  readonly #next: NextBundle
  readonly #seeded: SeededBundles
  readonly #resending: Resending
  readonly #damagedBundles: DamagedBundles
  readonly #readable: ReadableData
  /** Nothing is packed while it is on. Bundles that nodes refuse one after the other make it longer. */
  readonly #packing: Backoff
  /** Packed since the last one that made it longer, and not posted yet. */
  readonly #fresh = new Set<Id>()
  /** The wallet had too little when the last transaction was refused. */
  #isPoor = false

  constructor(private readonly parts: BundlerParts) {
    const restMs = 2 * againMs
    this.#packing = new Backoff({ failuresMax: 1, restMs, restMaxMs: packAgainMaxMs }, parts.clock)
    this.#next = new NextBundle(parts.uploads, parts.rules, parts.clock)
    this.#seeded = new SeededBundles(parts, (bundle, reason) => this.#giveUp(bundle, reason))
    this.#readable = new ReadableData(parts)
    this.#damagedBundles = new DamagedBundles(parts.uploads.unreadable, parts.clock)
    this.#resending = new Resending(
      parts,
      this.#readable,
      (bundle, items) => this.#damaged(bundle, items),
      (bundle) => this.#damagedBundles.remove(bundle),
    )
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
    this.#drop(bundle, reason)
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
    await Promise.all([this.#running, this.#seeded.close(), this.#resending.close()])
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
    const allDue = (): BundleSummary[] =>
      bundles.open().filter((bundle) => isStepDue(bundle, clock.now(), rules.lookMs))
    const due = allDue()
    const failures: unknown[] = []
    // A record that cannot be read, or a bug, keeps one bundle waiting, and no others.
    const step = (bundle: BundleSummary): Promise<void> =>
      this.#step(bundle).catch((error: unknown) => {
        bundles.delay(bundle.id, clock.now() + againMaxMs)
        failures.push(error)
      })
    for (const bundle of due.filter((one) => isSending(one) && !isResending(one))) {
      if (this.#isClosed) return
      await step(bundle)
    }
    const resting = due.filter((one) => !isSending(one)).sort((one, other) => one.dueMs - other.dueMs)
    await Promise.all(resting.slice(0, looksAtOnce).map(step))
    if (bundles.open().filter(isFirstSending).length < openMax && !this.#isClosed) await this.#pack()
    this.#resending.begin(allDue().filter(isResending))
    if (failures.length > 0) throw failures[0]
    const isBusy = uploads.waiting > 0 || bundles.open().length > 0
    this.#schedule(isBusy ? rules.everyMs : Math.max(rules.everyMs, idleEveryMs))
  }

  async #step(summary: BundleSummary): Promise<void> {
    // One bundle that fails delays no other.
    const outcome = await this.#nextState(summary).catch((error: unknown) => {
      if (!isDiskError(error) && !isPlaceError(error)) throw error
      return diskRefusal(error)
    })
    if (outcome !== undefined) this.#retryLater(summary.id, outcome)
  }

  /** A refusal: the bundle stays in its state. */
  async #nextState(summary: BundleSummary): Promise<Refusal | undefined> {
    const { id, state } = summary
    if (state === 'packed') return this.#post(this.#record(id))
    if (state === 'posted') return this.#seed(this.#record(id))
    if (state === 'seeded') return this.#seeded.look(summary)
    return this.#seeded.release(this.#record(id))
  }

  #record(id: Id): BundleRecord {
    return this.parts.bundles.known(id)
  }

  #retryLater(id: Id, { message }: Refusal): void {
    const { bundles, clock, logger } = this.parts
    const bundle = this.#record(id)
    const attempts = bundle.attempts + 1
    const waitMs = Math.min(againMs * 2 ** bundle.attempts, againMaxMs)
    // Nodes have it, so it is paid for: whether it is in a block is looked at, and what they do not show then is sent again.
    if (attempts > stepsMax && bundle.state === 'posted') {
      bundles.put({ ...bundle, state: 'seeded', attempts: 0, dueMs: clock.now(), reason: message })
      return
    }
    if (attempts % 5 === 0)
      logger.warn({ bundle: bundle.id, state: bundle.state, reason: message }, 'a bundle does not get on')
    const dueMs = clock.now() + waitMs
    const kept = tryWrite(() => bundles.put({ ...bundle, attempts, dueMs, reason: message }))
    // How often it was tried is not known then, and the next try may send all bytes once more.
    if (isRefusal(kept)) bundles.delay(id, Math.max(dueMs, clock.now() + fullAgainMs))
  }

  #drop(bundle: BundleRecord, reason: string, counts = !this.#isPoor): undefined {
    const { givenUp, left } = this.parts.bundles.drop(bundle, reason, counts)
    for (const { place } of left) this.parts.itemLog.release(place)
    this.parts.logger.error({ bundle: bundle.id, reason }, 'a bundle was dropped: its items are packed again')
    this.#trees.delete(bundle.id)
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
    const { bundles, chain, clock, height, logFolder, owner, logger, signing } = this.parts
    if (this.#packing.isOn) return
    const items = this.#next.items()
    const anchorHeight = height()
    if (items.length === 0 || anchorHeight === undefined) return
    const data = new BundleData(items, logFolder)
    const [anchor, reward] = await Promise.all([chain.anchor(), chain.price(data.sizeBytes)])
    if (isRefusal(anchor) || isRefusal(reward)) {
      return this.#holdPacking(isRefusal(anchor) ? anchor : (reward as Refusal), againMs)
    }
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
      lastTx: Buffer.from(anchor, 'base64url'),
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
      anchorHeight,
      createdMs: now,
      attempts: 0,
      dueMs: now,
    }
    const kept = tryWrite(() => bundles.pack(record, items, data.offsets))
    if (isRefusal(kept)) return this.#holdPacking(kept, fullAgainMs)
    this.#trees.set(id, tree)
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

  #advance(bundle: BundleRecord, state: BundleRecord['state']): void {
    const { reason: _, ...rest } = bundle
    this.parts.bundles.put({ ...rest, state, attempts: 0, dueMs: this.parts.clock.now() })
  }

  async #post(bundle: BundleRecord): Promise<Refusal | undefined> {
    const { address, chain, logger } = this.parts
    const isTakenOver = (await this.parts.isTakenOver?.(bundle.items)) === true
    // Before it is given up: the answer to an earlier post may be lost, by a kill, a full disk or a proxy.
    if (isTakenOver || bundle.attempts > stepsMax) {
      const there = await this.#there(bundle.id)
      const reason = isTakenOver ? 'another machine of the cluster has taken over its items' : bundle.reason
      if (there === 'known') return this.#posted(bundle)
      if (there === 'absent')
        return this.#drop(bundle, reason ?? 'no node takes it', !isTakenOver && !this.#isPoor)
      if (isTakenOver) return there
    }
    // The same transaction again costs nothing.
    const posted = await chain.postTransaction(bundle.transaction)
    if (!isRefusal(posted)) return this.#posted(bundle)
    const balance = await chain.balance(address)
    const reward = this.#rewards(bundle)
    this.#isPoor = !isRefusal(balance) && balance < reward
    if (this.#isPoor) {
      logger.error(
        { address, balance: String(balance), reward: String(reward) },
        'the wallet of the upload service has too little',
      )
      return posted
    }
    if (posted.refused !== 'malformed') return posted
    const there = await this.#there(bundle.id)
    if (there === 'known') return this.#posted(bundle)
    if (there !== 'absent') return there
    await this.#giveUp(bundle, posted.message)
    return undefined
  }

  /** Nodes have it. */
  #posted(bundle: BundleRecord): undefined {
    this.#fresh.delete(bundle.id)
    this.#packMore()
    this.#isPoor = false
    this.#advance(bundle, 'posted')
  }

  /** Whether nodes have a transaction. A refusal: they do not state it. */
  async #there(id: Id): Promise<'known' | 'absent' | Refusal> {
    const status = await this.parts.chain.agreedStatus(id)
    if (!isRefusal(status)) return 'known'
    return status.refused === 'unknown' ? 'absent' : status
  }

  /** Nodes refuse it, or have forgotten it. That is no failure of its items where it offers far less than nodes want. */
  async #giveUp(bundle: BundleRecord, reason: string): Promise<void> {
    const price = await this.parts.chain.price(bundle.sizeBytes)
    const isCheap = !isRefusal(price) && rewardOf(bundle) * 10n < price * 9n
    if (isCheap) this.#drop(bundle, `its reward is below the price: ${reason}`, false)
    else this.#drop(bundle, reason)
  }

  /** What this bundle costs, with those that nodes have and that may not be mined yet. */
  #rewards(bundle: BundleRecord): bigint {
    const { bundles } = this.parts
    const isUnpaid = ({ id, state, height }: BundleSummary): boolean =>
      id !== bundle.id && state !== 'packed' && height === undefined
    const open = bundles.open().filter(isUnpaid)
    const all = [bundle, ...open.flatMap(({ id }) => bundles.find(id) ?? [])]
    return all.reduce((sum, one) => sum + rewardOf(one), 0n)
  }

  async #seed(bundle: BundleRecord): Promise<Refusal | undefined> {
    const { uploads, logFolder, broadcast } = this.parts
    const items = bundle.items.flatMap((id) => uploads.find(id) ?? [])
    const data = new BundleData(items, logFolder)
    const tree = this.#trees.get(bundle.id) ?? (await this.#readable.tree(data, items))
    // What fails may be due to the bytes: the next attempt compares them.
    this.#trees.delete(bundle.id)
    if (tree === undefined) return this.#damaged(bundle, items)
    this.#damagedBundles.remove(bundle.id)
    const takers = await postChunks(data, tree, {
      broadcast,
      atOnce: chunksAtOnce,
      isOver: () => this.#isClosed,
      isWanted: () => true,
    })
    if (isRefusal(takers) || this.#isClosed) return isRefusal(takers) ? takers : undefined
    const takenBy = [...new Set([...(bundle.takenBy ?? []), ...takers])]
    this.#advance({ ...bundle, takenBy }, 'seeded')
    return undefined
  }

  /** Some items of a bundle that was posted cannot be read: where that is for good the others are packed into another one. */
  #damaged(bundle: BundleRecord, items: readonly AcceptedItem[]): Refusal | undefined {
    const { lost, isForGood } = this.#damagedBundles.note(bundle.id, items)
    const reason = `${lost} of its items cannot be read`
    if (!isForGood) return refuse('busy', 'self', reason)
    this.#drop(bundle, reason, false)
    return undefined
  }
}

function rewardOf({ transaction }: BundleRecord): bigint {
  return BigInt((transaction as { readonly reward: string }).reward)
}
