import type { Clock } from '../../actor/clock.js'
import type { ItemHeader } from '../../format/item.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { tagValue } from '../../format/tag.js'
import {
  type Checked,
  type CheckOrder,
  type CreditsPort,
  isDenied,
  type RevokeOrder,
} from '../../payment/credits-port.js'
import { normalizedAddress } from '../../proof/owner-address.js'
import { paymentAway, textAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import { addressShape, type Uploader } from '../requests/uploader.js'
import { payerOf } from './credit-charging.js'
import type { KnownPosters } from './known-posters.js'
import { ownAddress, type PostedItem, type PostHistory } from './network-posts.js'

/** An order about shared credits that was carried out. */
export interface SharingOutcome {
  /** Fields that the answer to the upload has besides those of the receipt. */
  readonly answerFields: object
}

/** The tags by which an item shares credits of its signer, or takes them back. */
const tags = {
  approve: 'x-approve-payment',
  amount: 'x-amount',
  expires: 'x-expires-seconds',
  revoke: 'x-delete-payment-approval',
} as const

/** Tags by which an item moves credits of its signer, in lower case. */
export const movingTags: ReadonlySet<string> = new Set(Object.values(tags))

/** Prefixes of the payment service's messages. Clients expect the space before the colon. */
const unable = {
  approve: 'Unable to create delegated payment approval : ',
  revoke: 'Unable to revoke delegated payment approval : ',
} as const

/**
 * Status of an answer to a denied order, whatever the payment service used. Clients of the network take 402 as an unpaid item.
 */
const deniedStatus = 400

/** The words in which the payment service denies orders of a wallet that has nothing to move. */
const nothingToMove = {
  approve: (payer: string) => `Insufficient balance for '${payer}'`,
  revoke: (payer: string, approved: string) =>
    `No valid approvals found for approved address '${approved}' and paying address '${payer}'`,
} as const

const seenBefore = 'the item was posted to the network before. Sign a new one for this service'

/**
 * Carries out the orders for shared credits in the tags of an item, by the name of the item: the same item again shares nothing
 * more. Only for items that are taken for the first time, here and in the network: anybody may post an item again. An old one
 * must not end younger approvals, and one that was meant for another service must not move credits of this one.
 */
export class Sharing {
  constructor(
    private readonly credits: Pick<CreditsPort, 'approve' | 'revoke' | 'check'>,
    private readonly history: PostHistory,
    private readonly posters: Pick<KnownPosters, 'isHome'>,
    private readonly clock: Pick<Clock, 'now'>,
  ) {}

  /** What to add to the answer; undefined: the item is about something else. An answer: the item must not be taken. */
  async act(header: ItemHeader, uploader: Uploader): Promise<SharingOutcome | UploadAnswer | undefined> {
    const approved = tagValue(header.tags, tags.approve)
    const revoked = tagValue(header.tags, tags.revoke)
    if (approved === undefined && revoked === undefined) return undefined
    const order = approved === undefined ? 'revoke' : 'approve'
    // Before any question about it: what is not even an order costs its sender nothing.
    const fault = order === 'approve' ? faultOf(header) : undefined
    if (fault !== undefined) return deniedOrder(order, fault)
    const posted: PostedItem = {
      id: header.id,
      wallet: normalizedAddress(header.owner),
      bytes: 0,
      client: uploader.address ?? ownAddress,
      isAtHome: this.posters.isHome(header, uploader.address, this.clock.now()),
      // An order is given for a new item alone, from wherever it comes.
      mayGoUnchecked: false,
    }
    const refused = await this.#refused(header, uploader, order, posted)
    if (refused !== undefined) return refused
    const { address: payingAddress, alias: payingAlias } = payerOf(header, uploader)
    const named = { itemId: header.id, payingAddress }
    const pair = payingAlias === undefined ? named : { ...named, payingAlias }
    const outcome =
      approved === undefined
        ? await this.#revoke({ ...pair, approvedAddress: revoked ?? '' })
        : await this.#approve(header, { ...pair, approvedAddress: approved })
    this.history.noteOutcome(posted, false)
    return outcome
  }

  async #revoke(order: RevokeOrder): Promise<SharingOutcome | UploadAnswer> {
    const ended = await this.credits.revoke(order)
    if (isRefusal(ended)) return paymentAway(order.itemId)
    return isDenied(ended) ? deniedOrder('revoke', ended.text) : { answerFields: { revokedApprovals: ended } }
  }

  async #approve({ tags: given }: ItemHeader, pair: RevokeOrder): Promise<SharingOutcome | UploadAnswer> {
    const expires = tagValue(given, tags.expires)
    const created = await this.credits.approve({
      ...pair,
      winc: tagValue(given, tags.amount) ?? '',
      ...(expires === undefined ? {} : { expiresInSeconds: secondsOf(expires) }),
    })
    if (isRefusal(created)) return paymentAway(pair.itemId)
    return isDenied(created)
      ? deniedOrder('approve', created.text)
      : { answerFields: { createdApproval: created } }
  }

  /** Whether the wallet has what the order moves: an order that comes to nothing must not cost a question to all gateways. */
  async #hasEnough({ tags: given }: ItemHeader, own: Checked, check: CheckOrder): Promise<boolean | Refusal> {
    if (tagValue(given, tags.approve) !== undefined)
      return BigInt(own.balance) >= BigInt(tagValue(given, tags.amount) ?? '')
    const approved = tagValue(given, tags.revoke) ?? ''
    if (!addressShape.test(approved)) return false
    // What the approved wallet could spend of the payer's credits alone.
    const { signatureType, asker } = check
    const shared = await this.credits.check({
      address: approved,
      signatureType,
      paidBy: [check.address],
      directive: 'list-only',
      bytes: 0,
      ...(asker === undefined ? {} : { asker }),
    })
    return isRefusal(shared) ? shared : BigInt(shared.balance) > 0n
  }

  /** The answer to an order that is not carried out: no credits to move, or the item was posted before. Undefined: it is new. */
  async #refused(
    header: ItemHeader,
    uploader: Uploader,
    order: Order,
    posted: PostedItem,
  ): Promise<UploadAnswer | undefined> {
    // A wallet without credits has none to move, so no gateway gets a question. The order is denied here, and does not go to the
    // payment service: the first credits may come meanwhile.
    const { address } = uploader
    const check = { ...payerOf(header, uploader), paidBy: [], bytes: 0 }
    const asker = address === undefined ? {} : { asker: address }
    const checked = await this.credits.check({ ...check, ...asker })
    if (isRefusal(checked)) return paymentAway(header.id)
    const hasSome =
      !checked.isUnknownWallet && (await this.#hasEnough(header, checked, { ...check, ...asker }))
    if (isRefusal(hasSome)) return paymentAway(header.id)
    if (!hasSome) {
      const approved = tagValue(header.tags, tags.revoke) ?? ''
      return deniedOrder(order, nothingToMove[order](check.address, approved))
    }
    const isKnown = await this.history.wasPosted(posted)
    if (isRefusal(isKnown)) return textAnswer(503, isKnown.message, '\r\nRetry-After: 5')
    return isKnown ? deniedOrder(order, seenBefore) : undefined
  }
}

type Order = 'approve' | 'revoke'

function deniedOrder(order: Order, reason: string): UploadAnswer {
  const failed = order === 'approve' ? 'approval' : 'revoke'
  return { ...textAnswer(deniedStatus, unable[order] + reason), failed }
}

/** Why no payment service would share credits by these tags, in its words; undefined: it might. */
function faultOf({ tags: given }: ItemHeader): string | undefined {
  const expires = tagValue(given, tags.expires)
  if (!addressShape.test(tagValue(given, tags.approve) ?? '')) return 'Invalid approved address'
  if (!/^[1-9]\d{0,77}$/.test(tagValue(given, tags.amount) ?? '')) return 'Invalid winc amount'
  return expires !== undefined && secondsOf(expires) === 0 ? 'Invalid expiration' : undefined
}

/** 0 where it is no number of seconds: the payment service refuses it then. */
function secondsOf(text: string): number {
  return /^[1-9]\d{0,11}$/.test(text) ? Number(text) : 0
}
