import { how, type Wire } from '../../native/server/wire.js'
import type { Content } from '../store/content.js'
import { clientPace } from './client-pace.js'
import type { Pace, Piece, Sent } from './exchange.js'
import { attempt, type Stalls, type Watched } from './stalls.js'

/**
 * Bytes that all open bodies of this thread together may write in one turn of the event loop. A new socket takes some MiB at
 * once, so that without a limit for each a thousand new readers would block all others for seconds.
 */
const turnBytes = 64 * 1024 * 1024
export const shareMinBytes = 128 * 1024
/**
 * Bytes of one body in one turn. The kernel copies 256 KiB in about 0.1 ms, and all other requests of this thread wait meanwhile.
 * One call with 8 MiB would make them wait for 3 ms.
 */
const shareMaxBytes = 256 * 1024

/** Bodies of this thread that are under way. */
let open = 0

/**
 * Bytes that `ready` announced may be dropped from memory before they are read. This often in a row it is a bug.
 */
const vainMax = 1000

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

/** One body to send. */
export interface Pumped {
  readonly wire: Wire
  readonly slot: number
  readonly pieces: readonly Piece[]
  readonly content: Content | undefined
  /** Bytes of all pieces. */
  readonly total: number
  readonly stalls: Stalls
  /** Called with whatever threw: content that could not be read, or a bug. The socket is closed then. */
  readonly onThrow: (error: unknown) => void
  readonly whenOver: (sent: Sent) => void
}

/**
 * Moves one body into one socket, as fast as the socket takes it. All offsets count from the start of the body. Nothing is
 * copied and nothing is queued: what the socket did not take is read again when it has room.
 *
 * Timers and promises call it, where nothing above catches an exception: so each entry goes through `attempt`, and an
 * exception closes this one socket.
 */
export class Pump implements Watched {
  lastProgress = 0
  readonly #for: Pumped
  /** When the socket was full first, and what it had taken by then: the kernel takes that, whatever the client does. */
  #full: { readonly at: number; readonly ms: number } | undefined
  #at = 0
  #index = 0
  #pieceStart = 0
  #over = false
  #manner: number = how.end
  /** What the pump waits for; undefined while it does not wait. */
  #waits: 'socket' | 'content' | undefined
  /** How often since the last byte announced content was absent. */
  #vain = 0

  constructor(pumped: Pumped) {
    this.#for = pumped
  }

  /** Undefined where its client is not waited for. */
  pace(nowMs: number): Pace | undefined {
    if (this.#waits !== 'socket' || this.#full === undefined) return undefined
    return clientPace(this.#at - this.#full.at, nowMs - this.#full.ms)
  }

  /**
   * Writes what can be written now, behind the head that is in the outbox. `last`: the connection is closed after this
   * answer.
   */
  start(headBytes: number, last: boolean): void {
    open += 1
    this.#manner = last ? how.end | how.close : how.end
    attempt(this, () => this.#run(headBytes))
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
    this.#for.stalls.moved(this)
    this.#resume()
  }

  #run(headBytes: number): void {
    const { wire, slot, total } = this.#for
    let head = headBytes
    let budget = share()
    for (;;) {
      const here = this.#next()
      if (here === undefined) {
        if (head > 0) wire.send(slot, head, nothing, 0)
        this.#await()
        return
      }
      const bytes = here.length > budget ? here.subarray(0, budget) : here
      const last = this.#at + bytes.length === total
      const taken = wire.send(slot, head, bytes, last ? this.#manner : 0)
      if (taken < 0) throw new Error('the bytes of a body are gone: its file has shrunk')
      head = 0
      if (taken > 0) this.#vain = 0
      this.#seek(this.#at + taken)
      if (this.#at === total) {
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
    const { pieces } = this.#for
    let piece = pieces[this.#index]
    while (piece !== undefined && offset >= this.#pieceStart + sizeOf(piece)) {
      this.#pieceStart += sizeOf(piece)
      this.#index += 1
      piece = pieces[this.#index]
    }
  }

  /** The bytes at the current offset, one at least; undefined where the source has to be waited for. */
  #next(): Uint8Array | undefined {
    const { pieces, content } = this.#for
    this.#seek(this.#at)
    const piece = pieces[this.#index]
    if (piece === undefined) throw new Error('a body ended before its length')
    const offset = this.#at - this.#pieceStart
    if ('bytes' in piece) return offset === 0 ? piece.bytes : piece.bytes.subarray(offset)
    if (content === undefined) throw new Error('a window of no content')
    const here = content.read(piece.start + offset, piece.end)
    // An empty read would repeat without end.
    if (here?.length === 0) throw new Error('content gave no bytes, and did not say to wait')
    return here
  }

  #await(): void {
    const { pieces, content } = this.#for
    const piece = pieces[this.#index]
    if (piece === undefined || 'bytes' in piece || content === undefined) {
      throw new Error('only content is waited for')
    }
    this.#vain += 1
    if (this.#vain > vainMax) throw new Error('content that is announced here is never to be read')
    this.#wait('content')
    const offset = this.#at - this.#pieceStart
    content.ready(piece.start + offset, piece.end).then(
      (here) => (here ? this.#resume() : this.#break()),
      (error: unknown) => this.fail(error),
    )
  }

  #wait(what: 'socket' | 'content'): void {
    if (this.#waits === undefined) this.#for.stalls.watch(this)
    this.#waits = what
    if (what === 'socket') this.#full ??= { at: this.#at, ms: this.#for.stalls.now() }
  }

  #resume(): void {
    attempt(this, () => {
      if (this.#over) return
      if (this.#waits === 'content') {
        this.#for.stalls.forget(this)
        this.#waits = undefined
      }
      this.#run(0)
    })
  }

  fail(error: unknown): void {
    this.#for.onThrow(error)
    this.#break()
  }

  #break(): void {
    if (this.#over) return
    this.#for.wire.drop(this.#for.slot)
    this.#end('broken')
  }

  stalled(): void {
    if (this.#waits === 'content') {
      this.#for.stalls.watch(this)
      return
    }
    this.#for.wire.drop(this.#for.slot)
    this.#end('stalled')
  }

  /**
   * Tries to write, so that slow progress is seen: the kernel reports a socket writable only when a third of its buffer is
   * free.
   */
  keepAlive(): void {
    if (this.#waits !== 'socket') return
    const before = this.#at
    this.#run(0)
    if (this.#at > before && !this.#over) this.#for.stalls.moved(this)
  }

  /** The client has left. */
  abort(): void {
    if (!this.#over) this.#end('aborted')
  }

  /** Every step runs once, also where one of them throws. */
  #end(outcome: Sent['outcome']): void {
    const { stalls, content, onThrow, whenOver } = this.#for
    this.#over = true
    open -= 1
    if (this.#waits !== undefined) stalls.forget(this)
    try {
      content?.close()
    } catch (error) {
      onThrow(error)
    }
    try {
      whenOver({ outcome, bytes: this.#at })
    } catch (error) {
      onThrow(error)
    }
  }
}
