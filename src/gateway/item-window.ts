import type { Borrowed } from '../store/borrowed.js'
import type { Content } from '../store/content.js'
import type { StoredContent } from '../store/stored-content.js'
import type { Entry } from './entry.js'

/** The payload of an item as it lies in its bundle: bytes of the bundle's file, not copied. */
export class ItemWindow implements Content {
  /** `root`: the entry of the bundle that `whole` is the content of; the payload begins at `start` in it. */
  constructor(
    readonly root: Entry,
    readonly whole: StoredContent,
    private readonly start: number,
    readonly sizeBytes: number,
  ) {}

  read(start: number, end: number): Uint8Array | undefined {
    this.#check(start, end)
    return this.whole.read(this.start + start, this.start + end)
  }

  ready(start: number, end: number): Promise<boolean> {
    this.#check(start, end)
    return this.whole.ready(this.start + start, this.start + end)
  }

  /** Same as in `StoredContent`: it lies where the bundle does, for as long as what is known of the bundle stays the same. */
  lend(): Borrowed | undefined {
    const borrowed = this.whole.lend?.(this.root.segmentWithdrawals)
    return borrowed && { ...borrowed, offset: borrowed.offset + this.start }
  }

  #check(start: number, end: number): void {
    // Written as a negation so that NaN is outside.
    if (!(start >= 0 && start < end && end <= this.sizeBytes)) {
      throw new RangeError(`[${start}, ${end}) is not within ${this.sizeBytes} bytes`)
    }
  }

  close(): void {
    this.whole.close()
  }
}
