import type { Head, Piece, Reply, Sent } from '../http/exchange.js'
import type { Content } from '../store/content.js'

/** A reply that tells how it ended: so that routes written without flows are counted and logged like all others. */
export class WatchedReply implements Reply {
  constructor(
    private readonly reply: Reply,
    private readonly ended: (status: number, sent: Sent) => void,
  ) {}

  get aborted(): boolean {
    return this.reply.aborted
  }

  onAbort(act: () => void): void {
    this.reply.onAbort(act)
  }

  end(head: Head, body?: string | Uint8Array): void {
    this.reply.end(head, body)
    this.#tell(head, body === undefined ? 0 : Buffer.byteLength(body))
  }

  endEmpty(head: Head, contentLength?: number): void {
    this.reply.endEmpty(head, contentLength)
    this.#tell(head, 0)
  }

  stream(head: Head, pieces: readonly Piece[], content: Content): Sent | Promise<Sent> {
    const sent = this.reply.stream(head, pieces, content)
    if (!(sent instanceof Promise)) this.ended(head.status, sent)
    else void sent.then((how) => this.ended(head.status, how))
    return sent
  }

  #tell(head: Head, bytes: number): void {
    this.ended(head.status, { outcome: this.reply.aborted ? 'aborted' : 'whole', bytes })
  }
}
