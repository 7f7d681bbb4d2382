import type { RelayedAnswer } from '../chain/relay.js'
import { isRefusal } from '../format/refusal.js'
import type { Content } from '../store/content.js'

const nothing = new Uint8Array(0)

/** The content of answers whose pieces are all bytes. */
export const noContent: Content = {
  sizeBytes: 0,
  read: () => undefined,
  ready: () => Promise.resolve(false),
  close: () => undefined,
}

/**
 * A node's answer as content: read once, forwards, with one piece in memory; the next is read from the node when the client
 * took it.
 */
export class RelayedBody implements Content {
  #piece: Uint8Array = nothing
  /** Where the piece starts. */
  #at = 0

  constructor(
    private readonly answer: RelayedAnswer,
    readonly sizeBytes: number,
  ) {}

  read(start: number, end: number): Uint8Array | undefined {
    const from = start - this.#at
    if (from < 0 || end > this.sizeBytes)
      throw new RangeError('a relayed body is read forwards, and to its end only')
    return from < this.#piece.length ? this.#piece.subarray(from, end - this.#at) : undefined
  }

  async ready(start: number): Promise<boolean> {
    while (start >= this.#at + this.#piece.length) {
      this.#at += this.#piece.length
      this.#piece = nothing
      const next = await this.answer.next()
      if (next === undefined || isRefusal(next)) return false
      this.#piece = next
    }
    return true
  }

  close(): void {
    this.answer.drop()
  }
}
