import { how, type Wire } from '../../native/server/wire.js'
import type { Content } from '../store/content.js'
import type { IncomingBody } from './body.js'
import type { Head, Pace, Piece, Reply, Sent, TextHead } from './exchange.js'
import { Pump, shareMinBytes, sizeOfAll } from './pump.js'
import type { SocketRequest } from './request.js'
import type { ResponseCache } from './response-cache.js'
import type { Stalls } from './stalls.js'
import { writeHead, writeInterim } from './write-head.js'

/** Bodies up to this size are copied when the socket is full; larger ones are read again. */
const copyMaxBytes = 16 * 1024
const nothing = new Uint8Array(0)

/** What a reply reports to the server that made it. */
export interface ReplyOwner {
  readonly wire: Wire
  readonly stalls: Stalls
  /** True: no connection is kept for another request. */
  readonly closing: boolean
  /** Absent: this server has none. */
  readonly responseCache: ResponseCache | undefined
  dateLine(): string
  /** Nothing is read from this connection for so long, from the end of the answer that is sent next. */
  delayNext(slot: number, ms: number): void
  /** The reply outlives the handler. */
  opened(reply: SocketReply, slot: number): void
  /** A reply that was opened is over. */
  closed(slot: number): void
  /** Called with exceptions that no caller can catch; the socket is closed. */
  readonly onThrow: (error: unknown) => void
}

/** Statuses that have no body and say no length (RFC 9110 section 8.6). */
function isBodiless(status: number): boolean {
  return status === 304 || status === 204
}

/** The answer to one request over one connection. */
export class SocketReply implements Reply {
  aborted = false
  /** True once ended or aborted: the connection belongs to another request then. */
  over = false
  readonly #request: SocketRequest
  readonly #owner: ReplyOwner
  #opened = false
  #left: (() => void)[] | undefined
  #pump: Pump | undefined
  #body: IncomingBody | undefined
  #delayMs = 0

  constructor(request: SocketRequest, owner: ReplyOwner) {
    this.#request = request
    this.#owner = owner
  }

  /**
   * A body comes with the request, after its head. The end of the connection is reported to the reply from now on.
   */
  expect(body: IncomingBody): void {
    this.#body = body
    this.#request.expect(body)
  }

  /** To be called when the handler returned and the reply is still open. */
  watch(): void {
    this.#opened = true
    this.#owner.opened(this, this.#request.slot)
  }

  get responseCache(): ResponseCache | undefined {
    return this.#owner.responseCache
  }

  /** The client has left. */
  abort(): void {
    if (this.over) return
    this.aborted = true
    this.#finish()
    this.#pump?.abort()
    const left = this.#left
    this.#left = undefined
    for (const act of left ?? []) act()
  }

  /** Milliseconds since the body that is waited for last came on; undefined where none is waited for. */
  quietMs(nowMs: number): number | undefined {
    return this.#body?.quietMs(nowMs)
  }

  /** Ends the wait for the body; the handler gets the refusal `late`. */
  giveUpBody(): void {
    this.#body?.stalled()
  }

  pace(nowMs = this.#owner.stalls.now()): Pace | undefined {
    if (this.over) return undefined
    return this.#pump === undefined ? this.#body?.pace(nowMs) : this.#pump.pace(nowMs)
  }

  giveUp(): void {
    if (this.pace() === undefined) return
    if (this.#pump === undefined) this.giveUpBody()
    else this.#pump.stalled()
  }

  writable(): void {
    this.#pump?.writable()
  }

  arrived(piece: Uint8Array, last: boolean): void {
    this.#body?.take(piece, last)
  }

  /** Answers to HEAD have no body, whatever the handler gives: a client would read it as the next answer. */
  get #isHead(): boolean {
    return this.#request.method === 'HEAD'
  }

  #finish(): void {
    this.over = true
    this.#request.drop()
    if (this.#opened) this.#owner.closed(this.#request.slot)
  }

