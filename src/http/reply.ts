import type { HttpResponse } from 'uWebSockets.js'
import type { Content } from '../store/content.js'
import type { Head, Piece, Reply, Sent } from './exchange.js'
import { framedBytes, textBytes } from './frame.js'
import { Pump, sizeOfAll } from './pump.js'
import type { SocketRequest } from './request.js'
import type { Stalls } from './stalls.js'

/** Bytes of a body that the server may copy aside when the socket is full; larger ones are read again instead. */
const copyMaxBytes = 16 * 1024

/** What the server that made a reply wants to know of it. */
export interface Desk {
  readonly stalls: Stalls
  /** True: no connection is kept for another request. */
  readonly closing: boolean
  /** The reply outlives the handler. */
  opened(reply: SocketReply): void
  /** A reply that was opened is over. */
  closed(reply: SocketReply): void
}

/** Statuses that have no body and say no length (RFC 9110 section 8.6). */
function isBodiless(status: number): boolean {
  return status === 304 || status === 204
}

/** The way back over one response object of the server. */
export class SocketReply implements Reply {
  aborted = false
  /** True once ended or aborted: the response object must not be touched any more. */
  over = false
  readonly #res: HttpResponse
  readonly #request: SocketRequest
  readonly #desk: Desk
  /** While the handler runs the server has corked the socket already. */
  #inHandler = true
  #opened = false
  #left: (() => void)[] | undefined
  #pump: Pump | undefined

  constructor(res: HttpResponse, request: SocketRequest, desk: Desk) {
    this.#res = res
    this.#request = request
    this.#desk = desk
  }

  /** To be called when the handler returned: what is still open is now watched. */
  handlerReturned(): void {
    this.#inHandler = false
    if (!this.over) this.#open()
  }

  #open(): void {
    this.#opened = true
    this.#desk.opened(this)
    this.#res.onAborted(() => this.#abort())
  }

  #abort(): void {
    if (this.over) return
    this.aborted = true
    this.#finish()
    this.#pump?.abort()
    const left = this.#left
    this.#left = undefined
    for (const act of left ?? []) act()
  }

  #finish(): void {
    this.over = true
    this.#request.drop()
    if (this.#opened) this.#desk.closed(this)
  }

  /** Chunks are where parsers differ most: nothing behind them is read as another request. */
  #isLast(): boolean {
    return this.#desk.closing || this.#request.framing.chunked || this.#request.unread
  }

  onAbort(act: () => void): void {
    if (this.aborted) act()
    else if (this.#left === undefined) this.#left = [act]
    else this.#left.push(act)
  }

  /** Closes the socket at once. The handler failed. */
  destroy(): void {
    if (this.over) return
    // The server ends the process where a handler returned with neither an answer nor this.
    if (!this.#opened) this.#res.onAborted(() => undefined)
    this.#finish()
    this.#pump?.abort()
    this.#res.close()
  }

  end(head: Head, body: string | Uint8Array = ''): void {
    if (this.over) return
    if (this.#isLast()) this.#endLast(head, isBodiless(head.status) ? undefined : body)
    else if (isBodiless(head.status)) this.endEmpty(head)
    else if (typeof body !== 'string' && body.length > copyMaxBytes) {
      void this.#send(head, [{ bytes: body }], undefined)
    } else {
      this.#write(() => {
        this.#writeHead(head, '')
        this.#finish()
        this.#res.end(body)
      })
    }
  }

  endEmpty(head: Head, contentLength?: number): void {
    if (this.over) return
    // As a line of the block: a length given to the server itself leaves it waiting for that many bytes.
    const line = contentLength === undefined ? '' : `Content-Length: ${contentLength}`
    if (this.#isLast()) {
      this.#endLast(head, undefined, line)
      return
    }
    this.#write(() => {
      this.#writeHead(head, line)
      this.#finish()
      this.#res.endWithoutBody()
    })
  }

  /**
   * The last answer on its connection. Not before the server has read what came with the request: it would take that for
   * the next request even behind a closing answer, but ends a connection that sends one while an answer is outstanding.
   */
  #endLast(head: Head, body: string | Uint8Array | undefined, line = ''): void {
    setImmediate(() => {
      if (this.over) return
      this.#write(() => {
        const close = line === '' ? 'Connection: close' : `${line}\r\nConnection: close`
        this.#writeHead(head, body === undefined ? close : line)
        this.#finish()
        if (body === undefined) this.#res.endWithoutBody()
        else this.#res.end(body, true)
      })
    })
  }

  /** Answers what is wrong with the request itself, and closes the connection. */
  turnAway(status: number, word: string, lines: string): void {
    this.#endLast({ status, block: 'Content-Type: text/plain; charset=utf-8' }, word, lines)
  }

  stream(head: Head, pieces: readonly Piece[], content: Content): Sent | Promise<Sent> {
    if (this.over) {
      content.close()
      return { outcome: 'aborted', bytes: 0 }
    }
    return this.#endWith(head, pieces, content) ?? this.#send(head, pieces, content)
  }

  /** A small body that is here already goes out with the head in one call. */
  #endWith(head: Head, pieces: readonly Piece[], content: Content): Sent | undefined {
    const piece = pieces[0]
    if (pieces.length !== 1 || piece === undefined || 'bytes' in piece || this.#isLast()) return undefined
    const length = piece.end - piece.start
    if (length > copyMaxBytes || length === 0) return undefined
    const bytes = content.read(piece.start, piece.end)
    if (bytes === undefined || bytes.length !== length) return undefined
    this.end(head, bytes)
    content.close()
    return { outcome: 'whole', bytes: length }
  }

  #send(head: Head, pieces: readonly Piece[], content: Content | undefined): Sent | Promise<Sent> {
    const total = sizeOfAll(pieces)
    if (total === 0) {
      content?.close()
      this.end(head)
      return { outcome: 'whole', bytes: 0 }
    }
    let over: Sent | undefined
    let settle: ((sent: Sent) => void) | undefined
    const pump = new Pump(this.#res, pieces, content, total, this.#desk.stalls, (sent) => {
      // An abort has finished this reply before the pump hears of it.
      if (!this.over) this.#finish()
      over = sent
      settle?.(sent)
    })
    this.#pump = pump
    this.#write(() => {
      this.#writeHead(head, '')
      pump.start()
    })
    if (over !== undefined) return over
    return new Promise((resolve) => {
      settle = resolve
    })
  }

  #write(act: () => void): void {
    if (this.#inHandler) act()
    else this.#res.cork(act)
  }

  /**
   * Status line and block in one call: a call for each header line costs more than the kernel takes for a small answer. As
   * bytes, because field values are Latin-1 on the wire and the server would send text as UTF-8.
   */
  #writeHead(head: Head, lastLine: string): void {
    const bytes = 'frame' in head ? framedBytes(head, lastLine) : textBytes(head.status, head.block, lastLine)
    this.#res.writeStatus(bytes)
  }
}
