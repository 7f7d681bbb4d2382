import { FairSlots } from '../../actor/fair-slots.js'
import { encodeBase64url } from '../../format/base64url.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { MerkleTree } from '../../proof/merkle.js'
import { diskRefusal, isDiskError, isPlaceError, tryWrite } from '../../store/disk-error.js'
import type { AcceptedItem } from '../records/uploads.js'
import { BundleData } from './bundle-data.js'
import type { BundleRecord, BundleSummary } from './bundle-records.js'
import type { BundlerParts } from './bundler-parts.js'
import { againMaxMs, isResending } from './due.js'
import { unseenWaitMs } from './read-back.js'
import type { ReadableData } from './readable-data.js'
import { retryLater } from './retrying.js'
import { postChunks } from './seeding.js'

/** Bundles that are sent at once for the first time, each with a tree of some MB; and the large ones among them. */
const [firstMax, largeMax] = [8, 4] as const
const largeBytes = 2 ** 28
/** Bundles at once that are sent again. */
const againMax = 1
/** Chunks at once of all bundles, by turns; of one that is sent for the first time; and of one that is sent again. */
const [chunksMax, firstChunks, againChunks] = [8, 4, 1] as const
/** After so many attempts, some minute, one node is enough: what the others do not take they get from that one. */
const bothMax = 6
/** A disk that failed is looked at again so soon: only a failure that lasts decides anything. */
const damagedAgainMs = 300_000

/** Its items cannot be read; or all can, and they are not what was signed. */
export type Damage = 'unreadable' | 'other'

export interface SendingActs {
  /** `items`: of it that are kept. Undefined: it is dropped. */
  damaged(bundle: BundleRecord, items: readonly AcceptedItem[], how: Damage): Refusal | undefined
  /** All of its bytes could be read. */
  whole(bundle: Id): void
}

interface Run {
  readonly isAgain: boolean
  readonly isLarge: boolean
  readonly over: Promise<void>
}

interface Attempt {
  readonly bundle: BundleRecord
  /** Those of it that are kept. */
  readonly items: readonly AcceptedItem[]
  readonly isAgain: boolean
  /** Chunks before this one were taken, by these nodes. */
  to: number
  readonly takers: Set<string>
}

/**
 * Sends the chunks of bundles whose transactions nodes have: for the first time, and again where nobody shows them. Beside the
 * rounds of the bundler, and several bundles by turns, so that neither slow nodes nor a large bundle delay the others. Where a
 * bundle was not sent to its end, the next attempt goes on from there.
 */
export class Sending {
  readonly #trees = new Map<Id, MerkleTree>()
  readonly #running = new Map<Id, Run>()
  readonly #turns = new FairSlots({ max: chunksMax, waitingMax: Number.POSITIVE_INFINITY, isBrief: true })
  readonly #failures: unknown[] = []
  #isClosed = false

