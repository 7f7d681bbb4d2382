import type { AnswerControl, Answering } from '../../../native/client/client.js'
import type { Clock, Timer } from '../../actor/clock.js'
import { PieceList } from '../../format/piece-list.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import { SenderPace, type SenderPaceOptions } from '../../http/sender-pace.js'
import { BodyRooms } from './body-rooms.js'
import type { HeaderLines } from './gateway-headers.js'

/** Bytes of one body that may wait here for their reader, before the socket is left to fill. */
const aheadMaxBytes = 128 * 1024

/**
 * The pieces of a body up to this size keep their memory until `release`. Those of a larger one share some, where the client
 * writes into it.
 */
const lastingMaxBytes = 1024 * 1024

/** Memory for all small bodies of this thread. */
const rooms = new BodyRooms()

/** Memory for one piece of a larger body: as much as is read from a socket at once. */
const slabBytes = 256 * 1024

/** What is left of a refused answer is read away up to so many bytes, so that its socket can be used again. */
const readAwayMaxBytes = 65_536

type Piece = Uint8Array | Refusal
type Step = IteratorResult<Piece, undefined>
type All = readonly Uint8Array[] | Refusal

const tooLong = refuse('upstream', 'upstream', 'the body is too long')

const ended: Step = { done: true, value: undefined }

/**
 * One answer as it arrives. It is called while the socket is read, and a reader that waits gets its piece in the same turn.
 * Streams, iterators and timers of a library in between would cost as much as the rest of the way.
 *
 * The pieces are watched: when they come too slowly (`SenderPace`) the last word is a refusal (`late`), when the body fails it is
 * one too (`upstream`).
 */
export class UpstreamAnswer implements Answering, AsyncIterableIterator<Piece, undefined> {
  statusCode = 0
  headers: HeaderLines = {}
  /** Resolves when the answer's head is there, or with what broke it. */
  readonly head: Promise<Error | undefined>
  /** Pieces of the body stay as they are; else each is valid until the next one is requested. */
  isLasting = true
  /** Memory of pieces that were read. */
  readonly #spare: Uint8Array[] = []
  /** The piece that is being read. */
  #given: Uint8Array | undefined
  #tellHead: (broken?: Error) => void = () => undefined
  #control: AnswerControl | undefined
  readonly #waiting = new PieceList()
  /** By the answer's own length; 0 where it has none. */
  #announcedBytes = 0
  #takePiece: ((step: Step) => void) | undefined
  #takeAll: { readonly maxBytes: number; readonly give: (all: All) => void } | undefined
  #over = false
  #last: Refusal | undefined
  #readAway: number | undefined
  readonly #pace: SenderPace
  #watch: Timer | undefined
  readonly #overActs: ((isWell: boolean) => void)[] = []
  #isWell = true

  /** `sharesMemory`: the client writes pieces into what `memoryFor` gives. */
  constructor(
    pace: SenderPaceOptions,
    private readonly clock: Clock,
    private readonly sharesMemory = false,
  ) {
    this.#pace = new SenderPace(pace, clock)
    this.head = new Promise((resolve) => {
      this.#tellHead = resolve
    })
  }

