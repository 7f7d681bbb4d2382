import type { CacheTable } from './cache-table.js'

/**
 * The interface that the server and its TypeScript fallback share. One call delivers all that happened on the connections of a
 * thread since the last turn. Answers go to their sockets at once, small ones at the end of the turn.
 */
export interface Wire {
  /** 0 until `listening`. */
  readonly port: number
  /** The addon listens at once; its fallback resolves this a moment later, or rejects where the address cannot be had. */
  readonly listening: Promise<void>
  /** What happened: messages one behind another, see `message` and `field`. Valid during the call of `hear`. */
  readonly inbox: Int32Array
  /** What messages point into. Valid during the call of `hear`. */
  readonly bytes: Buffer
  /** Heads of answers are written here, from its start. */
  readonly outbox: Buffer
  /**
   * Sends `headBytes` of the outbox and then `body` on the connection `slot`, which has an answer outstanding. Returns how
   * many bytes of the body were taken; where that is less, a `writable` message comes. The head is always taken. Less than 0:
   * the bytes of the body could not be read (a mapped file has shrunk), and the connection must be dropped.
   */
  send(slot: number, headBytes: number, body: Uint8Array, how: number): number
  /** The body of the request is wanted: `data` messages come. */
  read(slot: number): void
  /** No more of the body is wanted until `read`; pieces of this turn may still come. */
  pause(slot: number): void
  /** Behind the answer that is outstanding no request of this connection is read or delivered, until `takeNext`. */
  delayNext(slot: number): void
  /** Ends such a delay. Nothing happens where there is none: the slot may be another connection's by now. */
  takeNext(slot: number): void
  /** Closes a connection at once; no message comes. */
  drop(slot: number): void
  /** Textual address of the other end, IPv4 in dotted form; '' where it is gone. */
  address(slot: number): string
  /**
   * To be called regularly with monotonic milliseconds: closes what is idle, slow or stuck. What waits in a socket is used before
   * its connection is judged.
   */
  sweep(nowMs: number): void
  /**
   * Accepts no new connection, and closes idle ones; the answers to others are the last of theirs. Resolves when the requests
   * that had come by then were delivered.
   */
  shut(): Promise<void>
  /** Closes everything at once; no message comes. Nothing may be called after it. */
  destroy(): void
  /**
   * New connections get these certificates from now on; those that are open go on. Throws where one cannot be used: the old
   * ones stay then. Throws where plain HTTP is spoken.
   */
  setCertificates(pairs: readonly Pair[]): void
  /**
   * Opens the response cache, of this many bytes: what is put there is answered without a message. To be called once. `plain`:
   * header lines of requests that change none of the answers, each a name in small letters. `name=value|value`: with another
   * value only answers are used that do not depend on such lines. `lines`: header lines of every answer, each with CRLF in front.
   * Absent: this server has no response cache.
   */
  responseCache?(maxBytes: number, plain: readonly string[], lines?: string): CacheTable
}

/** A certificate as `src/certificates/pair.ts` reads it. */
export interface Pair {
  readonly names: readonly string[]
  readonly cert: string
  readonly key: string
}

/**
 * The memory of ticket keys, as `tls.h` has it: in front of the keys how many were made (Int32), and three unused. A key is its
 * name (16 bytes), AES-256 (32) and HMAC-SHA-256 (32), RFC 5077 section 4. Places: the one in use, those before it that are still
 * read, and one that is being written.
 */
export const ticketLayout = { headBytes: 16, keyBytes: 80, places: 4 } as const

/** See `TlsOptions` in src/http/listen.ts. */
export interface WireTls {
  readonly pairs: readonly Pair[]
  readonly ticketKeys: SharedArrayBuffer
  readonly unknownName: 'default' | 'refuse'
}

export interface WireOptions {
  /** Numeric address. */
  readonly host: string
  readonly port: number
  /** For a head to be complete, from its first byte or from the connection's start. */
  readonly headMs: number
  /** Between two requests. */
  readonly idleMs: number
  /** While the end of an answer waits for its client. */
  readonly stallMs: number
  /** After a last answer, for the client to notice: since it last sent something, and ten times as long in all. */
  readonly lingerMs: number
  readonly connectionsMax: number
  /** Absent: plain HTTP. */
  readonly tls?: WireTls
}

/** Called with the count of numbers in the inbox. */
export type Hear = (count: number) => void

/** The first number of a message; the second is the slot of its connection. */
export const message = {
  /** See `field`. */
  request: 1,
  /** Then start and length in `bytes`, and 1 where it is the last of the body. */
  data: 2,
  /** There is room for more of an answer. */
  writable: 3,
  /** The client has left, or was sent away: the answer is over. A client that only sends no more has not left. */
  gone: 4,
} as const

/** Numbers of every message but a request. */
export const shortMessage = 5

/** Places of a request's numbers; then five for each line. Offsets count from `base`, a place in `bytes`. */
export const field = {
  flags: 2,
  base: 3,
  methodStart: 4,
  methodEnd: 5,
  pathStart: 6,
  pathEnd: 7,
  queryStart: 8,
  queryEnd: 9,
  textEnd: 10,
  /** The declared length of the body: 2 ** 30 times the first and the second. */
  lengthHigh: 11,
  lengthLow: 12,
  /** Header lines. */
  count: 13,
  lines: 14,
} as const

/**
 * Hash of the name in small letters, start and end of the name, start and end of the value. The value of Host lies in the target
 * where that names a host.
 */
export const lineFields = 5

export const requestFlag = { http10: 1, keep: 2, body: 4, chunked: 8, expects: 16, first: 32 } as const

export const how = {
  /** With these bytes the answer is whole. */
  end: 1,
  /** The connection ends with this answer. */
  close: 2,
  /** What the socket does not take is put aside: for small bodies. */
  copy: 4,
} as const

/** Bytes of request line and header lines together. */
export const headMaxBytes = 16 * 1024
export const linesMax = 100

/** AES-128 first: every processor of today has instructions for it. Only suites with forward secrecy (RFC 9325). */
export const tlsCiphers = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
].join(':')
export const tlsGroups = 'X25519:P-256:P-384'

const plainWord = 'this port speaks TLS: the address begins with https://'

/** The answer to a request without TLS where TLS is spoken. */
export const plainOnTls =
  'HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n' +
  `Content-Length: ${plainWord.length}\r\nConnection: close\r\n\r\n${plainWord}`

/** Read from a socket at once. */
export const readMaxBytes = 64 * 1024

/** The hash of a header's name, in small letters. */
export function hashOfName(name: string): number {
  let hash = 0
  for (let at = 0; at < name.length; at += 1) hash = (Math.imul(hash, 31) + name.charCodeAt(at)) | 0
  return hash
}

/** How much the two sides share: enough for one message of every connection in one turn. */
export function sharedSizes(connectionsMax: number) {
  return {
    inboxNumbers: 2 ** 16 + 4 * shortMessage * connectionsMax,
    bytesBytes: 2 ** 20,
    outboxBytes: 2 ** 18,
  }
}
