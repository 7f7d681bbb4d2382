import type { TransactionStatus } from '../../chain/chain.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { BundleRecord, BundleSummary } from './bundle-records.js'
import type { BundlerParts } from './bundler-parts.js'
import type { LostBundles } from './lost-bundles.js'
import { ReadBack } from './read-back.js'

/** A day of blocks: one node alone that still has it in a block of its own then follows a fork that is dead. */
const contestedBlocks = 720
/**
 * What most nodes have without a block is given up when all blocks are past that could take it, and stays so for so many usual
 * pauses, some two and a half hours: nodes forget by themselves what comes too late.
 */
const pendingPauses = 150
const takenBack = 'it is not deep in the chain any more'
const contradiction = 'nodes contradict each other about its block'
/** Bytes stay after they are permanent: the gateway reads them here until it has found them in their block. */
const keepMs = 3_600_000

/** Bundles of which nodes have taken everything: from there until their bytes are not needed here any more. */
export class SeededBundles {
  readonly #readBack: ReadBack

  /** `giveUp`: gets what will never be mined. */
  constructor(
    private readonly parts: BundlerParts,
    private readonly lost: LostBundles,
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
  }

  /** Whether it is deep enough in the chain. A refusal: it stays in its state. */
  async look(bundle: BundleSummary): Promise<Refusal | undefined> {
    const { bundles, chain, onMined, rules } = this.parts
    const status = await chain.agreedStatus(bundle.id)
    if (isRefusal(status) && status.refused !== 'unknown') return status
    if (isRefusal(status) || (status.kind === 'pending' && status.isUnknownToMost === true)) {
      await this.#denied(bundle.id, status)
      return undefined
    }
    // The others may not have it: one node alone had it, and passed it on to nobody.
    if (status.kind === 'pending' && status.isContested === true && this.lost.blocksOver(bundle) <= 0)
      await chain.postTransaction(bundles.known(bundle.id).transaction)
    if (status.kind === 'pending' && this.#isTooLate(bundle, status)) {
      await this.giveUp(bundles.known(bundle.id), 'it is in no block, and comes into none any more')
      return undefined
    }
    if (status.kind === 'mined') this.lost.forget(bundle.id)
    if (status.kind === 'mined' && bundle.height !== status.height) onMined(bundle.id)
    if (status.kind === 'pending' || status.confirmations < rules.depth) {
      this.#wait(bundle, status)
      return undefined
    }
    const record = { ...bundles.known(bundle.id), height: status.height }
    const shown = this.#shown(record)
    if (shown !== 'seen') return shown
    this.#makePermanent(record, status.height)
    return undefined
  }

  /** It is looked at later. */
  #wait(bundle: BundleSummary, status: TransactionStatus): void {
    const { bundles, clock, rules } = this.parts
    const dueMs = clock.now() + rules.lookMs
    const height = status.kind === 'pending' ? bundle.height : status.height
    const reason = this.#isContradiction(bundle, status) ? contradiction : undefined
    // A record may have ten thousand items, and nothing is lost where it is looked at too early.
    if (bundle.attempts === 0 && bundle.height === height && bundle.reason === reason) {
      bundles.delay(bundle.id, dueMs)
      return
    }
    const { reason: _, ...record } = bundles.known(bundle.id)
    if (reason !== undefined) this.parts.logger.warn({ bundle: bundle.id }, `a bundle waits: ${reason}`)
    const known = { ...(height === undefined ? {} : { height }), ...(reason === undefined ? {} : { reason }) }
    bundles.put({ ...record, attempts: 0, dueMs, ...known })
  }

  /** One node has had it in a block for a day, and neither do most others have it there nor do most deny it. */
  #isContradiction(bundle: BundleSummary, status: TransactionStatus): boolean {
    const isContested = status.kind === 'pending' && status.isContested === true
    return isContested && this.lost.blocksOver(bundle) > contestedBlocks
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
   * Most nodes do not know the transaction: its block was taken back, or nodes have lost what was not mined. While its anchor
   * holds it is posted once more, which costs nothing twice. It is looked at as often as one that is well, because its items wait
   * for it. One node alone that has it may be ahead of the others for some blocks; or for a day, where it has it in a block.
   */
  async #denied(id: Id, status: TransactionStatus | Refusal): Promise<void> {
    const { bundles, chain, clock, rules } = this.parts
    const overBlocks = this.lost.blocksOver(bundles.known(id))
    if (overBlocks <= 0) await chain.postTransaction(bundles.known(id).transaction)
    const isContested = !isRefusal(status) && status.kind === 'pending' && status.isContested === true
    const aheadBlocks = isRefusal(status) ? 0 : rules.depth + (isContested ? contestedBlocks : 0)
    const isOver = overBlocks > aheadBlocks
    if (!isOver) this.lost.forget(id)
    const { height, ...record } = bundles.known(id)
    if (isOver && this.lost.note(id)) {
      await this.giveUp(record, 'no node knows the transaction any more')
      return
    }
    const reason = isRefusal(status) ? status.message : 'most nodes do not know the transaction'
    const kept = isContested && height !== undefined ? { ...record, height } : record
    bundles.put({ ...kept, attempts: record.attempts + 1, dueMs: clock.now() + rules.lookMs, reason })
  }

  /** No block takes any more what most nodes have without one. */
  #isTooLate(bundle: BundleSummary, { isContested }: { readonly isContested?: true }): boolean {
    const isOver = isContested !== true && this.lost.blocksOver(bundle) > this.parts.rules.depth
    if (!isOver) this.lost.forget(bundle.id)
    return isOver && this.lost.note(bundle.id, pendingPauses)
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

  /**
   * The bytes of a permanent bundle are not needed here any more. As they cannot come back, nodes are queried once more: one that
   * is not deep in the chain any more waits again as before. A refusal: it is not known where it is, or whether anybody has its
   * data.
   */
  async release(bundle: BundleRecord): Promise<Refusal | undefined> {
    const { bundles, chain, clock, itemLog, logger, rules } = this.parts
    const status = await chain.agreedStatus(bundle.id)
    if (isRefusal(status) && status.refused !== 'unknown') return status
    if (isRefusal(status) || status.kind === 'pending' || status.confirmations < rules.depth) {
      logger.error({ bundle: bundle.id }, 'a bundle that was permanent is not deep in the chain any more')
      bundles.put({ ...bundle, state: 'seeded', attempts: 0, dueMs: clock.now(), reason: takenBack })
      return undefined
    }
    // Older releases did not look before they called it permanent.
    const shown = bundle.isSeen === true ? 'seen' : this.#shown(bundle)
    if (shown !== 'seen') return shown
    for (const { place } of bundles.release(bundle)) itemLog.release(place)
    return undefined
  }
}
