import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { diskRefusal, isDiskError, isPlaceError, tryWrite } from '../../store/disk-error.js'
import type { AcceptedItem } from '../records/uploads.js'
import { BundleData } from './bundle-data.js'
import type { BundleRecord, BundleSummary } from './bundle-records.js'
import type { BundlerParts } from './bundler-parts.js'
import { unseenWaitMs } from './read-back.js'
import type { ReadableData } from './readable-data.js'
import { postChunks } from './seeding.js'

/** Whoever sends for the first time has the nodes for himself, almost. */
const atOnce = 1
/** A disk that failed is looked at again so soon: only a failure that lasts decides anything. */
const damagedAgainMs = 300_000

/**
 * Sends chunks again of bundles whose data nobody shows. One bundle at a time, and beside the rounds of the bundler: what is sent
 * for the first time waits for none of it.
 */
export class Resending {
  #running: Promise<void> | undefined
  #failure: { readonly error: unknown } | undefined
  #isClosed = false

  /** `onDamaged`: gets a bundle with the items of it that are kept, some of which cannot be read. `onWhole`: all could be. */
  constructor(
    private readonly parts: BundlerParts,
    private readonly readable: Pick<ReadableData, 'tree'>,
    private readonly onDamaged: (bundle: BundleRecord, items: readonly AcceptedItem[]) => Refusal | undefined,
    private readonly onWhole: (bundle: Id) => void,
  ) {}

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running
  }

  /** Begins with that which has waited longest, where none is under way. Throws the bug that the last one failed of. */
  begin(due: readonly BundleSummary[]): void {
    const failure = this.#failure
    this.#failure = undefined
    if (failure !== undefined) throw failure.error
    const [first, ...others] = due
    if (first === undefined || this.#running !== undefined || this.#isClosed) return
    const { id } = others.reduce((one, other) => (other.dueMs < one.dueMs ? other : one), first)
    this.#running = this.#resend(this.parts.bundles.known(id))
      .catch((error: unknown) => {
        this.#failure = { error }
      })
      .finally(() => {
        this.#running = undefined
      })
  }

  async #resend(bundle: BundleRecord): Promise<void> {
    const { bundles, uploads, logFolder } = this.parts
    const items = bundle.items.flatMap((id) => uploads.find(id) ?? [])
    const sent: { to: number | undefined } = { to: bundle.resentTo }
    const outcome = await this.#post(bundle, new BundleData(items, logFolder), items, sent).catch(
      (error: unknown) => {
        if (!isDiskError(error) && !isPlaceError(error)) throw error
        return diskRefusal(error)
      },
    )
    // An operator may have ordered something else meanwhile.
    if (this.#isOver(bundle)) return
    const refusal = outcome === undefined ? this.onDamaged(bundle, items) : outcome
    if (bundles.stateOf(bundle.id) !== 'posted' || refusal === undefined) return
    const pauseMs = outcome === undefined ? damagedAgainMs : undefined
    const kept = tryWrite(() => this.#record(bundle, refusal, sent.to, pauseMs))
    // Else all of it is sent once more with the next round, while the disk is full.
    if (isRefusal(kept)) bundles.delay(bundle.id, this.parts.clock.now() + damagedAgainMs)
  }

  #isOver({ id }: BundleRecord): boolean {
    return this.#isClosed || this.parts.bundles.stateOf(id) !== 'posted'
  }

  /** Undefined: some items cannot be read. */
  async #post(
    bundle: BundleRecord,
    data: BundleData,
    items: readonly AcceptedItem[],
    sent: { to: number | undefined },
  ): Promise<ReadonlySet<string> | Refusal | undefined> {
    const tree = await this.readable.tree(data, items)
    if (tree === undefined) return undefined
    this.onWhole(bundle.id)
    const { missing, resentTo = 0 } = bundle
    const wanted = missing && new Set(missing)
    return postChunks(data, tree, {
      broadcast: this.parts.broadcast,
      atOnce,
      isOver: () => this.#isOver(bundle),
      isWanted: (index) => index >= resentTo && wanted?.has(index) !== false,
      onTaken: (index) => {
        sent.to = index + 1
      },
    })
  }

  /** Nodes may show its data whether they took it again or not: it is looked at later in both cases. */
  #record(
    bundle: BundleRecord,
    outcome: ReadonlySet<string> | Refusal,
    resentTo: number | undefined,
    pauseMs: number | undefined,
  ): void {
    const { bundles, clock, rules } = this.parts
    const { missing, resentTo: _, ...record } = bundles.known(bundle.id)
    const dueMs = clock.now() + (pauseMs ?? unseenWaitMs(record.unseen ?? 1, rules.lookMs))
    const next = { ...record, state: 'seeded' as const, attempts: 0, dueMs }
    if (!isRefusal(outcome)) {
      const takenBy = [...new Set([...(record.takenBy ?? []), ...outcome])]
      bundles.put({ ...next, takenBy })
      return
    }
    const left = {
      ...(missing === undefined ? {} : { missing }),
      ...(resentTo === undefined ? {} : { resentTo }),
    }
    bundles.put({ ...next, ...left, unshown: 'untaken', reason: outcome.message })
  }
}