  /** Parsers differ most in chunked bodies, so nothing behind one is read as another request (request smuggling). */
  #isLast(): boolean {
    const request = this.#request
    return request.isLast || this.#owner.closing || request.isChunked || request.unread
  }

  onAbort(act: () => void): void {
    if (this.aborted) act()
    else if (this.#left === undefined) this.#left = [act]
    else this.#left.push(act)
  }

  /** Closes the socket at once. The handler failed. */
  destroy(): void {
    if (this.over) return
    this.#finish()
    this.#pump?.abort()
    this.#owner.wire.drop(this.#request.slot)
  }

  delayNext(ms: number): void {
    if (ms > this.#delayMs) this.#delayMs = ms
  }

  inform(head: TextHead): void {
    if (this.over || this.#pump !== undefined || this.#request.isOld) return
    const { outbox } = this.#owner.wire
    this.#owner.wire.send(this.#request.slot, writeInterim(outbox, head), nothing, 0)
  }

  end(head: Head, body: string | Uint8Array = nothing): void {
    if (this.over) return
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    if (isBodiless(head.status)) this.#whole(head, undefined, nothing)
    else if (this.#isHead) this.#whole(head, bytes.length, nothing)
    else if (bytes.length > copyMaxBytes) void this.#send(head, [{ bytes }], undefined)
    else this.#whole(head, bytes.length, bytes)
  }

  endEmpty(head: Head, contentLength?: number): void {
    if (!this.over) this.#whole(head, contentLength, nothing)
  }

  /** Less than 0: the bytes of the body are gone, and the connection is to be dropped. */
  #whole(head: Head, contentLength: number | undefined, body: Uint8Array): number {
    const last = this.#isLast()
    const headBytes = this.#writeHead(head, contentLength, last)
    this.#finish()
    const manner = last ? how.end | how.copy | how.close : how.end | how.copy
    return this.#owner.wire.send(this.#request.slot, headBytes, body, manner)
  }

  #writeHead(head: Head, contentLength: number | undefined, last: boolean): number {
    const { wire } = this.#owner
    if (this.#delayMs > 0 && !last) this.#owner.delayNext(this.#request.slot, this.#delayMs)
    return writeHead(wire.outbox, head, this.#owner.dateLine(), contentLength, last)
  }

  /** Answers without a handler, and closes the connection. `line`: one header line. */
  turnAway(status: number, word: string, line: string): void {
    const body = Buffer.from(word)
    const block = `Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n${line}`
    const headBytes = this.#writeHead({ status, block }, body.length, true)
    this.#finish()
    const sent = this.#isHead ? nothing : body
    this.#owner.wire.send(this.#request.slot, headBytes, sent, how.end | how.copy | how.close)
  }

  stream(head: Head, pieces: readonly Piece[], content: Content): Sent | Promise<Sent> {
    if (this.over) {
      content.close()
      return { outcome: 'aborted', bytes: 0 }
    }
    if (this.#isHead) {
      content.close()
      this.#whole(head, sizeOfAll(pieces), nothing)
      return { outcome: 'whole', bytes: 0 }
    }
    return this.#atOnce(head, pieces, content) ?? this.#send(head, pieces, content)
  }

  /** Sends a body of one small piece that is in memory together with its head, without a pump. */
  #atOnce(head: Head, pieces: readonly Piece[], content: Content): Sent | Promise<Sent> | undefined {
    const piece = pieces[0]
    if (pieces.length !== 1 || piece === undefined || 'bytes' in piece) return undefined
    const length = piece.end - piece.start
    if (length > shareMinBytes || length === 0) return undefined
    const bytes = this.#read(content, piece.start, piece.end)
    if (bytes === 'broken') return this.#broken(content)
    if (bytes === undefined || bytes.length !== length) return undefined
    let taken: number
    if (length <= copyMaxBytes) taken = this.#whole(head, length, bytes)
    else {
      const last = this.#isLast()
      const headBytes = this.#writeHead(head, length, last)
      taken = this.#owner.wire.send(
        this.#request.slot,
        headBytes,
        bytes,
        last ? how.end | how.close : how.end,
      )
      if (taken >= 0 && taken < length)
        return this.#pumped(pieces, content, length, (pump) => pump.startFull(taken, last))
      if (taken >= 0) this.#finish()
    }
    if (taken < 0) return this.#broken(content)
    content.close()
    return { outcome: 'whole', bytes: length }
  }

  /** Content that cannot be read closes this one socket. */
  #read(content: Content, start: number, end: number): Uint8Array | undefined | 'broken' {
    try {
      return content.read(start, end)
    } catch (error) {
      this.#owner.onThrow(error)
      return 'broken'
    }
  }

  #broken(content: Content): Sent {
    if (!this.over) this.#finish()
    this.#owner.wire.drop(this.#request.slot)
    content.close()
    return { outcome: 'broken', bytes: 0 }
  }

  #send(head: Head, pieces: readonly Piece[], content: Content | undefined): Sent | Promise<Sent> {
    const total = sizeOfAll(pieces)
    if (total === 0) {
      content?.close()
      this.#whole(head, 0, nothing)
      return { outcome: 'whole', bytes: 0 }
    }
    const last = this.#isLast()
    return this.#pumped(pieces, content, total, (pump) =>
      pump.start(this.#writeHead(head, total, last), last),
    )
  }

  #pumped(
    pieces: readonly Piece[],
    content: Content | undefined,
    total: number,
    start: (pump: Pump) => void,
  ): Sent | Promise<Sent> {
    let over: Sent | undefined
    let settle: ((sent: Sent) => void) | undefined
    const { wire, stalls, onThrow } = this.#owner
    const { slot } = this.#request
    const whenOver = (sent: Sent): void => {
      // After an abort this reply is finished already.
      if (!this.over) this.#finish()
      over = sent
      settle?.(sent)
    }
    const pump = new Pump({ wire, slot, pieces, content, total, stalls, onThrow, whenOver })
    this.#pump = pump
    start(pump)
    if (over !== undefined) return over
    return new Promise((resolve) => {
      settle = resolve
    })
  }
}
