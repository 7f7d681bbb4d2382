import { createServer, type Server, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { firstOf, hogOf, newestParts } from './crowd.js'
import { type ConnectionServer, FallbackConnection } from './fallback-connection.js'
import { FallbackTls } from './fallback-tls.js'
import {
  field,
  type Hear,
  how,
  lineFields,
  linesMax,
  message,
  type Pair,
  readMaxBytes,
  sharedSizes,
  shortMessage,
  type Wire,
  type WireOptions,
} from './wire.js'

/** So small a part of the connections makes room for others at once. */
const crowdParts = 64
/** So many wait for a place at least, however few places there are. */
const arrivedMin = 64
/** Put into a socket at once: it is copied, and waits in memory. */
const pieceMaxBytes = 64 * 1024

/** The server over `node:net`. One copy more of every byte, and an object for every event. */
export class FallbackWire implements Wire, ConnectionServer {
  port = 0
  readonly inbox: Int32Array
  readonly bytes: Buffer
  readonly outbox: Buffer
  readonly options: WireOptions
  now = 0
  #accepted = 0
  closing = false
  /** Resolves when the port is known; rejects where the address cannot be had. */
  readonly listening: Promise<void>
  readonly #hear: Hear
  readonly #server: Server
  readonly #tls: FallbackTls | undefined
  readonly #slots: (FallbackConnection | undefined)[] = []
  readonly #free: number[] = []
  /** Accepted, and not read while all places are taken. */
  readonly #arrived = new Set<Socket>()
  readonly #arrivedMax: number
  #freedNext: number[] = []
  #again: FallbackConnection[] = []
  #at = 0
  #used = 0
  #delivering = false
  #waking = false
  #open = 0

  constructor(options: WireOptions, hear: Hear) {
    const { inboxNumbers, bytesBytes, outboxBytes } = sharedSizes(options.connectionsMax)
    this.inbox = new Int32Array(inboxNumbers)
    this.bytes = Buffer.allocUnsafeSlow(bytesBytes)
    this.outbox = Buffer.allocUnsafeSlow(outboxBytes)
    this.options = options
    this.#hear = hear
    const { host, port, tls, connectionsMax } = options
    const add = (socket: Socket): void => this.#add(socket)
    this.#arrivedMax = Math.max(arrivedMin, connectionsMax >> 2)
    const secure = tls && new FallbackTls(tls, Math.max(8, connectionsMax >> 2), add)
    this.#tls = secure
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
      secure === undefined ? add(socket) : secure.take(socket),
    )
    this.listening = new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      // Node before 23.1 does not know the last word: there only one thread can listen.
      const where = { host, port, reusePort: true, backlog: 4096 }
      this.#server.listen(where, () => {
        const address = this.#server.address()
        if (typeof address === 'object' && address !== null) this.port = address.port
        resolve()
      })
    })
  }

  #add(socket: Socket): void {
    if (this.#open < this.options.connectionsMax && this.#arrived.size === 0) this.#admit(socket)
    else this.#hold(socket)
  }

  #admit(socket: Socket): void {
    const slot = this.#free.pop() ?? this.#slots.length
    this.#accepted += 1
    this.#slots[slot] = new FallbackConnection(this, socket, slot, this.#accepted)
    this.#open += 1
  }

  /**
   * Has it wait for a place. Node accepts all that come in one turn, before it reads any: without the wait many that come at the
   * same time would end a newcomer whose request is here already. In listen.cc they wait in the backlog.
   */
  #hold(socket: Socket): void {
    if (this.#arrived.size >= this.#arrivedMax) {
      this.#crowdOut()
      this.#admitArrived()
    }
    if (this.#arrived.size >= this.#arrivedMax) {
      socket.destroy()
      return
    }
    this.#arrived.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => this.#arrived.delete(socket))
    this.wake()
  }

  #admitArrived(): void {
    for (const socket of this.#arrived) {
      if (this.#open >= this.options.connectionsMax) return
      this.#arrived.delete(socket)
      this.#admit(socket)
    }
  }

  /** Ends waiting connections, first of whoever has more than a share, as listen.cc does. */
  #crowdOut(): void {
    const { connectionsMax } = this.options
    const open = (): FallbackConnection[] => this.#slots.filter((one) => one !== undefined)
    const wanted = 1 + Math.floor(connectionsMax / crowdParts)
    const { has, beyond } = hogOf(open(), connectionsMax)
    const newest = this.#accepted - Math.floor(connectionsMax / newestParts)
    const hogs = firstOf(has, Math.min(wanted, beyond), this.now, newest)
    for (const one of hogs) one.gone()
    for (const one of firstOf(open(), wanted - hogs.length, this.now, newest)) one.gone()
  }

  tellRequest(slot: number, numbers: readonly number[], head: Buffer): void {
    this.inbox[this.#at] = message.request
    this.inbox[this.#at + 1] = slot
    this.inbox.set(numbers, this.#at + 2)
    this.inbox[this.#at + field.base] = this.#put(head)
    this.#at += field.lines + lineFields * (numbers[field.count - 2] ?? 0)
    this.wake()
  }

  tellData(slot: number, piece: Buffer, last: boolean): void {
    this.#pushEvent(message.data, slot, this.#put(piece), piece.length, last ? 1 : 0)
  }

  tellWritable(slot: number): void {
    this.#pushEvent(message.writable, slot, 0, 0, 0)
  }

  tellGone(slot: number): void {
    this.#pushEvent(message.gone, slot, 0, 0, 0)
  }

  #pushEvent(...numbers: number[]): void {
    this.inbox.set(numbers, this.#at)
    this.#at += shortMessage
    this.wake()
  }

  #put(piece: Buffer): number {
    const start = this.#used
    piece.copy(this.bytes, start)
    this.#used += piece.length
    return start
  }

  hasRoom(connection: FallbackConnection): boolean {
    // For a request, and three events of each connection.
    const numbers = field.lines + lineFields * linesMax + 3 * shortMessage * this.options.connectionsMax
    const hasBytes = this.#used + 2 * readMaxBytes <= this.bytes.length
    if (!this.#delivering && hasBytes && this.#at + numbers <= this.inbox.length) return true
    this.later(connection)
    return false
  }

  later(connection: FallbackConnection): void {
    this.#again.push(connection)
    this.wake()
  }

  /** Messages are delivered when the present event is over, several in one call. */
  wake(): void {
    if (this.#waking || this.#delivering) return
    this.#waking = true
    setImmediate(() => this.#handOver())
  }

  /** Delivers what was pushed. Handlers may push more meanwhile: it comes first in the next delivery. */
  #handOver(): void {
    if (this.#delivering) return
    this.#waking = false
    const again = this.#again
    this.#again = []
    for (const connection of again) connection.takeUp()
    const freed = this.#freedNext
    this.#freedNext = []
    const delivered = this.#at
    if (delivered > 0) {
      this.#delivering = true
      try {
        this.#hear(delivered)
      } finally {
        this.#delivering = false
        this.inbox.copyWithin(0, delivered, this.#at)
        this.#at -= delivered
        // What was pushed meanwhile has no bytes (`hasRoom`).
        this.#used = 0
      }
    }
    // Only now: the end of the connection that had the slot is delivered.
    this.#free.push(...freed)
    this.#admitArrived()
    // For the next turn, which `removed` brings: what was admitted now is read before.
    if (this.#arrived.size > 0) this.#crowdOut()
    if (this.#at + this.#again.length + this.#freedNext.length > 0) this.wake()
  }

  removed(slot: number): void {
    if (this.#slots[slot] === undefined) return
    this.#slots[slot] = undefined
    this.#freedNext.push(slot)
    this.#open -= 1
    this.wake()
  }

  send(slot: number, headBytes: number, body: Uint8Array, manner: number): number {
    const connection = this.#slots[slot]
    if (connection === undefined || !connection.isAnswering) return 0
    if ((manner & how.close) !== 0) connection.last = true
    if (headBytes > 0) connection.write(Buffer.from(this.outbox.subarray(0, headBytes)))
    let taken = 0
    while (taken < body.length && ((manner & how.copy) !== 0 || !connection.full)) {
      const piece = body.subarray(taken, taken + pieceMaxBytes)
      connection.write(Buffer.from(piece))
      taken += piece.length
    }
    connection.wants = taken < body.length
    if ((manner & how.end) !== 0 && !connection.wants) connection.end()
    return taken
  }

  setCertificates(pairs: readonly Pair[]): void {
    if (this.#tls === undefined) throw new Error('this server speaks plain HTTP')
    this.#tls.use(pairs)
  }

  read(slot: number): void {
    this.#slots[slot]?.read()
  }

  pause(slot: number): void {
    this.#slots[slot]?.pause()
  }

  delayNext(slot: number): void {
    this.#slots[slot]?.delayNext()
  }

  takeNext(slot: number): void {
    this.#slots[slot]?.release()
  }

  drop(slot: number): void {
    this.#slots[slot]?.remove()
  }

  address(slot: number): string {
    const address = this.#slots[slot]?.socket.remoteAddress ?? ''
    return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
  }

  /** Judges after the sockets were looked at once more: this thread may not have run for a while. */
  sweep(nowMs: number): void {
    this.now = nowMs
    this.#tls?.sweep(nowMs)
    if (this.#arrived.size > 0) this.wake()
    setImmediate(() => {
      const isCrowded = this.#open * 4 > this.options.connectionsMax * 3
      for (const connection of this.#slots) connection?.sweep(nowMs, isCrowded)
    })
  }

  async shut(): Promise<void> {
    if (this.closing) return
    this.closing = true
    // Who waits to be accepted would be reset with the socket: accepted in the first turn of the loop, read in the second.
    await turn()
    await turn()
    this.#handOver()
    this.#stop()
  }

  #stop(): void {
    this.#server.close()
    for (const socket of this.#arrived) socket.destroy()
    this.#arrived.clear()
    for (const connection of this.#slots) if (connection?.isIdle === true) connection.remove()
  }

  destroy(): void {
    this.closing = true
    this.#stop()
    this.#tls?.destroy()
    for (const connection of this.#slots) connection?.remove()
  }
}

/** Listens, a moment later: `listening` tells. */
export function openFallbackWire(options: WireOptions, hear: Hear): FallbackWire {
  return new FallbackWire(options, hear)
}
