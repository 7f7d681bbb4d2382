import type { Socket } from 'node:net'
import type { Clock } from '../actor/clock.js'
import type { MseHandshake } from './mse-handshake.js'
import {
  decodeHandshake,
  encode,
  Frames,
  type Handshake,
  handshakeBytes,
  isHandshake,
  type Message,
} from './wire.js'

/** Why a connection ended (labels of a meter). All but `closed` and `done` are the other side's fault, or its network's. */
export type ConnectionEnd =
  /** The other side left, or its network did. */
  | 'closed'
  /** This side has no more use for it. */
  | 'done'
  /** Not a message of a BitTorrent peer. */
  | 'garbage'
  /** Speaks without encryption where encryption is required. */
  | 'clear'
  /** Asks for a torrent that is not here. */
  | 'unknown'
  /** No whole handshake in time. */
  | 'late'
  /** No message for long. */
  | 'idle'
  /** Does not read what is sent. */
  | 'stalled'
  /** Goes on sending requests beyond the limit. */
  | 'flood'
  /** One connection too many. */
  | 'full'
  /** Delivered bytes that do not match the torrent's hashes. */
  | 'forged'

export interface PeerConnectionOptions {
  /** Longest message accepted; the bitfield of a whole torrent is the longest that is needed. */
  readonly messageMaxBytes: number
  readonly handshakeMs: number
  readonly idleMs: number
  /** One write, a few hundred KiB at most, must be taken within this. */
  readonly stallMs: number
  /** Nothing is read from a peer while it leaves more than this unread. */
  readonly unsentMaxBytes: number
}

export const connectionDefaults: PeerConnectionOptions = {
  messageMaxBytes: 128 * 1024,
  handshakeMs: 10_000,
  // Peers send a keep-alive each two minutes.
  idleMs: 180_000,
  stallMs: 60_000,
  unsentMaxBytes: 512 * 1024,
}

/** A keep-alive is sent after so long without a message of ours. */
const quietMs = 90_000

/** The owner of a connection: what is done with its messages. */
export interface PeerHandler {
  /** The peer's handshake is whole. A reason ends the connection. */
  onHandshake(handshake: Handshake): ConnectionEnd | undefined
  /** A message, in order; its bytes are valid only until this returns. A reason ends the connection. */
  onMessage(message: Message): ConnectionEnd | undefined
  /** Called once, whatever ended it; nothing is called after. */
  onClose(reason: ConnectionEnd): void
}

/**
 * One connection with a peer: bytes to handshake and messages, with deadlines. The owner of the connection calls
 * `tick` each second.
 */
export class PeerConnection {
  #head: Buffer | undefined = Buffer.alloc(0)
  #over = false
  readonly #frames: Frames
  readonly #openedMs: number
  #receivedMs: number
  #spokeMs: number
  #agreement: MseHandshake | undefined
  /** What is to be sent once the encryption handshake is done. */
  #held: { readonly bytes: Uint8Array; readonly sent: (() => void) | undefined }[] = []
  #open: ((bytes: Buffer) => void) | undefined
  #seal: ((bytes: Uint8Array) => void) | undefined
  /** When the oldest write that is still under way began; 0: none is. */
  #writingMs = 0
  #writes = 0

  constructor(
    private readonly socket: Socket,
    private readonly options: PeerConnectionOptions,
    private readonly clock: Clock,
    private readonly handler: PeerHandler,
    /** Absent: both speak in clear from the first byte on. */
    agreement?: MseHandshake,
  ) {
    this.#agreement = agreement
    this.#frames = new Frames(options.messageMaxBytes)
    this.#openedMs = this.#receivedMs = this.#spokeMs = clock.monotonic()
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.on('drain', () => socket.resume())
    socket.on('error', () => this.end('closed'))
    socket.on('close', () => this.end('closed'))
    // A peer that has closed its sending side will request nothing more; requests that it made before are dropped.
    socket.on('end', () => this.end('closed'))
  }

