import type { Address } from '../actor/address.js'
import type { Clock, Timer } from '../actor/clock.js'
import type { Content } from '../store/content.js'
import { GrowingContent } from './growing.js'
import type { ProgressListener } from './progress.js'
import type { SourceReply, SourceRequest } from './protocol.js'

type Opened = Extract<SourceReply, { kind: 'opened' }>

/** Time until a full mailbox is tried again. */
const retryCloseMs = 50

/** The edge threads' way to bytes that still arrive: turns what the fetcher opened into content. */
export class Readers {
  readonly #unclosed = new Set<number>()
  #retry: Timer | undefined

  /** `listener.hear` must be the hearer of `fetcher`'s events. */
  constructor(
    private readonly fetcher: Address<SourceRequest, SourceReply>,
    private readonly listener: ProgressListener,
    private readonly clock: Clock,
  ) {}

  /**
   * Content of a flow that was opened; closing it tells the fetcher. It gives bytes of the file's window only, which is all
   * of the payload but where a window was asked for. Never throws: a file that cannot be opened is a broken source.
   */
  grow(opened: Opened): Content {
    const { attributes, base, sizeBytes, slot, path, reader } = opened
    const file = { path, base, fileBytes: sizeBytes, sizeBytes: attributes.size, slot }
    const close = (): void => this.#close(reader)
    try {
      return new GrowingContent(file, this.listener, close)
    } catch {
      // No descriptor left, or no /proc: the reader sees a body that breaks at once.
      return {
        sizeBytes: attributes.size,
        read: () => undefined,
        ready: () => Promise.resolve(false),
        close,
      }
    }
  }

  /** A close must arrive, or a slot is lost: told again while the mailbox is full. */
  #close(reader: number): void {
    if (this.fetcher.tell({ kind: 'close', reader })) return
    this.#unclosed.add(reader)
    this.#retry ??= this.clock.after(retryCloseMs, () => this.#closeAgain())
  }

  #closeAgain(): void {
    this.#retry = undefined
    for (const reader of [...this.#unclosed]) {
      if (!this.fetcher.tell({ kind: 'close', reader })) break
      this.#unclosed.delete(reader)
    }
    if (this.#unclosed.size > 0) this.#retry = this.clock.after(retryCloseMs, () => this.#closeAgain())
  }
}
