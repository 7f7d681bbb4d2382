import type { Refusal } from '../format/refusal.js'
import type { Content } from '../store/content.js'
import type { Frame } from './frame.js'

/**
 * One request. While the handler runs, headers are read straight out of the server's memory; when it returns with the
 * reply still open, everything is copied out, and the request stays valid for as long as anybody holds it.
 */
export interface Request {
  /** Upper case. */
  readonly method: string
  /** As sent, percent-encoding untouched, without the query. Starts with a slash. */
  readonly path: string
  /** Behind the question mark, '' where there is none. */
  readonly query: string
  /** Value of a header (lower-case name); several lines joined by ', '. Undefined where it was not sent. */
  header(name: string): string | undefined
  /** Textual address of the socket's other end, IPv4 in dotted form. */
  readonly remoteAddress: string
  /**
   * The whole body, at most `sizeMaxBytes`. Call it before the handler first waits, at most once. Refusals: `too-large`;
   * `late` (the client sent nothing for too long); `malformed` (the client left in the middle). Never rejects.
   */
  body(sizeMaxBytes: number): Promise<Uint8Array | Refusal>
}

/**
 * Status and header lines of an answer. `block` holds prepared lines `Name: value` joined by CRLF, without a trailing CRLF,
 * without Content-Length and Date (the server writes those). One block is one call into the server: that is what
 * makes small answers cheap.
 */
export interface TextHead {
  readonly status: number
  readonly block: string
}

/** A head that is the same for many answers but for the id of the request and a few lines: kept as bytes (http/frame.ts). */
export interface FramedHead {
  readonly status: number
  readonly frame: Frame
  /** ASCII; stands between the two parts of the frame. */
  readonly id: string
  /** ASCII lines of this very answer, each with CRLF in front; '' where there are none. */
  readonly lines: string
}

export type Head = TextHead | FramedHead

/** A part of a body: given bytes (multipart frames), or a window of the content, `end` exclusive. */
export type Piece = { readonly bytes: Uint8Array } | { readonly start: number; readonly end: number }

/** How a streamed answer ended. */
export interface Sent {
  readonly outcome: 'whole' | 'aborted' | 'stalled' | 'broken'
  /** Body bytes that the socket took. */
  readonly bytes: number
}

/**
 * An answer that was just given, and may be given again for the rest of its second: to requests that are the same byte for byte,
 * but for the bounds of one range.
 */
export interface StandingAnswer {
  /** As it was sent, but for the request's id (each gets a new one) and Content-Range, which is not among its lines. */
  readonly head: FramedHead
  /** Undefined: no length is said. Ranges say their own. */
  readonly contentLength: number | undefined
  readonly body: StandingBody | undefined
  readonly terms: Terms
}

/** Bytes that stay where they are until the terms are closed. */
export interface StandingBody {
  /** The whole body; for ranges the content from `start`, where all that is asked for may lie. */
  readonly bytes: Uint8Array
  readonly isRange: boolean
  readonly start: number
  /** Bytes of the content. */
  readonly sizeBytes: number
  /** Descriptor of a file that is the content, open until the terms are closed; less than 0: there is none. */
  readonly file: number
}

/** Answers that went out on their terms. */
export interface Given {
  /** The client of one of them will not have its last so many bytes. */
  short(bytes: number): void
}

/** On which terms an answer stands. All of it is asked for many requests: no allocation, no waiting. */
export interface Terms {
  /** False: nobody needs to know whose requests they are; `give` is told '' then. */
  readonly asksWho: boolean
  /** Whether it is still what would be answered. Asked once a turn. */
  holds(): boolean
  /** Whether these bytes of the content are in memory. */
  isHere(start: number, end: number): boolean
  /** Lets `count` answers of `bytes` each go out to the client at `address`. Undefined: each must ask for itself. */
  give(address: string, bytes: number, count: number): Given | undefined
  /** False: what is on its way breaks off. Asked now and then, also when the answer stands no more. */
  mayGoOn(): boolean
  /** The answer stands no more, and nobody takes it. */
  close(): void
}

/** The way back to the client. Exactly one of the ending methods is called, once. All are safe after an abort. */
export interface Reply {
  /** True once the client is gone. */
  readonly aborted: boolean
  /** Calls `act` when the client leaves before the end; at once where it has already left. */
  onAbort(act: () => void): void
  /**
   * Nothing is read from this connection for so long, from the beginning of the answer and not before its end; the longest of
   * several counts. Only for connections that are one client's alone. To be called before the answer.
   */
  hold(ms: number): void
  /**
   * Present during a handler whose request came before within this second, where the server can give answers again. Takes the
   * answer over, closes its terms also where it is of no use, and must be called before the reply is ended.
   */
  readonly standing?: { offer(answer: StandingAnswer): void } | undefined
  /** A whole answer in one write. */
  end(head: Head, body?: string | Uint8Array): void
  /** An answer to HEAD: Content-Length of the body that GET would have, and no body. Undefined: no Content-Length. */
  endEmpty(head: Head, contentLength?: number): void
  /**
   * Sends `pieces` in order, as fast as the socket takes them and no faster, then closes `content`. The content length is
   * the sum of the pieces. A source that breaks closes the socket short. Where the socket takes everything at once the
   * answer is over on return, without a promise or a timer; else a promise that resolves when all is over and never rejects.
   */
  stream(head: Head, pieces: readonly Piece[], content: Content): Sent | Promise<Sent>
}
