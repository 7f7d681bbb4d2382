import type { HttpResponse } from 'uWebSockets.js'
import type { Content } from '../store/content.js'
import type { Piece, Sent } from './exchange.js'
import type { Stalls, Watched } from './stalls.js'

/**
 * Bytes that all open bodies of this thread together may hand over before every other socket has had its turn. A new socket
 * takes some MiB at once, so without a share for each a thousand new readers would keep all others waiting for seconds.
 */
const turnBytes = 64 * 1024 * 1024
const shareMinBytes = 128 * 1024
const shareMaxBytes = 8 * 1024 * 1024

/** Bodies of this thread that are under way. */
let open = 0

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
  readonly #res: HttpResponse
  readonly #pieces: readonly Piece[]
  readonly #content: Content | undefined
  readonly #total: number
  readonly #stalls: Stalls
  readonly #whenOver: (sent: Sent) => void
  #at = 0
  #index = 0
  #pieceStart = 0
  #over = false
  /** What the pump waits for, when it waits. */
  #waits: 'socket' | 'content' | undefined

  constructor(
    res: HttpResponse,
    pieces: readonly Piece[],
    content: Content | undefined,
    total: number,
    stalls: Stalls,
    whenOver: (sent: Sent) => void,
  ) {
    this.#res = res
    this.#pieces = pieces
    this.#content = content
    this.#total = total
    this.#stalls = stalls
    this.#whenOver = whenOver
  }

  /** Writes what can be written now. The head is written and the socket corked. */
  start(): void {
    open += 1
    this.#run()
    if (!this.#over) this.#res.onWritable((offset) => this.#writable(offset))
  }

  #writable(offset: number): boolean {
    if (this.#over) return true
    if (offset > this.#at) this.#stalls.moved(this)
    this.#seek(offset)
    // Woken while the source is still being waited for: there is nothing to write, and nothing has failed.
    return this.#waits === 'content' ? true : this.#run()
  }

  /** False where the socket is full; the server then calls back when it has room. */
  #run(): boolean {
    let budget = share()
    for (;;) {
      const here = this.#next()
      if (here === undefined) return this.#await()
      const bytes = here.length > budget ? here.subarray(0, budget) : here
      const [ok, done] = this.#res.tryEnd(bytes, this.#total)
      if (done) {
        this.#at = this.#total
        this.#end('whole')
        return true
      }
      if (!ok) {
        this.#seek(this.#res.getWriteOffset())
        this.#wait('socket')
        return false
      }
      this.#seek(this.#at + bytes.length)
      budget -= bytes.length
      if (budget <= 0) {
        setImmediate(() => this.#resume())
        return true
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
    if ('bytes' in piece) return piece.bytes.subarray(offset)
    if (this.#content === undefined) throw new Error('a window of no content')
    return this.#content.read(piece.start + offset, piece.end)
  }

  #await(): true {
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
    return true
  }

  #wait(what: 'socket' | 'content'): void {
    if (this.#waits === undefined) this.#stalls.watch(this)
    this.#waits = what
  }

  #resume(): void {
    if (this.#over) return
    if (this.#waits !== undefined) this.#stalls.forget(this)
    this.#waits = undefined
    this.#res.cork(() => {
      this.#run()
    })
  }

  #break(): void {
    if (this.#over) return
    this.#end('broken')
    this.#res.close()
  }

  stalled(): void {
    if (this.#waits === 'content') {
      this.#stalls.watch(this)
      return
    }
    this.#end('stalled')
    this.#res.close()
  }

  /**
   * The server closes a socket that was full for ten seconds; another try winds its timer up again, and shows progress too
   * small to wake us: the kernel calls a socket writable only when a third of its buffer is free.
   */
  keepAlive(): void {
    if (this.#waits !== 'socket') return
    const before = this.#at
    this.#res.cork(() => {
      this.#run()
    })
    if (this.#at > before && !this.#over) this.#stalls.moved(this)
  }

  /** The client has left: the response must not be touched any more. */
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
