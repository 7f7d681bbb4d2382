import type { Clock } from '../../actor/clock.js'
import type { Id } from '../../format/id.js'
import type { ItemHeader } from '../../format/item.js'
import { isRefusal } from '../../format/refusal.js'
import { sha256 } from '../../proof/digest.js'
import { normalizedAddress } from '../../proof/owner-address.js'
import { fixedAnswers, textAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import type { KnownPosters } from './known-posters.js'
import { ownAddress, type PostedItem, type PostHistory } from './network-posts.js'
import type { BundlesHere } from './service-posts.js'

/** Refuses items that were posted before, where others pay for them than who posts them: credits, or the operator. */
export class RepostCheck {
  constructor(
    private readonly history: PostHistory,
    private readonly posters: KnownPosters,
    private readonly clock: Pick<Clock, 'now'>,
    private readonly bundles: Pick<BundlesHere, 'bundleOf'>,
  ) {}

  /**
   * The answer to an item in a bundle that was accepted and only scanned (`BundleScan`): it was paid for with the bundle. It has
   * no receipt, because nobody has checked its signature.
   */
  inScannedBundle(id: Id): UploadAnswer | undefined {
    const bundle = this.bundles.bundleOf(id)
    if (bundle === undefined) return undefined
    const text = `This item lies in the bundle ${bundle}, which was posted here before. It was not charged again`
    return textAnswer(409, text)
  }

  /**
   * The answer to an item that the network has: anybody could post it here, so its owner does not pay for it. Undefined: it is
   * new.
   *
   * A stranger can bring it about that no gateway states anything. Then a few items are taken all the same, from clients at whose
   * network the owner's items came in before. So paid uploads do not depend on the gateways of others, and a stranger on the same
   * network can make the owner pay for little.
   */
  async refusal(header: ItemHeader, bytes: number, { address }: Uploader): Promise<UploadAnswer | undefined> {
    const posted: PostedItem = {
      id: header.id,
      wallet: normalizedAddress(header.owner),
      bytes,
      client: address ?? ownAddress,
      isAtHome: this.posters.isHome(header, address, this.clock.now()),
      mayGoUnchecked: true,
    }
    const isKnown = await this.history.wasPosted(posted)
    if (isKnown === true) return fixedAnswers.postedBefore
    if (isRefusal(isKnown)) return textAnswer(503, isKnown.message, '\r\nRetry-After: 5')
    this.history.noteOutcome(posted, true)
    return undefined
  }

  /** It was accepted: its owner is there. Only inside a `write` of the tables. */
  record({ owner }: Pick<ItemHeader, 'owner'>, { address }: Uploader): void {
    if (address !== undefined) this.posters.record(sha256(owner), address, this.clock.now())
  }
}
