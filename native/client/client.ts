import { loadAddon } from '../addon.js'

declare const clientBrand: unique symbol
type Client = { readonly [clientBrand]: true }

interface Addon {
  open(
    names: string,
    inboxNumbers: number,
    bytesBytes: number,
    hear: (numbers: number) => void,
  ): [client: Client, inbox: ArrayBuffer, bytes: ArrayBuffer]
  origin(client: Client, connectionsMax: number): number
  address(client: Client, origin: number, ip: string, port: number, isFirst: boolean): void
  trust(client: Client, pem: string, suites: string, ciphers: string): number
  secure(client: Client, origin: number, host: string, isAddress: boolean): void
  request(client: Client, origin: number, head: string, isHead: boolean, wholeMax: number): number
  pause(client: Client, request: number): void
  resume(client: Client, request: number): void
  drop(client: Client, request: number): void
  destroy(client: Client): void
}

const addon = loadAddon<Addon>('client')

/** Header lines by their names in small letters; lines of one name as an array. */
export type AnswerLines = Record<string, string | string[] | undefined>

/** Who hears of an answer, from within the reading of the socket. */
export interface Answering {
  /** The head of the answer; words before it (1xx) are not reported. */
  onHead(status: number, lines: AnswerLines): void
  /** So many bytes came of a body that will be reported as one piece. */
  onCame(bytes: number): void
  /** Memory for the next bytes of the body, of exactly this length. */
  memoryFor(length: number): Uint8Array
  /** Bytes of the body, in that memory. */
  onPiece(piece: Uint8Array): void
  onEnd(): void
  /** Nothing more comes. */
  onError(error: Error): void
}

/** Controls the answer to a request that is under way. Its methods do nothing once it is over. */
export interface AnswerControl {
  /** No more of the body is reported until `resume`, but what was read already: the socket is left to fill. */
  pause(): void
  resume(): void
  /** Ends it; nothing is heard of it any more. */
  drop(): void
}

/** A broken exchange. `code`: of the system, or `EBADMSG` for an answer that cannot be believed. */
export class ExchangeError extends Error {
  constructor(
    message: string,
    readonly code: string,
  ) {
    super(message)
  }
}

/** Order of `Fault` in answer.h. */
const faults = [
  'no answer came',
  'the head of the answer is too large',
  'the answer begins with no status line',
  'a header line of the answer is folded',
  'a header line of the answer has no sound name',
  'a header line of the answer has characters that it must not have',
  'the answer has too many header lines',
  'the answer has a Content-Length that is no number',
  'the answer has two Content-Length lines',
  'the answer has a Transfer-Encoding other than one chunked',
  'the answer has both Content-Length and Transfer-Encoding',
  'the answer has a malformed chunk',
  'too many words came before the answer',
  'the connection was closed before the answer was over',
  'the answer speaks another protocol',
  'no secure connection',
] as const

/** The code of an error of TLS, a certificate that is not valid included. */
export const tlsFailed = 'ETLS'

/** See client.h. */
const kinds = { head: 1, data: 2, came: 3, end: 4, broken: 5 } as const
const wholeFlag = 1
const headNumbers = 9

const inboxNumbers = 64 * 1024
const bytesBytes = 4 * 1024 * 1024

/** How servers are checked over TLS, and what is offered to them. */
export interface TlsTrust {
  /** Certificates of authorities, PEM. */
  readonly authorities: string
  /** Suites of TLS 1.3 and ciphers of TLS 1.2, each separated by colons. */
  readonly suites: string
  readonly ciphers: string
}

/** The last of them. */
const tlsFault = faults.length - 1

export interface HttpClientOptions {
  /** Names of header lines that are reported, in small letters. */
  readonly names: readonly string[]
  /** Connections to one origin. */
  readonly connectionsMax: number
  /** A body of no more bytes is reported in one piece; at most 1 MiB. */
  readonly wholeMaxBytes: number
}

/**
 * Sends requests to other servers over HTTP/1.1, with and without TLS, on kept connections. Only for GET and HEAD, because a
 * request whose kept connection turns out to be closed is sent again. Without the addon undici does the same.
 */
export class HttpClient {
  readonly #addon: Addon
  readonly #client: Client
  readonly #inbox: Int32Array
  readonly #bytes: Buffer
  readonly #names: readonly string[]
  readonly #open = new Map<number, Answering>()

  /** Whether there is the addon. */
  static get isThere(): boolean {
    return addon !== undefined
  }

  /** Throws where there is no addon. */
  constructor(private readonly options: HttpClientOptions) {
    if (addon === undefined) throw new Error('native/client was not built')
    this.#addon = addon
    this.#names = options.names
    const [client, inbox, bytes] = addon.open(options.names.join(','), inboxNumbers, bytesBytes, (numbers) =>
      this.#hear(numbers),
    )
    this.#client = client
    this.#inbox = new Int32Array(inbox)
    this.#bytes = Buffer.from(bytes)
  }

  /** A server, by a number. It has no address yet. */
  origin(): number {
    return this.#addon.origin(this.#client, this.options.connectionsMax)
  }

