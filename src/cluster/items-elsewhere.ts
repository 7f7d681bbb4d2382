import type { Id } from '../format/id.js'

/** What the receipt of an item states beside its id and owner. */
export interface ReceiptFacts {
  /** Milliseconds since 1970. */
  readonly receivedMs: number
  readonly deadlineHeight: number
  /** Decimal. */
  readonly winc: string
  /** Name of the reservation that pays for it, where this is not its id: that of an upload in parts. */
  readonly paidWith?: string
  /** Bytes of an item with `paidWith`. */
  readonly sizeBytes?: number
}

/** A receipt as the cluster lists it. */
export interface ListedReceipt extends ReceiptFacts {
  /** This machine has accepted it. */
  readonly isOwn?: true
}

/** An item that was accepted here, or that lies in a bundle that was. */
export interface ItemElsewhere {
  /** 32 bytes. */
  readonly id: Uint8Array
  /** Id of the bundle; its own id where it was accepted alone. */
  readonly bundle: Uint8Array
  /** Absent: it has none, because it lies in a bundle. */
  readonly receipt?: ReceiptFacts
}

/** What the machines of a cluster have accepted. */
export interface ItemsElsewhere {
  /** False: it is not known whether they are listed. Again for the same items: nothing more. */
  add(items: readonly ItemElsewhere[]): Promise<boolean>
  /**
   * Whether another machine has accepted the item, alone or in a bundle. `selling`: it has not, and it is being paid for a bundle
   * with the item. Undefined: no answer.
   */
  has(id: Id): Promise<boolean | 'selling' | undefined>
  /** The receipt of an item that any machine has accepted alone; undefined: no answer. */
  receiptOf(id: Id): Promise<ListedReceipt | 'none' | undefined>
  /**
   * Lists a bundle of this machine that is about to be paid for, for `saleLeaseMs`; again for the same one: nothing more. Gives
   * the number of its sale; undefined: it is not known whether it is listed.
   */
  beginSale(bundle: Id): Promise<string | undefined>
  /** Lists items of such a bundle, 32 bytes each. False: it is not known whether they are listed. */
  addToSale(sale: string, ids: readonly Uint8Array[]): Promise<boolean>
  /** Lists them for longer. Gives those that were listed; undefined: no answer. */
  renewSales(bundles: readonly Id[]): Promise<ReadonlySet<Id> | undefined>
  /** They are listed as accepted, or will not be paid for. False: they may be listed until their time is over. */
  endSales(bundles: readonly Id[]): Promise<boolean>
  /** Removes some rows of what is over at any machine. True: there may be more. */
  sweepSales(): Promise<boolean>
}

/** What a machine that has died was selling is not sold any more after so long. */
export const saleLeaseMs = 300_000
