import { how, type Wire } from '../../native/server/wire.js'
import type { Content } from '../store/content.js'
import type { Piece, Sent } from './exchange.js'
import type { Stalls, Watched } from './stalls.js'

/**
 * Bytes that all open bodies of this thread together may hand over before every other socket has had its turn. A new socket
 * takes some MiB at once, so without a share for each a thousand new readers would keep all others waiting for seconds.
 */
const turnBytes = 64 * 1024 * 1024
export const shareMinBytes = 128 * 1024
const shareMaxBytes = 8 * 1024 * 1024

/** Bodies of this thread that are under way. */
let open = 0

const nothing = new Uint8Array(0)

function share(): number {
  return Math.max(shareMinBytes, Math.min(shareMaxBytes, Math.floor(turnBytes / open)))
}

function sizeOf(piece: Piece): number {
  return 'bytes' in piece ? piece.bytes.length : piece.end - piece.start
}

/** Bytes of a body made of these pieces. */
export function sizeOfAll(pieces: readonly Piece[]): number {
  let size = 0
  for (const piece of pieces) size += sizeOf(piece)
  return size
}

/**
 * Moves one body into one socket, as fast as the socket takes it. All offsets count from the start of the body. Nothing is
 * copied and nothing is queued: what the socket did not take is read again when it has room.
 */
export class Pump implements Watched {
  lastProgress = 0
  readonly #wire: Wire
  readonly #slot: number
  readonly #pieces: readonly Piece[]
  readonly #content: Content | undefined
  readonly #total: number
  readonly #stalls: Stalls
  readonly #whenOver: (sent: Sent) => void
  #at = 0
  #index = 0
  #pieceStart = 0
  #over = false
  #manner: number = how.end
  /** What the pump waits for, when it waits. */
  #waits: 'socket' | 'content' | undefined

  constructor(
    wire: Wire,
    slot: number,
    pieces: readonly Piece[],
    content: Content | undefined,
    total: number,
    stalls: Stalls,
    whenOver: (sent: Sent) => void,
  ) {
    this.#wire = wire
    this.#slot = slot
    this.#pieces = pieces
    this.#content = content
    this.#total = total
    this.#stalls = stalls
    this.#whenOver = whenOver
  }

  /** Writes what can be written now, behind the head that is in the outbox. `last`: the connection ends with this answer. */
  start(headBytes: number, last: boolean): void {
    open += 1
    this.#manner = last ? how.end | how.close : how.end
    this.#run(headBytes)
  }

  /** The head and the first `taken` bytes are out already, and the socket is full. */
  startFull(taken: number, last: boolean): void {
    open += 1
    if (last) this.#manner = how.end | how.close
    this.#seek(taken)
    this.#wait('socket')
  }

  /** The socket has room again. */
  writable(): void {
    if (this.#over || this.#waits !== 'socket') return
    this.#stalls.moved(this)
    this.#resume()
  }

  #run(headBytes: number): void {
    let head = headBytes
    let budget = share()
    for (;;) {
      const here = this.#next()
      if (here === undefined) {
        if (head > 0) this.#wire.send(this.#slot, head, nothing, 0)
        this.#await()
        return
      }
      const bytes = here.length > budget ? here.subarray(0, budget) : here
      const last = this.#at + bytes.length === this.#total
      const taken = this.#wire.send(this.#slot, head, bytes, last ? this.#manner : 0)
      head = 0
      this.#seek(this.#at + taken)
      if (this.#at === this.#total) {
        this.#end('whole')
        return
      }
      if (taken < bytes.length) {
        this.#wait('socket')
        return
      }
      budget -= taken
      if (budget <= 0) {
        setImmediate(() => this.#resume())
        return
      }
    }
  }

  #seek(offset: number): void {
    this.#at = offset
    let piece = this.#pieces[this.#index]
    while (piece !== undefined && offset >= this.#pieceStart + sizeOf(piece)) {
      this.#pieceStart += sizeOf(piece)
      this.#index += 1
      piece = this.#pieces[this.#index]
    }
  }

  /** The bytes at the current offset; undefined where the source has to be waited for. */
  #next(): Uint8Array | undefined {
    const piece = this.#pieces[this.#index]
    if (piece === undefined) throw new Error('a body ended before its length')
    const offset = this.#at - this.#pieceStart
    if ('bytes' in piece) return offset === 0 ? piece.bytes : piece.bytes.subarray(offset)
    if (this.#content === undefined) throw new Error('a window of no content')
    return this.#content.read(piece.start + offset, piece.end)
  }

  #await(): void {
    const piece = this.#pieces[this.#index]
    if (piece === undefined || 'bytes' in piece || this.#content === undefined) {
      throw new Error('only content is waited for')
    }
    this.#wait('content')
    const offset = this.#at - this.#pieceStart
    this.#content.ready(piece.start + offset, piece.end).then(
      (here) => (here ? this.#resume() : this.#break()),
      () => this.#break(), // a source that throws is as broken as one that says so
    )
  }

  #wait(what: 'socket' | 'content'): void {
    if (this.#waits === undefined) this.#stalls.watch(this)
    this.#waits = what
  }

  #resume(): void {
    if (this.#over) return
    if (this.#waits === 'content') {
      this.#stalls.forget(this)
      this.#waits = undefined
    }
    this.#run(0)
  }

  #break(): void {
    if (this.#over) return
    this.#wire.drop(this.#slot)
    this.#end('broken')
  }

  stalled(): void {
    if (this.#waits === 'content') {
      this.#stalls.watch(this)
      return
    }
    this.#wire.drop(this.#slot)
    this.#end('stalled')
  }

  /**
   * Another try shows progress too small to wake us: the kernel calls a socket writable only when a third of its buffer is
   * free.
   */
  keepAlive(): void {
    if (this.#waits !== 'socket') return
    const before = this.#at
    this.#run(0)
    if (this.#at > before && !this.#over) this.#stalls.moved(this)
  }

  /** The client has left. */
  abort(): void {
    if (!this.#over) this.#end('aborted')
  }

  #end(outcome: Sent['outcome']): void {
    this.#over = true
    open -= 1
    if (this.#waits !== undefined) this.#stalls.forget(this)
    this.#content?.close()
    this.#whenOver({ outcome, bytes: this.#at })
  }
}