  /** What servers are checked against: once, before the first `secure`. False: this Node has no OpenSSL for it. */
  trust({ authorities, suites, ciphers }: TlsTrust): boolean {
    return this.#addon.trust(this.#client, authorities, suites, ciphers) >= 0
  }

  /** TLS is spoken with this server, which must have a certificate for `host`. */
  secure(origin: number, host: string, isAddress: boolean): void {
    this.#addon.secure(this.#client, origin, host, isAddress)
  }

  /** Its addresses, in the order in which they are tried. Throws where one is none. */
  locate(origin: number, ips: readonly string[], port: number): void {
    for (const [at, ip] of ips.entries()) this.#addon.address(this.#client, origin, ip, port, at === 0)
  }

  /** Sends `head` (a whole head of GET or HEAD, Latin-1). Throws where it is none. */
  request(origin: number, head: string, isHead: boolean, answering: Answering): AnswerControl {
    const id = this.#addon.request(this.#client, origin, head, isHead, this.options.wholeMaxBytes)
    this.#open.set(id, answering)
    return {
      pause: () => this.#addon.pause(this.#client, id),
      resume: () => this.#addon.resume(this.#client, id),
      drop: () => {
        if (this.#open.delete(id)) this.#addon.drop(this.#client, id)
      },
    }
  }

  /** Closes all connections; nothing is heard of what was under way. */
  destroy(): void {
    this.#open.clear()
    this.#addon.destroy(this.#client)
  }

  #hear(numbers: number): void {
    const inbox = this.#inbox
    for (let at = 0; at < numbers; ) {
      const id = inbox[at + 1] ?? 0
      const answering = this.#open.get(id)
      switch (inbox[at]) {
        case kinds.head:
          if (answering !== undefined) this.#head(at, id, answering)
          at += headNumbers + 3 * (inbox[at + 8] ?? 0)
          break
        case kinds.data:
          if (answering !== undefined) this.#data(at, id, answering)
          at += 5
          break
        case kinds.came:
          answering?.onCame(inbox[at + 2] ?? 0)
          at += 3
          break
        case kinds.end:
          this.#open.delete(id)
          answering?.onEnd()
          at += 2
          break
        case kinds.broken:
          this.#open.delete(id)
          answering?.onError(errorOf(inbox[at + 2] ?? 0, this.#text(at + 3)))
          at += 5
          break
        default:
          throw new Error(`an unknown message of native/client: ${inbox[at]}`)
      }
    }
  }

  #text(at: number): string {
    const start = this.#inbox[at] ?? 0
    return this.#bytes.toString('latin1', start, start + (this.#inbox[at + 1] ?? 0))
  }

  #head(at: number, id: number, answering: Answering): void {
    const inbox = this.#inbox
    const text = this.#bytes.toString('latin1', inbox[at + 4], inbox[at + 5])
    const lines: AnswerLines = {}
    const end = at + headNumbers + 3 * (inbox[at + 8] ?? 0)
    for (let line = at + headNumbers; line < end; line += 3) {
      const name = this.#names[inbox[line] ?? 0] ?? ''
      const value = text.slice(inbox[line + 1], inbox[line + 2])
      const before = lines[name]
      if (before === undefined) lines[name] = value
      else lines[name] = [...(Array.isArray(before) ? before : [before]), value]
    }
    const isWhole = ((inbox[at + 3] ?? 0) & wholeFlag) !== 0
    if (isWhole) this.#open.delete(id)
    answering.onHead(inbox[at + 2] ?? 0, lines)
    if (!isWhole) return
    this.#piece(answering, inbox[at + 6] ?? 0, inbox[at + 7] ?? 0)
    answering.onEnd()
  }

  #data(at: number, id: number, answering: Answering): void {
    const inbox = this.#inbox
    const isLast = inbox[at + 4] === 1
    if (isLast) this.#open.delete(id)
    this.#piece(answering, inbox[at + 2] ?? 0, inbox[at + 3] ?? 0)
    if (isLast) answering.onEnd()
  }

  /** The shared bytes are used again when all was heard. */
  #piece(answering: Answering, start: number, length: number): void {
    if (length === 0) return
    const piece = answering.memoryFor(length)
    this.#bytes.copy(piece, 0, start, start + length)
    answering.onPiece(piece)
  }
}

function errorOf(code: number, reason: string): ExchangeError {
  const more = reason === '' ? '' : `: ${reason}`
  if (-code === tlsFault) return new ExchangeError(`${faults[tlsFault]}${more}`, tlsFailed)
  if (code < 0) return new ExchangeError(faults[-code] ?? 'the answer cannot be believed', 'EBADMSG')
  const name = systemName(code)
  return new ExchangeError(`${name} (error ${code} of the system)`, name)
}

/** Those that a connection can end with on Linux. */
const systemNames: Readonly<Record<number, string>> = {
  5: 'EIO',
  24: 'EMFILE',
  23: 'ENFILE',
  32: 'EPIPE',
  99: 'EADDRNOTAVAIL',
  101: 'ENETUNREACH',
  104: 'ECONNRESET',
  110: 'ETIMEDOUT',
  111: 'ECONNREFUSED',
  113: 'EHOSTUNREACH',
}

function systemName(code: number): string {
  return systemNames[code] ?? 'EUNKNOWN'
}
