import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { BundleRecord, BundleSummary } from './bundle-records.js'
import type { BundlerParts } from './bundler-parts.js'
import { ReadBack } from './read-back.js'

/** Nodes forget an anchor after so many blocks; a transaction that no node knows then is lost. */
const anchorBlocks = 50
/** A day of blocks: a node that still has it in a block of its own then follows a fork that is dead. */
const contestedBlocks = 720
/** So many looks say that no node knows it, and for so many usual pauses, before it is lost: it is paid for. */
const [lostLooks, lostPauses] = [3, 5] as const
/** Bytes stay after they are permanent: the gateway reads them here until it has found them in their block. */
const keepMs = 3_600_000

/** Bundles of which nodes have taken everything: from there until their bytes are not needed here any more. */
export class SeededBundles {
  readonly #readBack: ReadBack
  /** Those that no node knows: since when, and how many looks have shown so. */
  readonly #unknown = new Map<Id, { readonly sinceMs: number; readonly looks: number }>()

  /** `giveUp`: gets what will never be mined. */
  constructor(
    private readonly parts: BundlerParts,
    private readonly giveUp: (bundle: BundleRecord, reason: string) => Promise<void>,
  ) {
    this.#readBack = new ReadBack(parts)
  }

  close(): Promise<void> {
    return this.#readBack.close()
  }

  /** It is seeded no more. */
  forget(id: Id): void {
    this.#readBack.forget(id)
    this.#unknown.delete(id)
  }

  /** Whether it is deep enough in the chain. A refusal: it stays in its state. */
  async look(bundle: BundleSummary): Promise<Refusal | undefined> {
    const { bundles, chain, clock, onMined, rules } = this.parts
    const status = await chain.agreedStatus(bundle.id)
    if (isRefusal(status) && status.refused !== 'unknown') return status
    if (isRefusal(status)) {
      await this.#lost(bundle.id, status)
      return undefined
    }
    if (status.kind === 'pending' && this.#isTooLate(bundle, status)) {
      if (this.#isLost(bundle.id)) {
        await this.giveUp(bundles.known(bundle.id), 'it is in no block, and comes into none any more')
        return undefined
      }
    } else this.#unknown.delete(bundle.id)
    if (status.kind === 'mined' && bundle.height !== status.height) onMined(bundle.id)
    if (status.kind === 'pending' || status.confirmations < rules.depth) {
      const dueMs = clock.now() + rules.lookMs
      const height = status.kind === 'pending' ? bundle.height : status.height
      // A record may have ten thousand items, and nothing is lost where it is looked at too early.
      if (bundle.attempts === 0 && bundle.height === height) bundles.delay(bundle.id, dueMs)
      else
        bundles.put({
          ...bundles.known(bundle.id),
          attempts: 0,
          dueMs,
          ...(height === undefined ? {} : { height }),
        })
      return undefined
    }
    const record = { ...bundles.known(bundle.id), height: status.height }
    const shown = this.#shown(record)
    if (shown !== 'seen') return shown
    this.#makePermanent(record, status.height)
    return undefined
  }

  /** An operator answers for its data, which the nodes of this service do not show. */
  trust(bundle: BundleRecord): void {
    this.parts.logger.warn({ bundle: bundle.id }, 'a bundle counts as permanent because the operator says so')
    this.#makePermanent(bundle, bundle.height ?? 0)
  }

  #makePermanent(bundle: BundleRecord, height: number): void {
    const { bundles, clock, meters, logger, onPermanent } = this.parts
    const { reason: _, unshown: __, missing: ___, resentTo: ____, ...rest } = bundle
    const count = bundles.markPermanent(
      { ...rest, height, isSeen: true, dueMs: clock.now() + keepMs },
      height,
    )
    this.#readBack.forget(bundle.id)
    meters.of('upload_bundles_total', { outcome: 'permanent' }).add(1)
    onPermanent?.(bundle, height)
    logger.info({ bundle: bundle.id, items: count, height }, 'a bundle is permanent')
  }

  /**
   * No node knows the transaction: its block was taken back, or nodes have lost what was not mined. While its anchor holds it is
   * posted once more, which costs nothing twice. It is looked at as often as one that is well, because its items wait for it.
   */
  async #lost(id: Id, { message: reason }: Refusal): Promise<void> {
    const { bundles, chain, clock, height, rules } = this.parts
    const isForgotten = (height() ?? 0) > bundles.known(id).anchorHeight + anchorBlocks
    if (!isForgotten) await chain.postTransaction(bundles.known(id).transaction)
    const { height: _, ...record } = bundles.known(id)
    if (isForgotten && this.#isLost(id)) await this.giveUp(record, 'no node knows the transaction any more')
    else bundles.put({ ...record, attempts: record.attempts + 1, dueMs: clock.now() + rules.lookMs, reason })
  }

  /** No block takes it any more, whatever one node states; one that has it in a block may be ahead of the others for a while. */
  #isTooLate({ anchorHeight }: BundleSummary, { isContested }: { readonly isContested?: true }): boolean {
    const { height, rules } = this.parts
    const pastBlocks = (height() ?? 0) - anchorHeight - anchorBlocks - rules.depth
    return pastBlocks > (isContested === true ? contestedBlocks : 0)
  }

  #isLost(id: Id): boolean {
    const { clock, rules } = this.parts
    const nowMs = clock.monotonic()
    const { sinceMs, looks } = this.#unknown.get(id) ?? { sinceMs: nowMs, looks: 0 }
    this.#unknown.set(id, { sinceMs, looks: looks + 1 })
    return looks + 1 >= lostLooks && nowMs - sinceMs >= lostPauses * rules.lookMs
  }

  /**
   * Whether nodes have shown the data of a bundle that is deep enough. Until the look at it is over it waits; what nobody shows
   * is sent again. A refusal: no node answered.
   */
  #shown(bundle: BundleRecord): 'seen' | Refusal | undefined {
    const { bundles, clock, logger, rules } = this.parts
    const shown = this.#readBack.outcome(bundle)
    if (shown === undefined) bundles.delay(bundle.id, clock.now() + rules.lookMs)
    if (shown === undefined || shown === 'seen') return shown
    if ('refused' in shown) {
      if (bundle.unshown !== 'silent') bundles.put({ ...bundle, unshown: 'silent' })
      return shown
    }
    const unseen = (bundle.unseen ?? 0) + 1
    const { missing: _, resentTo, ...record } = bundle
    // What is known to be missing is sent; of all the rest, what was not sent yet.
    const left =
      shown.missing === undefined ? (resentTo === undefined ? {} : { resentTo }) : { missing: shown.missing }
    const reason = 'no node shows all of its data: its chunks are sent again'
    const line = { bundle: bundle.id, looks: unseen, chunks: shown.missing?.length ?? 'unknown' }
    logger.error(line, 'a bundle is deep in the chain, and its data is missing')
    const next = {
      state: 'posted',
      attempts: 0,
      dueMs: clock.now(),
      unseen,
      unshown: 'missing',
      reason,
    } as const
    bundles.put({ ...record, ...left, ...next })
    return undefined
  }

  /** The bytes of a permanent bundle are not needed here any more. A refusal: it is not known whether anybody has its data. */
  release(bundle: BundleRecord): Refusal | undefined {
    const { bundles, itemLog } = this.parts
    // Older releases did not look before they called it permanent.
    const shown = bundle.isSeen === true ? 'seen' : this.#shown(bundle)
    if (shown !== 'seen') return shown
    for (const { place } of bundles.release(bundle)) itemLog.release(place)
    return undefined
  }
}
