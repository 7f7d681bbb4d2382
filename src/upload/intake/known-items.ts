import type { Id } from '../../format/id.js'
import type { ItemHeader } from '../../format/item.js'
import { normalizedAddress } from '../../proof/owner-address.js'
import type { Sales } from '../charging/sales.js'
import { type AcceptedItem, isGivenUp, isGone, type Uploads } from '../records/uploads.js'
import { fixedAnswers, refusalAnswer, textAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { StoredUploads } from '../stored/stored-uploads.js'
import type { SharedItems } from './shared-items.js'
import type { Receipted } from './signed-receipts.js'

export interface KnownItemsParts {
  readonly uploads: Pick<Uploads, 'find' | 'around' | 'scannedBundleOf' | 'scanned' | 'unreadable'>
  readonly openSales: { readonly sales: Pick<Sales, 'openOf'> }
  /** Whether the chain has the item, as far as the index of this program knows. Absent: there is no index. */
  readonly isInBlock?: (id: Id) => boolean
  /** What other machines have accepted. Absent: there are none. */
  readonly listing?: Pick<SharedItems, 'receiptOf'>
  /** Until it is open, it may have items of this machine that the log lost. Absent: receipts do not wait for a store. */
  readonly objectStore?: Pick<StoredUploads, 'refusal'>
}

const unsure = textAnswer(
  503,
  'It is not known now whether another machine of this service has accepted this item: try again in some seconds',
  '\r\nRetry-After: 2',
)

/** What this service knows of items that are posted, and perhaps not for the first time. */
export class KnownItems {
  constructor(private readonly parts: KnownItemsParts) {}

  /** The accepted item; undefined where there is none, or where it was removed since. */
  accepted(id: Id): AcceptedItem | undefined {
    const item = this.parts.uploads.find(id)
    return item === undefined || isGone(item) ? undefined : item
  }

  /** The accepted item, where the disk does not give its bytes and it is in no bundle: whoever posts it again brings them. */
  damaged(id: Id): AcceptedItem | undefined {
    const item = this.parts.uploads.unreadable.has(id) ? this.accepted(id) : undefined
    return item?.bundle === undefined ? item : undefined
  }

  /**
   * What the receipt of an item in an opened bundle is made of: that of the bundle. The signature of the item was checked when
   * the bundle was opened (`InnerItems`). It was paid for with the bundle, and anybody can post it by itself again. Undefined: it
   * was found in none.
   */
  inOpenedBundle(header: ItemHeader): AcceptedItem | undefined {
    const { id } = header
    const around = this.parts.uploads.around(id)
    if (around === undefined || isGone(around) || isGivenUp(around)) return undefined
    return { ...around, id, owner: normalizedAddress(header.owner), winc: '0' }
  }

  /**
   * The same of an item that another machine has accepted: a client whose answer was lost sends it again to any machine. Else
   * the refusal of an item that is not to be charged. Undefined: it is new here. `height`: a receipt whose deadline has passed
   * counts no more.
   */
  async elsewhere(
    { id, owner }: ItemHeader,
    height: number | undefined,
  ): Promise<Receipted | UploadAnswer | undefined> {
    const { listing, objectStore: store } = this.parts
    const closed = store?.refusal
    if (closed !== undefined) return refusalAnswer(closed)
    const refused = this.refused(id)
    if (listing === undefined) return refused
    const facts = await listing.receiptOf(id)
    if (facts === undefined) return (refused ?? this.parts.uploads.scannedBundleOf(id)) && unsure
    if (facts === 'none') return refused
    const isLate = height === undefined || facts.deadlineHeight < height
    // What this machine had accepted and has no more, because it was removed or the disk was lost, is new again.
    return isLate || facts.isOwn === true ? refused : { ...facts, id, owner: normalizedAddress(owner) }
  }

  /**
   * The refusal of an item that lies in a bundle which is being paid for, or that the chain has already: whoever posts it again
   * must not make its owner pay again. One that lies in an uploaded bundle is refused where it is charged (`RepostCheck`).
   */
  refused(id: Id): UploadAnswer | undefined {
    if (this.parts.objectStore?.refusal !== undefined) return undefined
    const { uploads, openSales } = this.parts
    const stored = uploads.scanned.bundleOf(id)
    // Paid or not: that is known soon.
    if (stored !== undefined && openSales.sales.openOf(stored) !== undefined) return beingPaid(stored)
    return this.parts.isInBlock?.(id) === true ? fixedAnswers.postedBefore : undefined
  }
}

function beingPaid(bundle: Id): UploadAnswer {
  return textAnswer(
    503,
    `This item lies in the bundle ${bundle}, which is being paid for`,
    '\r\nRetry-After: 5',
  )
}
