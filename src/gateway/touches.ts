import type { Clock } from '../actor/clock.js'
import type { Address } from '../actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../catalog/catalog-messages.js'
import { SegmentContent } from '../store/segments/segment-reader.js'
import type { StoredContent } from '../store/stored-content.js'
import type { Entry } from './entry.js'
import { ItemWindow } from './item-window.js'

const reportMs = 10_000
const touchedMax = 10_000

/**
 * Collects which blobs were served and reports them to the keeper now and then, so that eviction removes those not read.
 */
export class Touches {
  #touched: Entry[] = []
  readonly #stop: () => void

  constructor(
    private readonly keeper: Address<CatalogRequest, CatalogReply> | undefined,
    clock: Clock,
  ) {
    const timer = clock.every(reportMs, () => this.#report())
    this.#stop = () => timer.cancel()
  }

  /** From the second call on it is one comparison. */
  touch(entry: Entry, content: StoredContent | ItemWindow): void {
    if (content instanceof ItemWindow) {
      this.touch(content.root, content.whole)
      return
    }
    if (content instanceof SegmentContent) {
      content.spare()
      return
    }
    if (entry.touched || this.keeper === undefined || this.#touched.length >= touchedMax) return
    entry.touched = true
    this.#touched.push(entry)
  }

  close(): void {
    this.#stop()
    this.#report()
  }

  #report(): void {
    if (this.#touched.length === 0) return
    const digests = this.#touched.flatMap(({ attributes }) => attributes.digest ?? [])
    // The mailbox is full: the entries stay marked for the next message.
    if (this.keeper?.tell({ kind: 'touched', digests }) !== true) return
    for (const entry of this.#touched) entry.touched = false
    this.#touched = []
  }
}