  /** The request is under way. */
  begin(control: AnswerControl): void {
    this.#control = control
    if (this.#over) control.drop()
  }

  onHead(statusCode: number, headers: HeaderLines): void {
    this.statusCode = statusCode
    this.headers = headers
    this.#announcedBytes = Number(headers['content-length'] ?? 0)
    this.isLasting = !this.sharesMemory || this.#announcedBytes <= lastingMaxBytes
    this.#tellHead()
  }

  onCame(bytes: number): void {
    this.#pace.came(bytes)
    if (this.#takePiece !== undefined || this.#takeAll !== undefined) this.#pace.wait()
  }

  /** Large bodies use the same memory again and again: V8 would have to find out that it is garbage. */
  memoryFor(length: number): Uint8Array {
    if (this.isLasting) return rooms.take(length)
    if (length > slabBytes) return Buffer.allocUnsafe(length)
    const slab = this.#spare.pop() ?? Buffer.allocUnsafeSlow(slabBytes)
    return slab.subarray(0, length)
  }

  onPiece(piece: Uint8Array): void {
    if (this.#over) return
    if (this.#readAway !== undefined) {
      this.#readAway -= piece.length
      if (this.#readAway < 0) this.end(undefined)
      return
    }
    this.#pace.came(piece.length)
    if (this.#takePiece !== undefined) {
      this.#give({ done: false, value: piece })
      return
    }
    if (!this.#waiting.add(piece)) {
      // It was copied.
      if (this.#isRoomed) rooms.give(piece)
      else this.#reuse(piece)
    }
    if (this.#takeAll !== undefined) this.#awaitMore(this.#takeAll.maxBytes)
    else if (this.#waiting.sizeBytes >= aheadMaxBytes) this.#control?.pause()
  }

  onEnd(): void {
    this.#finish(undefined)
  }

  onError(error: Error): void {
    this.#tellHead(error)
    this.#finish(refuse('upstream', 'upstream', `the source broke off: ${error.message}`))
  }

  /** Calls `act` once, when nothing more will come, at once where that is so; false: because something broke. */
  whenOver(act: (isWell: boolean) => void): void {
    if (this.#over) act(this.#isWell)
    else this.#overActs.push(act)
  }

  /** Ends the exchange from this side; `refusal` is then the body's last word. */
  end(refusal: Refusal | undefined): void {
    if (this.#over) return
    const error = new Error('nobody waits for it')
    this.#tellHead(error)
    this.#finish(refusal)
    this.#control?.drop()
  }

  /** Lets go of an answer whose body nobody reads. */
  drop(): void {
    if (this.#over) return
    if (this.#announcedBytes > readAwayMaxBytes) {
      this.end(undefined)
      return
    }
    this.#readAway = readAwayMaxBytes - this.#waiting.sizeBytes
    this.#waiting.clear()
    this.#control?.resume()
    this.#watch?.cancel()
    this.#pace.wait()
    this.#watchFor(this.#pace.leftMs)
  }

  next(): Promise<Step> {
    this.#reuse(this.#given)
    const piece = this.#waiting.shift()
    this.#given = piece
    if (piece !== undefined) {
      if (this.#waiting.sizeBytes === 0) this.#control?.resume()
      return Promise.resolve({ done: false, value: piece })
    }
    if (this.#over) {
      const last = this.#last
      this.#last = undefined
      return Promise.resolve(last === undefined ? ended : { done: false, value: last })
    }
    return new Promise((resolve) => {
      this.#pace.wait()
      this.#takePiece = resolve
      if (this.#watch === undefined) this.#watchFor(this.#pace.leftMs)
    })
  }

  /** Nobody reads the piece any more, unless it lasts. */
  #reuse(piece: Uint8Array | undefined): void {
    if (!this.isLasting && piece?.buffer.byteLength === slabBytes)
      this.#spare.push(new Uint8Array(piece.buffer))
  }

  /** Pieces lie in memory of `rooms`. */
  get #isRoomed(): boolean {
    return this.isLasting && this.sharesMemory
  }

  /** The pieces that `collect` gave are read no more: their memory is used for other bodies. */
  release(): void {
    if (!this.#over || !this.#isRoomed) return
    for (const piece of this.#waiting.pieces) rooms.give(piece)
    this.#waiting.clear()
  }

  /**
   * All pieces of the body when it has ended, in place of the iteration: a small body takes no promise for each piece. A refusal:
   * it broke, or has more than `maxBytes`.
   */
  collect(maxBytes: number): Promise<All> {
    return new Promise((give) => {
      if (this.#over) {
        give(this.#last ?? (this.#waiting.sizeBytes > maxBytes ? tooLong : this.#waiting.pieces))
        return
      }
      this.#takeAll = { maxBytes, give }
      this.#control?.resume()
      this.#awaitMore(maxBytes)
      if (this.#watch === undefined) this.#watchFor(this.#pace.leftMs)
    })
  }

  #awaitMore(maxBytes: number): void {
    this.#pace.wait()
    if (Math.max(this.#waiting.sizeBytes, this.#announcedBytes) > maxBytes) this.end(tooLong)
  }

  return(): Promise<Step> {
    this.#waiting.clear()
    this.end(undefined)
    return Promise.resolve(ended)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** One timer for many pieces: it looks what is left of the patience, and waits for the rest. */
  #watchFor(ms: number): void {
    this.#watch = this.clock.after(ms, () => {
      this.#watch = undefined
      if (this.#readAway !== undefined) this.end(undefined)
      if (this.#takePiece === undefined && this.#takeAll === undefined) return
      const { leftMs } = this.#pace
      if (leftMs > 0) this.#watchFor(leftMs)
      else this.end(refuse('late', 'upstream', 'the source sent too little for too long'))
    })
  }

  #finish(refusal: Refusal | undefined): void {
    if (this.#over) return
    this.#over = true
    this.#watch?.cancel()
    this.#isWell = refusal === undefined
    for (const act of this.#overActs) act(this.#isWell)
    if (this.#takeAll !== undefined) this.#takeAll.give(refusal ?? this.#waiting.pieces)
    else if (this.#takePiece === undefined) this.#last = refusal
    else this.#give(refusal === undefined ? ended : { done: false, value: refusal })
  }

  #give(step: Step): void {
    const take = this.#takePiece
    this.#takePiece = undefined
    if (step.done !== true && step.value instanceof Uint8Array) this.#given = step.value
    take?.(step)
  }
}
