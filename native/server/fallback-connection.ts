import type { Socket } from 'node:net'
import { ChunkReader } from './chunks.js'
import type { Waiting } from './crowd.js'
import { chunkFault, type HeadFault, lateFault, readHead } from './heads.js'
import { field, headMaxBytes, readMaxBytes, requestFlag, type WireOptions } from './wire.js'

const nothing = Buffer.alloc(0)
/** Bytes of a body that wait to be taken; the socket is not read beyond them. */
const aheadMaxBytes = 4 * readMaxBytes
/**
 * An ended connection is read for so many times `lingerMs` at most, however steadily its client goes on sending; once where
 * there are many connections.
 */
const lingerParts = 10
/** Where there are many connections, idle ones are closed after this time, and the head of a request has to be there. */
const crowdedMs = 2000
const reasons = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
  505: 'Version Not Supported',
} as const

/** What a connection needs of the server that it belongs to. */
export interface ConnectionServer {
  readonly options: WireOptions
  /** Milliseconds, as of the last sweep. */
  readonly now: number
  /** True: no connection is kept for another request. */
  readonly closing: boolean
  /** Tells of a request; its head is copied to where the numbers point. */
  tellRequest(slot: number, numbers: readonly number[], head: Buffer): void
  tellData(slot: number, piece: Buffer, last: boolean): void
  tellWritable(slot: number): void
  tellGone(slot: number): void
  /** True where a connection may use what it has read; where not, `takeUp` of it is called again. */
  hasRoom(connection: FallbackConnection): boolean
  /** Has `takeUp` of the connection called again: its bytes are here already, no event will announce them. */
  later(connection: FallbackConnection): void
  /** The connection is closed; its slot is used again when all its events were delivered. */
  removed(slot: number): void
}

/** One connection of the fallback; the same turns as in connection.cc. */
export class FallbackConnection {
  last = false
  /** The socket has more than it can send at once. */
  full = false
  /** There is more to send. */
  wants = false
  #phase: 'head' | 'answering' | 'lingering' | 'over' = 'head'
  #first = true
  #begun = false
  #ended = false
  #reading = false
  #chunks: ChunkReader | undefined
  #bodyLeft = 0
  #expects = false
  #since: number
  /** When its sending side was ended. */
  #lingers = 0
  #in: Buffer = nothing
  /** The client sends no more. */
  #ends = false
  #held = false
  /** The client, by its address. */
  readonly who: string
  /** Milliseconds of when it last sent a byte. */
  #heard: number

