import type { Refusal } from '../format/refusal.js'
import type { Content } from '../store/content.js'
import type { ResponseCache } from './response-cache.js'

/** Where people go from a page of failure. */
export interface Home {
  /** The first page of the service: `/`, or an absolute address where it is on another host. */
  readonly href: string
  /** It looks for what `?find=` says. */
  readonly hasSearch: boolean
}

/**
 * One request. While the handler runs, headers are read from the server's memory. If the handler returns with the reply open,
 * everything is copied, and the request stays valid for as long as it is referenced.
 */
export interface Request {
  /** Upper case. */
  readonly method: string
  /** The path as sent, percent-encoding untouched, without the query. Starts with a slash. */
  readonly path: string
  /** Behind the question mark, '' where there is none. */
  readonly query: string
  /** Value of a header (lower-case name); several lines joined by ', '. Undefined where it was not sent. */
  header(name: string): string | undefined
  /** Names (lower-case) and values of all header lines whose name begins so, in the order in which they were sent. */
  headersUnder(start: string): readonly (readonly [name: string, value: string])[]
  /** Textual address of the socket's other end, IPv4 in dotted form. */
  readonly remoteAddress: string
  /** It came over TLS. */
  readonly secure?: boolean
  /**
   * The whole body, at most `sizeMaxBytes`. Call it before the handler first waits, at most once. Refusals: `too-large`;
   * `late` (the client sent nothing for too long); `malformed` (the client left in the middle); `busy` (there is no memory for
   * it, or others who send less need it). Never rejects.
   */
  body(sizeMaxBytes: number): Promise<Uint8Array | Refusal>
  /**
   * The same body in pieces of any size and number, none of it held. Instead of `body`, under the same rules. Refusals that
   * `sink` may get: `late`, `malformed`.
   */
  stream(sink: BodySink): BodyControl
  /** Set by the service that answers; undefined: its first page is `/` of the same host, and has no search. */
  home?: ((request: Pick<Request, 'header' | 'secure'>) => Home) | undefined
}

/** Receives a body in pieces. */
export interface BodySink {
  /**
   * At least one byte, valid until this returns. After `pause` a few more may come: those that the server had read already.
   */
  piece(bytes: Uint8Array): void
  /** Called once at the end: undefined where the body was complete. Never called before `stream` returns. */
  over(refusal: Refusal | undefined): void
}

/** Pauses and resumes a body. Both do nothing once the body has ended. */
export interface BodyControl {
  /** Nothing more is read from the socket; as soon as the buffers of the kernel are full the client has to wait. */
  pause(): void
  resume(): void
}

/**
 * Status and header lines of an answer. `block` holds prepared lines `Name: value` joined by CRLF, without a trailing CRLF,
 * without Content-Length and Date (the server writes those). One block is one call into the server, which keeps small answers
 * cheap.
 */
export interface TextHead {
  readonly status: number
  readonly block: string
  /** In place of the usual words of the status line: some clients show them. */
  readonly reason?: string
}

/**
 * Status line and header lines, of characters up to U+00FF, before and after the place of the request's id. It is text, because
 * writing it costs the same as bytes. A small buffer takes some 500 bytes more memory outside of V8's heap, and fragments it.
 */
export interface SplitHead {
  readonly before: string
  readonly after: string
}

/** A head that is the same for many answers but for the id of the request and a few lines: kept (http/write-head.ts). */
export interface KeptHead {
  readonly status: number
  readonly split: SplitHead
  /** ASCII; stands between the two parts. */
  readonly id: string
  /** ASCII lines of this answer alone, each with CRLF in front; '' where there are none. */
  readonly lines: string
}

export type Head = TextHead | KeptHead

/** A part of a body: given bytes (between the ranges of a multipart answer), or a window of the content, `end` exclusive. */
export type Piece = { readonly bytes: Uint8Array } | { readonly start: number; readonly end: number }

/** How a streamed answer ended. */
export interface Sent {
  readonly outcome: 'whole' | 'aborted' | 'stalled' | 'broken'
  /** Body bytes that the socket took. */
  readonly bytes: number
}

/** How fast a client that is waited for sends its body, or takes the answer. */
export interface Pace {
  /** Since the first byte could come or go. */
  readonly bytesPerSecond: number
  /** Milliseconds since then. */
  readonly ms: number
}

/** The answer to one request. Exactly one of the ending methods is called, once. All are safe after an abort. */
export interface Reply {
  /** True once the client is gone. */
  readonly aborted: boolean
  /** The response cache of the server of this reply. Absent: it has none. */
  readonly responseCache?: ResponseCache | undefined
  /** Undefined where the client is not waited for. */
  pace(): Pace | undefined
  /**
   * Waits no longer for a client whose place is needed: the body that comes is refused (`late`), the connection of an answer
   * under way is closed. Nothing happens where the client is not waited for.
   */
  giveUp(): void
  /** Calls `act` when the client leaves before the end; at once where it has already left. */
  onAbort(act: () => void): void
  /**
   * Reads nothing from this connection for `ms` from the beginning of the answer, and in any case not before the answer ends;
   * of several calls the longest counts. Only for connections that belong to one client. To be called before the answer.
   */
  delayNext(ms: number): void
  /**
   * An interim answer ahead of the last one (RFC 9110 section 15.2): any number, each whole at once. Clients that speak HTTP/1.0
   * get none, and nothing happens once the answer has begun.
   */
  inform(head: TextHead): void
  /** A whole answer in one write. */
  end(head: Head, body?: string | Uint8Array): void
  /** An answer to HEAD: Content-Length of the body that GET would have, and no body. Undefined: no Content-Length. */
  endEmpty(head: Head, contentLength?: number): void
  /**
   * Sends `pieces` in order, as fast as the socket takes them, then closes `content`. The content length is the sum of the
   * pieces. Where the source breaks off, the socket is closed before the announced length, so that the client notices. Returns
   * without a promise or a timer where the socket took everything at once. Otherwise the promise resolves when all is over, and
   * never rejects.
   */
  stream(head: Head, pieces: readonly Piece[], content: Content): Sent | Promise<Sent>
}
