import { BundleReader } from '../../format/bundle-reader.js'
import type { ItemHeader } from '../../format/item.js'
import { isListed } from '../../proof/owner-address.js'
import { isBundle } from '../../source/roots/learned.js'

/**
 * A table of so many entries is in memory while its bundle comes (4 MB), whether or not its sender will pay: `memoryBytes` is
 * counted. Larger bundles are not looked into, and nothing of them is served before their block.
 */
const limits = { itemsMax: 100_000 }
/** Deeper bundles are opened by no gateway (`location.depthMax`). */
const depthMax = 10

/** Whether an item has a blocked owner, or holds an item of one, at any depth. Reads it as it comes. */
export class OwnersInside {
  isBlocked = false
  #inside: PayloadOwners | undefined

  /** `blocked`: addresses of owners (`isListed`). May change at any time. */
  constructor(private readonly blocked: ReadonlySet<string>) {}

  /** Of all tables. */
  get memoryBytes(): number {
    return this.#inside?.memoryBytes ?? 0
  }

  /** Once, before the payload. */
  header({ signatureType, owner, tags }: Pick<ItemHeader, 'signatureType' | 'owner' | 'tags'>): void {
    // Most services block nobody.
    if (this.blocked.size === 0) return
    this.isBlocked = isListed(this.blocked, signatureType, owner)
    if (!this.isBlocked && isBundle(tags)) this.#inside = new PayloadOwners(this.blocked, depthMax)
  }

  payload(bytes: Uint8Array): void {
    if (this.#inside === undefined || this.isBlocked) return
    this.isBlocked = this.#inside.hasBlocked(bytes)
  }
}

/** Owners of the items in the payload of one bundle. */
class PayloadOwners {
  /** Undefined: nothing more can be read. */
  #reader: BundleReader | undefined = new BundleReader(limits)
  /** Of the item that is read now, where it is a bundle. */
  #inside: PayloadOwners | undefined

  constructor(
    private readonly blocked: ReadonlySet<string>,
    private readonly depth: number,
  ) {}

  get memoryBytes(): number {
    return (this.#reader?.memoryBytes ?? 0) + (this.#inside?.memoryBytes ?? 0)
  }

  /** Takes the next bytes. Not to be called again after true. */
  hasBlocked(bytes: Uint8Array): boolean {
    for (const event of this.#reader?.push(bytes) ?? []) {
      if (event.kind === 'header') {
        const { signatureType, owner, tags } = event.header
        if (isListed(this.blocked, signatureType, owner)) return true
        const isOpened = this.depth > 1 && isBundle(tags)
        this.#inside = isOpened ? new PayloadOwners(this.blocked, this.depth - 1) : undefined
      } else if (event.kind === 'payload' && this.#inside?.hasBlocked(event.bytes) === true) return true
      else if (event.kind === 'end') this.#inside = undefined
      else if (event.kind === 'broken' || event.kind === 'done') this.#reader = undefined
    }
    return false
  }
}
