import type { Id } from '../../format/id.js'
import type { ItemHeader } from '../../format/item.js'
import type { Refusal } from '../../format/refusal.js'
import { canonicalAddress, isListed, nativeAddress } from '../../proof/owner-address.js'
import { jsonAnswer, type UploadAnswer } from '../calls/upload-answers.js'
import type { Uploader } from '../calls/uploader.js'
import type { FreePools, FreeTaker, Taken } from '../records/free-pools.js'
import type { OldItems } from './old-items.js'

/** What an item costs, held back until it is settled. */
export interface Charged {
  /** Decimal. */
  readonly winc: string
  /** What was taken of free bytes. */
  readonly free?: Taken
  /** Name under which it is held back, where that is not the id of the item. Who has named it settles it, too. */
  readonly heldAs?: string
  /** It was taken before the items in a bundle could be counted: takes for so many of them, or gives it back. */
  readonly withItems?: (itemsInside: number) => Promise<ItemCharge>
  /** The log has all that `keep` records: the receipt need not wait for that (`openIntake`). */
  readonly isLogged?: true
  /** Writes down what must not be forgotten. Only inside the transaction that accepts the item. */
  keep(id: Id): void
  /** The item was not accepted. Resolves in a second at most, and then goes on by itself where it is not over. Never rejects. */
  giveBack(): Promise<void>
}

/** Either what is held back, or why the item is not taken. */
export type ItemCharge = Charged | UploadAnswer | Refusal

/** A purchase is settled after the item is stored. */
export const unpaid: Charged = { winc: '0', keep: () => undefined, giveBack: async () => undefined }

export function isCharge(value: ItemCharge): value is Charged {
  return 'giveBack' in value
}

export interface Charging {
  /** Holds back what the item costs. Of free bytes, or of credits. `itemsInside`: of a bundle. */
  charge(header: ItemHeader, sizeBytes: number, uploader: Uploader, itemsInside?: number): Promise<ItemCharge>
  /** Whether an item of so many bytes could be paid for, before they come. Holds nothing back; undefined: it could. */
  foresee(header: ItemHeader, sizeBytes: number, uploader: Uploader): Promise<UploadAnswer | undefined>
  /** The item was accepted. */
  settle(id: Id, charge: Pick<Charged, 'winc' | 'heldAs'>): void
  /** All items that an earlier process had accepted are known here, those that a store brought back, too. */
  resume(): void
}

/** Who takes of free bytes for an item. */
export function freeTakerOf({ signatureType, owner }: ItemHeader, { range }: Uploader): FreeTaker {
  const wallet = canonicalAddress(signatureType, owner)
  return {
    wallet,
    name: nativeAddress(signatureType, owner),
    isExempt: (list) => isListed(list, signatureType, owner),
    range,
  }
}

/** What the free bytes pay; undefined where they do not reach. */
export async function freeCharge(
  pools: FreePools,
  taker: FreeTaker,
  sizeBytes: number,
): Promise<Charged | undefined> {
  const taken = await pools.takeOfAll(taker, sizeBytes)
  if (taken === undefined) return undefined
  const giveBack = async (): Promise<void> => pools.giveBack(taken)
  return {
    winc: '0',
    free: taken,
    isLogged: true,
    keep: () => pools.keep(taken),
    giveBack,
    async withItems(itemsInside) {
      await giveBack()
      return (await freeCharge(pools, { ...taker, itemsInside }, sizeBytes)) ?? freeExhausted(sizeBytes)
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
 * What the free bytes pay; undefined where they do not reach. Of a wallet whose items are all free, of any size, the operator
 * pays for each: so an item that was posted before, which anybody may post again, is refused. So is one that lies in a bundle
 * which was accepted here, unless the free bytes of who posts it pay for it.
 */
export async function freeOrRefused(
  pools: FreePools,
  old: Pick<OldItems, 'inBundle' | 'refused' | 'keep'>,
  { header, bytes, uploader, itemsInside }: FreeWanted,
): Promise<Charged | UploadAnswer | undefined> {
  const taker = { ...freeTakerOf(header, uploader), itemsInside }
  const free = await freeCharge(pools, taker, bytes)
  const isOfOperator = free !== undefined && uploader.range !== undefined && pools.isExempt(taker)
  if (free !== undefined && !isOfOperator) return free
  const paid = old.inBundle(header.id)
  if (paid !== undefined || free === undefined) return paid
  const refused = await old.refused(header, bytes, uploader)
  if (refused !== undefined) return refused
  const keep = (id: Id): void => {
    free.keep(id)
    old.keep(header, uploader)
  }
  return { ...free, keep }
}

/** Takes what is free, and nothing else: for a service without a payment service. */
export class FreeOnly implements Charging {
  constructor(
    private readonly pools: FreePools,
    private readonly old: Pick<OldItems, 'inBundle' | 'refused' | 'keep'>,
  ) {}

  async charge(
    header: ItemHeader,
    sizeBytes: number,
    uploader: Uploader,
    itemsInside = 0,
  ): Promise<ItemCharge> {
    const wanted = { header, bytes: sizeBytes, uploader, itemsInside }
    return (await freeOrRefused(this.pools, this.old, wanted)) ?? freeExhausted(sizeBytes)
  }

  async foresee(
    header: ItemHeader,
    sizeBytes: number,
    uploader: Uploader,
  ): Promise<UploadAnswer | undefined> {
    const isFree = this.pools.would(freeTakerOf(header, uploader), sizeBytes) !== undefined
    return isFree ? undefined : freeExhausted(sizeBytes)
  }

  settle(): void {
    // What is free is over when it is written down.
  }

  resume(): void {
    // Likewise.
  }
}

/** The free bytes do not reach, and nobody else pays. */
export function freeExhausted(byteCount: number): UploadAnswer {
  const error = 'Insufficient balance'
  const message = 'The free bytes of this wallet or address are used up, or the item is too large to be free.'
  const body = { code: 'FREE_TIER_EXHAUSTED', error, message, byteCount }
  return jsonAnswer(402, body, '\r\nX-Free-Tier-Exhausted: true')
}
