/**
 * The words that the server and its TypeScript twin share. All that happened on the connections of a thread since the last
 * turn is told in one call; answers go to their sockets at once, small ones at the end of the turn.
 */
export interface Wire {
  /** 0 until `listening`. */
  readonly port: number
  /** The addon listens at once; its twin resolves this a moment later, or rejects where the address cannot be had. */
  readonly listening: Promise<void>
  /** What happened: messages one behind another, see `message` and `field`. Valid during the call of `hear`. */
  readonly inbox: Int32Array
  /** What messages point into. Valid during the call of `hear`. */
  readonly bytes: Buffer
  /** Heads of answers are written here, from its start. */
  readonly outbox: Buffer
  /**
   * Sends `headBytes` of the outbox and then `body` on the connection `slot`, which has an answer outstanding. Returns how
   * many bytes of the body were taken; where that is less, a `writable` message comes. The head is always taken.
   */
  send(slot: number, headBytes: number, body: Uint8Array, how: number): number
  /** The body of the request is wanted: `data` messages come. */
  read(slot: number): void
  /** Behind the answer that is outstanding no request of this connection is read or told, until `release`. */
  hold(slot: number): void
  /** Ends a hold. Nothing happens where there is none: the slot may be another connection's by now. */
  release(slot: number): void
  /** Closes a connection at once; no message comes. */
  drop(slot: number): void
  /** Textual address of the other end, IPv4 in dotted form; '' where it is gone. */
  address(slot: number): string
  /** To be called regularly with monotonic milliseconds: closes what is idle, slow or stuck. */
  sweep(nowMs: number): void
  /** No new connection and no idle one. */
  shut(): void
  /** Closes everything at once; no message comes. Nothing may be called after it. */
  destroy(): void
  /** Absent where every answer is made anew. */
  readonly standing?: StandingWire
}

/** Answers that are given again to requests that are the same byte for byte, but for the bounds of one range. */
export interface StandingWire {
  /**
   * Lets an answer stand for requests like the one whose message starts at `at` in the inbox, until `forget`. In the outbox lie
   * `before`, `after` and `rest` bytes: the head's lines around the request's id, and those behind the place of a range and its
   * length, with the end of the head. For ranges `body` holds the content from `start`, of `size` bytes in all; else the whole
   * body. `file` is the descriptor of a file that is the content, or less than 0. Its number, or less than 0 where it cannot
   * stand.
   */
  stand(at: number, head: StandingHead, body: Uint8Array, start: number, size: number, file: number): number
  /** Forgets all. The numbers of those that are still being taken: their bodies stay until `released` names them. */
  forget(): readonly number[]
  /** Closes the connections that are taking this answer, forgotten or not. */
  cut(number: number): void
}

export interface StandingHead {
  readonly before: number
  readonly after: number
  readonly rest: number
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
  /** After a last answer, for the client to notice. */
  readonly lingerMs: number
  readonly connectionsMax: number
}

/** Called with the count of numbers in the inbox. */
export type Hear = (count: number) => void

/** The first number of a message; the second is the slot of its connection (but for `released`). */
export const message = {
  /** See `field`. */
  request: 1,
  /** Then start and length in `bytes`, and 1 where it is the last of the body. */
  data: 2,
  /** There is room for more of an answer. */
  writable: 3,
  /** The client has left, or was sent away: the answer is over. A client that only sends no more has not left. */
  gone: 4,
  /** Then the number of a standing answer, forgotten before, that nobody takes any more. */
  released: 5,
  /** Behind the request that it is about: see `known`. */
  known: 6,
  /** Written over `known`: the answer may go out. The request itself is then nobody's business. */
  allowed: 7,
  /** Then the bytes of a standing answer that the client will not have. */
  unsent: 8,
} as const

/** Numbers of every message but a request and `known`. */
export const shortMessage = 5

/** Places of the numbers of a `known` message: which answer, and the range that is asked for (2 ** 30 times the first start). */
export const known = { answer: 2, startHigh: 3, startLow: 4, length: 5, numbers: 6 } as const

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

export const flag = { http10: 1, keep: 2, body: 4, chunked: 8, expects: 16, first: 32, repeated: 64 } as const

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

/** Read from a socket at once. */
export const readMaxBytes = 64 * 1024

/** The hash of a header's name, in small letters. */
export function hashOfName(name: string): number {
  let hash = 0
  for (let at = 0; at < name.length; at += 1) hash = (Math.imul(hash, 31) + name.charCodeAt(at)) | 0
  return hash
}

/** What the two sides share, large enough for every connection to have something to say in one turn. */
export function sharedMemory(connectionsMax: number): Pick<Wire, 'inbox' | 'bytes' | 'outbox'> {
  return {
    inbox: new Int32Array(2 ** 16 + 4 * shortMessage * connectionsMax),
    bytes: Buffer.allocUnsafeSlow(2 ** 20),
    outbox: Buffer.allocUnsafeSlow(2 ** 18),
  }
}