  /** Bytes that the peer has not taken yet. */
  get unsentBytes(): number {
    return this.socket.writableLength
  }

  get isOver(): boolean {
    return this.#over
  }

  /**
   * Sends bytes, which may be encrypted in place: the caller must not touch them until `sent` is called. It is also
   * called when the connection ends before.
   */
  send(bytes: Uint8Array, sent?: () => void): void {
    if (this.#over) sent?.()
    else if (this.#agreement !== undefined) this.#held.push({ bytes, sent })
    else {
      this.#seal?.(bytes)
      this.#write(bytes, sent)
    }
  }

  /** Sends the first bytes of the encryption handshake. */
  begin(words: Buffer): void {
    if (!this.#over) this.#write(words)
  }

  #write(bytes: Uint8Array, sent?: () => void): void {
    const now = this.clock.monotonic()
    this.#spokeMs = now
    if (this.#writes === 0) this.#writingMs = now
    this.#writes += 1
    this.socket.write(bytes, () => {
      this.#writes -= 1
      this.#writingMs = this.#writes === 0 ? 0 : this.clock.monotonic()
      sent?.()
    })
  }

  /** Ends the connection at once. */
  end(reason: ConnectionEnd): void {
    if (this.#over) return
    this.#over = true
    this.socket.destroy()
    for (const { sent } of this.#held.splice(0)) sent?.()
    this.handler.onClose(reason)
  }

  /** Looks at the deadlines. */
  tick(nowMs: number): void {
    if (this.#head !== undefined) {
      if (nowMs - this.#openedMs > this.options.handshakeMs) this.end('late')
    } else if (this.#writingMs !== 0 && nowMs - this.#writingMs > this.options.stallMs) this.end('stalled')
    else if (nowMs - this.#receivedMs > this.options.idleMs) this.end('idle')
    else if (nowMs - this.#spokeMs > quietMs) this.send(encode.keepAlive())
  }

  #take(chunk: Buffer): void {
    if (this.#over) return
    this.#receivedMs = this.clock.monotonic()
    const words = this.#reveal(chunk)
    if (words === undefined || this.#over) return
    const rest = this.#head === undefined ? words : this.#greet(this.#head, words)
    if (rest === undefined || rest.length === 0 || this.#over) return
    const reason: { is?: ConnectionEnd } = {}
    const whole = this.#frames.push(rest, (message) => {
      const end = this.handler.onMessage(message)
      if (end !== undefined) reason.is = end
      return end === undefined && !this.#over
    })
    if (!whole) this.end(reason.is ?? 'garbage')
    else if (this.socket.writableLength > this.options.unsentMaxBytes) this.socket.pause()
  }

  /**
   * The decrypted bytes of a chunk; undefined where the encryption handshake is not done, or the chunk has nothing
   * behind it.
   */
  #reveal(chunk: Buffer): Buffer | undefined {
    if (this.#agreement === undefined) {
      this.#open?.(chunk)
      return chunk
    }
    const step = this.#agreement.push(chunk)
    if (step.kind === 'end') {
      this.end(step.reason)
      return undefined
    }
    if (step.reply !== undefined) this.#write(step.reply)
    if (step.kind === 'more') return undefined
    this.#agreement = undefined
    this.#open = step.open
    this.#seal = step.seal
    for (const { bytes, sent } of this.#held.splice(0)) this.send(bytes, sent)
    return step.rest
  }

  /** Gathers the handshake; returns what came after it. */
  #greet(had: Buffer, chunk: Buffer): Buffer | undefined {
    const bytes = Buffer.concat([had, chunk])
    if (!isHandshake(bytes)) {
      this.end('garbage')
      return undefined
    }
    if (bytes.length < handshakeBytes) {
      this.#head = bytes
      return undefined
    }
    this.#head = undefined
    const handshake = decodeHandshake(bytes)
    const reason = handshake === undefined ? 'garbage' : this.handler.onHandshake(handshake)
    if (reason !== undefined) this.end(reason)
    return bytes.subarray(handshakeBytes)
  }
}
