import type { Id } from '../format/id.js'

/** An item that was accepted here, or that lies in a bundle that was. */
export interface ItemElsewhere {
  /** 32 bytes. */
  readonly id: Uint8Array
  /** Of the bundle; its own id where it was accepted alone. */
  readonly bundle: Uint8Array
}

/** What the machines of a cluster have accepted. */
export interface ItemsElsewhere {
  /** False: it is not known whether they are listed. Again for the same items: nothing more. */
  add(items: readonly ItemElsewhere[]): Promise<boolean>
  /** Those of these items that another machine has accepted alone since then (milliseconds since 1970); undefined: no answer. */
  aloneSince(ids: readonly Uint8Array[], sinceMs: number): Promise<readonly Id[] | undefined>
  /** Whether another machine has accepted the item, alone or in a bundle; undefined: no answer. */
  has(id: Id): Promise<boolean | undefined>
}
