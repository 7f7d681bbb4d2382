import type { Head, Pace, Piece, Reply, Sent, TextHead } from '../http/exchange.js'
import { saysCaching } from '../http/small-answer.js'
import type { Content } from '../store/content.js'
import { forPayer } from './receipts.js'

/** A 304 has the same caching headers as the answer that it stands for. */
const good = new Set([200, 203, 206, 304])

/**
 * A reply that reports how it ended, so that routes without exchanges are counted and logged like all others. Good answers
 * without Cache-Control get `caching`, all others `no-store`, because caches keep some statuses by default.
 */
export class WatchedReply implements Reply {
  constructor(
    private readonly reply: Reply,
    private readonly caching: string,
    private readonly ended: (status: number, sent: Sent) => void,
  ) {}

  get aborted(): boolean {
    return this.reply.aborted
  }

  pace(): Pace | undefined {
    return this.reply.pace()
  }

  giveUp(): void {
    this.reply.giveUp()
  }

  onAbort(act: () => void): void {
    this.reply.onAbort(act)
  }

  delayNext(ms: number): void {
    this.reply.delayNext(ms)
  }

  inform(head: TextHead): void {
    this.reply.inform(head)
  }

  end(head: Head, body?: string | Uint8Array): void {
    this.reply.end(this.#cached(head), body)
    this.#report(head, body === undefined ? 0 : Buffer.byteLength(body))
  }

  endEmpty(head: Head, contentLength?: number): void {
    this.reply.endEmpty(this.#cached(head), contentLength)
    this.#report(head, 0)
  }

  stream(head: Head, pieces: readonly Piece[], content: Content): Sent | Promise<Sent> {
    const sent = this.reply.stream(this.#cached(head), pieces, content)
    if (!(sent instanceof Promise)) this.ended(head.status, sent)
    else void sent.then((how) => this.ended(head.status, how))
    return sent
  }

  #cached(head: Head): Head {
    if ('split' in head) return head
    const { status, block } = head
    if (saysCaching(block)) return forPayer(head)
    const caching = good.has(status) ? this.caching : 'no-store'
    return forPayer({ ...head, block: `${block}\r\nCache-Control: ${caching}` })
  }

  #report(head: Head, bytes: number): void {
    this.ended(head.status, { outcome: this.reply.aborted ? 'aborted' : 'whole', bytes })
  }
}
