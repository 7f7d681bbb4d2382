import type { Id } from '../../format/id.js'
import type { ItemHeader } from '../../format/item.js'
import type { Refusal } from '../../format/refusal.js'
import { canonicalAddress, isListed, nativeAddress } from '../../proof/owner-address.js'
import type { FreePools, FreeReservation, FreeUser } from '../records/free-pools.js'
import { jsonAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import type { RepostCheck } from './repost-check.js'

/** What an item costs: reserved until it is settled or refunded. */
export interface ItemCharge {
  /** Decimal. */
  readonly winc: string
  /** The free bytes that pay for it. */
  readonly free?: FreeReservation
  /** Name of the reservation, where that is not the id of the item. Who has named it settles it, too. */
  readonly heldAs?: string
  /** It was reserved before the items in a bundle could be counted: reserves for so many of them, or refunds it. */
  readonly withItems?: (itemsInside: number) => Promise<ChargeOutcome>
  /** The log has all that `record` writes: the receipt need not wait for that (`openIntake`). */
  readonly isLogged?: true
  /** Whether it is too late for `record`: somebody else may have what pays by now. Absent: it never is. */
  readonly isTooLate?: () => boolean
  /** Writes what must outlive a kill. `ItemTableWriter` calls it inside the transaction that accepts the item. */
  record(id: Id): void
  /** The item was not accepted. Resolves in a second at most, and then goes on by itself where it is not done. Never rejects. */
  refund(): Promise<void>
}

/** Either what is reserved, or why the item is not accepted. */
export type ChargeOutcome = ItemCharge | UploadAnswer | Refusal

/** In place of a charge where an item is paid in USDC: its purchase is settled after the item is stored. */
export const noCharge: ItemCharge = { winc: '0', record: () => undefined, refund: async () => undefined }

/** True where the item is charged; else the outcome is why it is not accepted. */
export function isCharge(value: ChargeOutcome): value is ItemCharge {
  return 'refund' in value
}

export interface Charging {
  /** Reserves what the item costs. Of free bytes, or of credits. `itemsInside`: of a bundle. */
  charge(
    header: ItemHeader,
    sizeBytes: number,
    uploader: Uploader,
    itemsInside?: number,
  ): Promise<ChargeOutcome>
  /** Whether an item of so many bytes could be paid for, before they come. Reserves nothing; undefined: it could. */
  foresee(header: ItemHeader, sizeBytes: number, uploader: Uploader): Promise<UploadAnswer | undefined>
  /** The item was accepted. */
  settle(id: Id, charge: Pick<ItemCharge, 'winc' | 'heldAs'>): void
  /** Refunds what an earlier process reserved and did not accept. Only once all accepted items are known here. */
  refundAbandoned(): void
}

/** Whose free bytes an item uses. */
export function freeUserOf({ signatureType, owner }: ItemHeader, { address }: Uploader): FreeUser {
  const wallet = canonicalAddress(signatureType, owner)
  return {
    wallet,
    name: nativeAddress(signatureType, owner),
    isExempt: (list) => isListed(list, signatureType, owner),
    range: address,
  }
}

/** What the free bytes pay; undefined where they do not reach. */
export async function freeCharge(
  pools: FreePools,
  user: FreeUser,
  sizeBytes: number,
): Promise<ItemCharge | undefined> {
  const reserved = await pools.reserve(user, sizeBytes)
  if (reserved === undefined) return undefined
  const refund = async (): Promise<void> => pools.refund(reserved)
  return {
    winc: '0',
    free: reserved,
    isLogged: true,
    record: () => pools.record(reserved),
    refund,
    async withItems(itemsInside) {
      await refund()
      return (await freeCharge(pools, { ...user, itemsInside }, sizeBytes)) ?? freeExhausted(sizeBytes)
    },
  }
}

/** An item that may be free. */
export interface FreeWanted {
  readonly header: ItemHeader
  readonly bytes: number
  readonly uploader: Uploader
  readonly itemsInside: number
}

/**
 * What the free bytes pay; undefined where they do not reach. The operator pays for all items of some wallets, of any size. Such
 * an item is refused where it was posted before, because anybody can post it again. An item in a bundle that was accepted here is
 * refused, too, unless the free bytes of its sender pay for it.
 */
export async function freeOrRefused(
  pools: FreePools,
  reposts: Pick<RepostCheck, 'inScannedBundle' | 'refusal' | 'record'>,
  { header, bytes, uploader, itemsInside }: FreeWanted,
): Promise<ItemCharge | UploadAnswer | undefined> {
  const user = { ...freeUserOf(header, uploader), itemsInside }
  const free = await freeCharge(pools, user, bytes)
  const isOfOperator = free !== undefined && uploader.address !== undefined && pools.isExempt(user)
  if (free !== undefined && !isOfOperator) return free
  const paid = reposts.inScannedBundle(header.id)
  if (paid !== undefined || free === undefined) return paid
  const refused = await reposts.refusal(header, bytes, uploader)
  if (refused !== undefined) return refused
  const record = (id: Id): void => {
    free.record(id)
    reposts.record(header, uploader)
  }
  return { ...free, record }
}

/** Takes what is free, and nothing else: for a service without a payment service. */
export class FreeOnly implements Charging {
  constructor(
    private readonly pools: FreePools,
    private readonly reposts: Pick<RepostCheck, 'inScannedBundle' | 'refusal' | 'record'>,
  ) {}

  async charge(
    header: ItemHeader,
    sizeBytes: number,
    uploader: Uploader,
    itemsInside = 0,
  ): Promise<ChargeOutcome> {
    const wanted = { header, bytes: sizeBytes, uploader, itemsInside }
    return (await freeOrRefused(this.pools, this.reposts, wanted)) ?? freeExhausted(sizeBytes)
  }

  async foresee(
    header: ItemHeader,
    sizeBytes: number,
    uploader: Uploader,
  ): Promise<UploadAnswer | undefined> {
    const isFree = this.pools.reservable(freeUserOf(header, uploader), sizeBytes) !== undefined
    return isFree ? undefined : freeExhausted(sizeBytes)
  }

  settle(): void {
    // Free bytes are spent when the item is written down.
  }

  refundAbandoned(): void {
    // Reservations of free bytes end with the process.
  }
}

/** The free bytes do not reach, and nobody else pays. */
export function freeExhausted(byteCount: number): UploadAnswer {
  const error = 'Insufficient balance'
  const message = 'The free bytes of this wallet or address are used up, or the item is too large to be free.'
  const body = { code: 'FREE_TIER_EXHAUSTED', error, message, byteCount }
  return jsonAnswer(402, body, '\r\nX-Free-Tier-Exhausted: true')
}
