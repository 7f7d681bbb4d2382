import type { Id } from '../format/id.js'

/** What the receipt of an item states beside its id and owner. */
export interface ReceiptFacts {
  /** Milliseconds since 1970. */
  readonly receivedMs: number
  readonly deadlineHeight: number
  /** Decimal. */
  readonly winc: string
}

/** An item that was accepted here, or that lies in a bundle that was. */
export interface ItemElsewhere {
  /** 32 bytes. */
  readonly id: Uint8Array
  /** Of the bundle; its own id where it was accepted alone. */
  readonly bundle: Uint8Array
  /** Absent: it has none, because it lies in a bundle. */
  readonly receipt?: ReceiptFacts
}

/** What the machines of a cluster have accepted. */
export interface ItemsElsewhere {
  /** False: it is not known whether they are listed. Again for the same items: nothing more. */
  add(items: readonly ItemElsewhere[]): Promise<boolean>
  /** Whether another machine has accepted the item, alone or in a bundle; undefined: no answer. */
  has(id: Id): Promise<boolean | undefined>
  /** The receipt of an item that another machine has accepted alone; undefined: no answer. */
  receiptOf(id: Id): Promise<ReceiptFacts | 'none' | undefined>
}