  constructor(
    private readonly wire: ConnectionServer,
    readonly socket: Socket,
    readonly slot: number,
    private readonly number: number,
  ) {
    this.#since = wire.now
    this.#heard = wire.now
    this.who = socket.remoteAddress ?? ''
    socket.on('data', (piece: Buffer) => this.#arrived(piece))
    socket.on('drain', () => this.#drained())
    socket.on('end', () => this.#sawEnd())
    socket.on('error', () => this.#gone())
    socket.on('close', () => this.#gone())
  }

  get isAnswering(): boolean {
    return this.#phase === 'answering' && !this.#ended
  }

  /** It waits for its client: nothing of ours is lost with it. */
  get waiting(): Waiting | undefined {
    const { number } = this
    if (this.#phase === 'lingering') return { rank: 0, since: this.#lingers, number }
    if (this.#phase !== 'answering') return { rank: this.#first ? 1 : 2, since: this.#since, number }
    return this.#reading && !this.#begun ? { rank: 3, since: this.#heard, number } : undefined
  }

  get isIdle(): boolean {
    return this.#phase === 'head'
  }

  #unread(): boolean {
    return this.#chunks === undefined ? this.#bodyLeft > 0 : !this.#chunks.whole
  }

  #arrived(piece: Buffer): void {
    if (this.#phase === 'over') return
    this.#heard = this.wire.now
    if (this.#phase === 'lingering') {
      this.#since = this.wire.now
      return
    }
    if (this.#phase === 'head' && this.#in.length === 0) this.#since = this.wire.now
    this.#in = this.#in.length === 0 ? piece : Buffer.concat([this.#in, piece])
    this.takeUp()
  }

  /** Uses what was read. */
  takeUp(): void {
    if (this.#phase === 'lingering' || this.#phase === 'over') return
    if (this.#held || (this.#phase === 'answering' && !this.#reading)) {
      if (this.#unread() || this.#in.length >= headMaxBytes) this.socket.pause()
      return
    }
    if (this.#in.length >= aheadMaxBytes) this.socket.pause()
    if (this.#in.length === 0 || !this.wire.hasRoom(this)) return
    if (this.#phase === 'head') this.#takeHead()
    else this.#takeBody()
  }

  #takeHead(): void {
    const numbers: number[] = []
    const all = this.#in.subarray(0, headMaxBytes + 1)
    const { consumed, fault } = readHead(all.toString('latin1'), numbers)
    if (fault !== undefined) this.#refuse(fault)
    else if (consumed === 0 && this.#ends) this.#linger()
    if (consumed === 0) return
    const head = Buffer.from(this.#in.subarray(0, consumed))
    this.#in = this.#in.subarray(consumed)
    const at = (name: Exclude<keyof typeof field, 'lines'>): number => numbers[field[name] - 2] ?? 0
    const flags = at('flags') | (this.#first ? requestFlag.first : 0)
    numbers[0] = flags
    lowerNames(head, numbers)
    this.#phase = 'answering'
    this.#first = false
    this.#begun = false
    this.#ended = false
    this.#reading = false
    this.#held = false
    this.wants = false
    this.last = (flags & requestFlag.keep) === 0
    this.#expects = (flags & requestFlag.expects) !== 0
    this.#chunks = (flags & requestFlag.chunked) !== 0 ? new ChunkReader() : undefined
    this.#bodyLeft = at('lengthHigh') * 2 ** 30 + at('lengthLow')
    this.wire.tellRequest(this.slot, numbers, head)
    if (this.#in.length > 0) this.takeUp()
  }

  #takeBody(): void {
    let piece: Buffer
    const all = this.#in.subarray(0, 2 * readMaxBytes)
    if (this.#chunks === undefined) {
      piece = this.#in.subarray(0, Math.min(this.#bodyLeft, all.length))
      this.#bodyLeft -= piece.length
      this.#in = this.#in.subarray(piece.length)
    } else {
      const pieces: Uint8Array[] = []
      const used = this.#chunks.take(all, (part) => pieces.push(part))
      if (this.#chunks.failed) {
        this.#refuse(chunkFault)
        return
      }
      piece = Buffer.concat(pieces)
      this.#in = this.#in.subarray(used)
    }
    const last = !this.#unread()
    if (last) this.#reading = false
    if (piece.length > 0 || last) this.wire.tellData(this.slot, piece, last)
    if (last) return
    if (this.#in.length < aheadMaxBytes) this.socket.resume()
    if (this.#in.length > 0) this.wire.later(this)
    else if (this.#ends) this.#cutOff()
  }

  /** The client ended its side within the body, and may still read: an event states how much was missing. */
  #cutOff(): void {
    if (this.#ended) {
      this.#gone()
      return
    }
    const word =
      this.#chunks === undefined
        ? `the body ended early, missing bytes: ${this.#bodyLeft}`
        : 'the body ended before its last chunk'
    this.#refuse({ status: 400, word })
  }

  read(): void {
    if (!this.isAnswering || !this.#unread()) return
    this.#reading = true
    this.socket.resume()
    if (this.#in.length > 0) this.wire.later(this)
    else if (this.#ends) this.#cutOff()
    else if (this.#expects) this.socket.write('HTTP/1.1 100 Continue\r\n\r\n')
    this.#expects = false
  }

  pause(): void {
    if (!this.isAnswering || !this.#reading) return
    this.#reading = false
    this.socket.pause()
  }

  /** `bytes` belong to the socket from now on. */
  write(bytes: Buffer): void {
    this.#begun = true
    this.#since = this.wire.now
    if (!this.socket.write(bytes)) this.full = true
  }

  /** Everything of the answer was written. */
  end(): void {
    this.#ended = true
    if (!this.full) this.#finish()
  }

  #drained(): void {
    this.full = false
    this.#since = this.wire.now
    if (this.#phase !== 'answering') return
    if (this.#ended) this.#finish()
    else if (this.wants) this.wire.tellWritable(this.slot)
    this.wants = false
  }

  #finish(): void {
    if (this.last || this.wire.closing || this.#unread() || (this.#ends && this.#in.length === 0)) {
      this.#linger()
      return
    }
    this.#phase = 'head'
    this.#await()
  }

  /** Waits for the next request, or for `takeNext`. */
  #await(): void {
    this.#since = this.wire.now
    if (this.#held) return
    this.socket.resume()
    if (this.#in.length > 0) this.wire.later(this)
  }

  delayNext(): void {
    if (this.#phase === 'answering') this.#held = true
  }

  release(): void {
    if (!this.#held) return
    this.#held = false
    if (this.#phase === 'head') this.#await()
  }

  #refuse({ status, word }: HeadFault): void {
    if (this.#begun && this.#phase === 'answering') {
      this.#gone()
      return
    }
    if (this.#phase === 'answering') this.wire.tellGone(this.slot)
    this.socket.write(
      `HTTP/1.1 ${status} ${reasons[status]}\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n` +
        `Content-Length: ${word.length}\r\nConnection: close\r\n\r\n${word}`,
    )
    this.#linger()
  }

  /** Ends the sending side and reads on for a while: see connection.cc. */
  #linger(): void {
    this.#phase = 'lingering'
    this.#since = this.wire.now
    this.#lingers = this.wire.now
    this.#in = nothing
    this.socket.end()
    this.socket.resume()
  }

  /** The client sends no more, and may still listen: see connection.cc. */
  #sawEnd(): void {
    // Its answer may still wait to be sealed. When both sides have ended, Node closes the socket.
    if (this.#phase === 'lingering') return
    this.#ends = true
    this.#since = this.wire.now
    if (this.#phase === 'answering' && !this.#reading) return
    if (this.#in.length > 0) this.wire.later(this)
    else if (this.#phase === 'answering') this.#cutOff()
    else this.#gone()
  }

  /** The client has left, or must. */
  gone(): void {
    this.#gone()
  }

  #gone(): void {
    if (this.isAnswering) this.wire.tellGone(this.slot)
    this.remove()
  }

  remove(): void {
    this.#phase = 'over'
    this.socket.destroy()
    this.wire.removed(this.slot)
  }

  /** Ends what is late, as listen.cc does; `isCrowded`: its place is wanted at once. */
  sweep(now: number, isCrowded: boolean): void {
    const { headMs, idleMs, stallMs, lingerMs } = this.wire.options
    const mostMs = isCrowded ? crowdedMs : Number.POSITIVE_INFINITY
    const waited = now - this.#since
    const stuck = this.#ended || this.#ends
    const idle = this.#held || this.#in.length === 0
    const lingered = now - this.#lingers
    const lingersMs = isCrowded ? lingerMs : lingerParts * lingerMs
    if (this.#phase === 'lingering' && (waited > lingerMs || lingered > lingersMs)) this.remove()
    else if (this.#phase === 'answering' && stuck && waited > stallMs) this.#gone()
    else if (this.#phase !== 'head') return
    else if (!idle && waited > Math.min(headMs, mostMs)) this.#refuse(lateFault)
    else if (idle && waited > Math.min(this.#first ? headMs : idleMs, mostMs)) {
      if (isCrowded) this.remove()
      else this.#linger()
    }
  }
}

/** Makes the names of header lines lower case, in place. */
function lowerNames(head: Buffer, numbers: readonly number[]): void {
  for (let at = field.lines - 2; at < numbers.length; at += 5) {
    for (let index = numbers[at + 1] ?? 0; index < (numbers[at + 2] ?? 0); index += 1) {
      const byte = head[index] ?? 0
      if (byte >= 65 && byte <= 90) head[index] = byte + 32
    }
  }
}
