import type { Content } from './content.js'

/** `head`, and behind it what `rest` has from byte `from` on. Closes `rest`. */
export class PrefixedContent implements Content {
  readonly sizeBytes: number

  constructor(
    private readonly head: Uint8Array,
    private readonly rest: Content,
    private readonly from: number,
  ) {
    this.sizeBytes = head.length + rest.sizeBytes - from
  }

  read(start: number, end: number): Uint8Array | undefined {
    const { head } = this
    if (start < head.length) return head.subarray(start, Math.min(end, head.length))
    return this.rest.read(start - head.length + this.from, end - head.length + this.from)
  }

  ready(start: number, end: number): Promise<boolean> {
    const { head } = this
    if (start < head.length) return Promise.resolve(true)
    return this.rest.ready(start - head.length + this.from, end - head.length + this.from)
  }

  close(): void {
    this.rest.close()
  }
}
