import type { Head, Piece, Reply, Sent, TextHead } from '../http/exchange.js'
import type { Content } from '../store/content.js'

const cacheable = new Set([200, 203, 206])

/**
 * A reply that tells how it ended, so that routes written without flows are counted and logged like all others. Good answers
 * without Cache-Control get `caching`, where it is given.
 */
export class WatchedReply implements Reply {
  constructor(
    private readonly reply: Reply,
    private readonly caching: string | undefined,
    private readonly ended: (status: number, sent: Sent) => void,
  ) {}

  get aborted(): boolean {
    return this.reply.aborted
  }

  onAbort(act: () => void): void {
    this.reply.onAbort(act)
  }

  hold(ms: number): void {
    this.reply.hold(ms)
  }

  inform(head: TextHead): void {
    this.reply.inform(head)
  }

  end(head: Head, body?: string | Uint8Array): void {
    this.reply.end(this.#cached(head), body)
    this.#tell(head, body === undefined ? 0 : Buffer.byteLength(body))
  }

  endEmpty(head: Head, contentLength?: number): void {
    this.reply.endEmpty(this.#cached(head), contentLength)
    this.#tell(head, 0)
  }

  stream(head: Head, pieces: readonly Piece[], content: Content): Sent | Promise<Sent> {
    const sent = this.reply.stream(this.#cached(head), pieces, content)
    if (!(sent instanceof Promise)) this.ended(head.status, sent)
    else void sent.then((how) => this.ended(head.status, how))
    return sent
  }

  #cached(head: Head): Head {
    if ('frame' in head) return head
    const { status, block } = head
    if (this.caching === undefined || !cacheable.has(status) || /^cache-control:/im.test(block)) return head
    return { ...head, block: `${block}\r\nCache-Control: ${this.caching}` }
  }

  #tell(head: Head, bytes: number): void {
    this.ended(head.status, { outcome: this.reply.aborted ? 'aborted' : 'whole', bytes })
  }
}