  constructor(
    private readonly parts: BundlerParts,
    private readonly readable: Pick<ReadableData, 'tree'>,
    private readonly acts: SendingActs,
  ) {}

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#running.values()].map(({ over }) => over))
  }

  /** The tree of a bundle that is about to be sent: else it is read once more. */
  keep(id: Id, tree: MerkleTree): void {
    if (this.#trees.size < firstMax) this.#trees.set(id, tree)
  }

  /** It is not sent any more. */
  forget(id: Id): void {
    this.#trees.delete(id)
  }

  /** Begins with those that have waited longest, while there are places. Returns the bugs at which earlier ones ended. */
  begin(due: readonly BundleSummary[]): unknown[] {
    for (const bundle of [...due].sort((one, other) => one.dueMs - other.dueMs)) {
      if (this.#isClosed) break
      if (!this.#running.has(bundle.id) && this.#hasPlace(bundle)) this.#begin(bundle)
    }
    return this.#failures.splice(0)
  }

  #hasPlace(bundle: BundleSummary): boolean {
    const all = [...this.#running.values()]
    if (isResending(bundle)) return all.filter(({ isAgain }) => isAgain).length < againMax
    const first = all.filter(({ isAgain }) => !isAgain)
    const isLargeFull = first.filter(({ isLarge }) => isLarge).length >= largeMax
    return first.length < firstMax && !(bundle.sizeBytes > largeBytes && isLargeFull)
  }

  #begin(bundle: BundleSummary): void {
    const { bundles, clock } = this.parts
    const { id } = bundle
    const isAgain = isResending(bundle)
    const over = this.#send(id, isAgain)
      .catch((error: unknown) => {
        bundles.delay(id, clock.now() + againMaxMs)
        this.#failures.push(error)
      })
      .finally(() => {
        this.#running.delete(id)
      })
    this.#running.set(id, { isAgain, isLarge: bundle.sizeBytes > largeBytes, over })
  }

  async #send(id: Id, isAgain: boolean): Promise<void> {
    const { bundles, uploads } = this.parts
    const bundle = bundles.known(id)
    const items = bundle.items.flatMap((item) => uploads.find(item) ?? [])
    const attempt = { bundle, items, isAgain, to: bundle.resentTo ?? 0, takers: new Set(bundle.takenBy) }
    const outcome = await this.#post(attempt).catch((error: unknown) => {
      if (!isDiskError(error) && !isPlaceError(error)) throw error
      return diskRefusal(error)
    })
    // An operator may have ordered something else meanwhile.
    if (bundles.stateOf(id) !== 'posted') return
    if (this.#isClosed) return this.#pause(attempt)
    const isDamaged = outcome === 'unreadable' || outcome === 'other'
    const refusal = isDamaged ? this.acts.damaged(bundle, items, outcome) : outcome
    if (bundles.stateOf(id) !== 'posted') return
    if (isAgain) this.#sentAgain(attempt, refusal, isDamaged)
    else this.#sentFirst(attempt, refusal)
  }

  #isOver(id: Id): boolean {
    return this.#isClosed || this.parts.bundles.stateOf(id) !== 'posted'
  }

  /** Undefined: all was taken, or nothing more is to be sent. */
  async #post(attempt: Attempt): Promise<Damage | Refusal | undefined> {
    const { bundle, items, isAgain } = attempt
    const { id } = bundle
    const data = new BundleData(items, this.parts.logFolder)
    const tree = this.#trees.get(id) ?? (await this.readable.tree(data, items))
    // What fails may be due to the bytes: the next attempt compares them.
    this.#trees.delete(id)
    if (tree === undefined) return 'unreadable'
    const { data_root: signed } = bundle.transaction as { readonly data_root?: string }
    if (encodeBase64url(tree.root) !== signed) return 'other'
    this.acts.whole(id)
    const wanted = bundle.missing && new Set(bundle.missing)
    return postChunks(data, tree, {
      broadcast: this.parts.broadcast,
      atOnce: isAgain ? againChunks : firstChunks,
      turns: { slots: this.#turns, client: id },
      from: attempt.to,
      isOneEnough: isAgain || bundle.attempts >= bothMax,
      isOver: () => this.#isOver(id),
      isWanted: (index) => wanted?.has(index) !== false,
      onTaken: (to, nodes) => {
        attempt.to = to
        for (const node of nodes) attempt.takers.add(node)
      },
    })
  }

  /** The program ends. */
  #pause({ bundle: { id, resentTo = 0 }, to, takers }: Attempt): void {
    const { bundles } = this.parts
    if (to <= resentTo) return
    // Else the next start sends it once more.
    tryWrite(() => bundles.put({ ...bundles.known(id), resentTo: to, takenBy: [...takers] }))
  }

  #sentFirst({ bundle: { id }, to, takers }: Attempt, refusal: Refusal | undefined): void {
    const { bundles, clock } = this.parts
    const { resentTo = 0, ...record } = bundles.known(id)
    const takenBy = [...takers]
    if (refusal !== undefined) {
      const came = to > resentTo ? { attempts: 0 } : {}
      retryLater(this.parts, id, refusal, { ...came, ...(to > 0 ? { resentTo: to, takenBy } : {}) })
      return
    }
    const { reason: _, ...rest } = record
    const kept = tryWrite(() =>
      bundles.put({ ...rest, state: 'seeded', attempts: 0, dueMs: clock.now(), takenBy }),
    )
    if (isRefusal(kept)) retryLater(this.parts, id, kept)
  }

  /** Nodes may show its data whether they took it again or not: it is looked at later in both cases. */
  #sentAgain(
    { bundle: { id }, to, takers }: Attempt,
    refusal: Refusal | undefined,
    isDamaged: boolean,
  ): void {
    const { bundles, clock, rules } = this.parts
    const { missing, resentTo: _, ...record } = bundles.known(id)
    const dueMs = clock.now() + (isDamaged ? damagedAgainMs : unseenWaitMs(record.unseen ?? 1, rules.lookMs))
    const next = { ...record, state: 'seeded' as const, attempts: 0, dueMs }
    const left = { ...(missing === undefined ? {} : { missing }), ...(to === 0 ? {} : { resentTo: to }) }
    const kept = tryWrite(() =>
      bundles.put(
        refusal === undefined
          ? { ...next, takenBy: [...takers] }
          : { ...next, ...left, unshown: 'untaken', reason: refusal.message },
      ),
    )
    // Else all of it is sent once more with the next round, while the disk is full.
    if (isRefusal(kept)) bundles.delay(id, clock.now() + damagedAgainMs)
  }
}
