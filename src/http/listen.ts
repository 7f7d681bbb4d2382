import { setTimeout as pause } from 'node:timers/promises'
import { openWire, servedBy, tlsBy } from '../../native/server/server.js'
import { field, lineFields, message, requestFlag, shortMessage, type Wire } from '../../native/server/wire.js'
import { type Clock, systemClock, type Timer } from '../actor/clock.js'
import { HeldMemory } from '../actor/held-memory.js'
import { RunningTime } from '../actor/running-time.js'
import type { CertificatePair } from '../certificates/pair.js'
import { IncomingBody } from './body.js'
import type { Reply, Request } from './exchange.js'
import { gatheredMaxBytes } from './gathered-body.js'
import { type ReplyOwner, SocketReply } from './reply.js'
import { type Front, SocketRequest } from './request.js'
import { RequestDelays } from './request-delays.js'
import { RequestPlaces } from './request-places.js'
import { ResponseCache, type ResponseCacheOptions } from './response-cache.js'
import { bytesPerSecondMin, SenderPace } from './sender-pace.js'
import { Stalls } from './stalls.js'

export interface TlsOptions {
  /** The first one is for names that no other one has. */
  readonly pairs: readonly CertificatePair[]
  /** Memory of `TicketKeys`. */
  readonly ticketKeys: SharedArrayBuffer
  /** What becomes of a client that asks for a name of none of them. */
  readonly unknownName: 'default' | 'refuse'
}

export interface ServeOptions {
  /** Numeric address to listen on. */
  readonly host: string
  /** 0: any free port. Threads that give the same number share it; the kernel spreads connections over them. */
  readonly port: number
  /** A client that takes no byte of a body, or sends none of its own, for so long is dropped. */
  readonly stallMs: number
  /** Slower bodies than this use up `stallMs`, too (`SenderPace`); `bytesPerSecondMin` where absent. */
  readonly bodyBytesPerSecondMin?: number
  /** Requests being answered at once on this thread; one more is answered 503 with Retry-After. */
  readonly requestsMax: number
  /** Whose share of them a request uses; absent: that of the socket's other end. */
  readonly clientOf?: (request: Request) => string
  /** Memory of bodies that handlers want as a whole; absent: that which all servers of the thread share. */
  readonly bodyMemory?: HeldMemory
  /** Hears of a handler that threw, and of content that could not be read; its socket is closed. */
  readonly onThrow: (error: unknown) => void
  /** Connections of this server at most; 16384 where absent. */
  readonly connectionsMax?: number
  readonly clock?: Clock
  /** The response cache: answers sent again without a handler. Absent: none. By the system's clock and the native server only. */
  readonly responseCache?: ResponseCacheOptions
  /** Header lines of every answer, each with CRLF in front. */
  readonly lines?: string
  /** TLS is spoken; absent: plain HTTP. */
  readonly tls?: TlsOptions
  /** The native server where it was built, else its fallback. For tests of both. */
  readonly by?: 'addon' | 'fallback'
}

/** Where TLS is spoken, and with what. Plain: it is cloned into a thread. */
export interface SecurePlace extends TlsOptions, Pick<ServeOptions, 'host' | 'port' | 'lines'> {}

/** The options of a server at this place. */
export function securely({
  host,
  port,
  lines = '',
  ...tls
}: SecurePlace): Partial<ServeOptions> & { tls: TlsOptions } {
  return { host, port, lines, tls }
}

export interface Server {
  /** With the fallback 0 until `listening`. */
  readonly port: number
  /** Resolves when connections are taken; rejects where the address cannot be had. The native server throws at once instead. */
  readonly listening: Promise<void>
  /** Requests being answered. */
  readonly openRequests: number
  /** Undefined: it has none. */
  readonly responseCache: ResponseCache | undefined
  /** Where TLS is spoken: new connections get these certificates from now on. Those that are open go on. */
  setCertificates(pairs: readonly CertificatePair[]): void
  /** Takes no new connection, lets running answers end for up to `graceMs`, then closes what is left. */
  close(graceMs: number): Promise<void>
}

/** What answers requests. It must end each reply exactly once, now or later; a throw closes that socket. */
export type Handler = (request: Request, reply: Reply) => void

export { boundSockets, type SocketUsage, socketUsage } from '../../native/server/server.js'

const nodeShares = Number.parseFloat(process.versions.node) >= 23.1
/** Whether several threads may listen on one port: Node itself can since 23.1. */
export const portsShared = servedBy === 'addon' || nodeShares
/** Whether several threads may listen on one port with TLS. */
export const tlsPortsShared = tlsBy === 'addon' || nodeShares

/** Memory for bodies that all servers of this thread share. */
const bodyMemory = new HeldMemory(gatheredMaxBytes)

/** A request's head must be complete within this time, so that idle senders cannot hold connections. */
const headMs = 10_000
/**
 * A connection without a request is kept for so long. It is more than the usual 60 s of proxies in front: the proxy closes first,
 * and never sends a request into a connection that is closing.
 */
const idleMs = 75_000
/**
 * How long a closed connection is drained: closing with unread bytes would reset it, and the client would lose the answer.
 */
const lingerMs = 3000
/** A closing server looks this often whether cached answers are still going out. */
const sendingMs = 20
/** Connections of one thread: 16 KiB of each may wait in memory. */
const usualConnectionsMax = 16_384

class ListeningServer implements ReplyOwner, Front, Server {
  readonly wire: Wire
  readonly stalls: Stalls
  readonly memory: HeldMemory
  readonly responseCache: ResponseCache | undefined
  readonly #requestDelays: RequestDelays
  readonly #handler: Handler
  readonly #options: ServeOptions
  readonly #clock: Clock
  /** Clients are judged by it. */
  readonly #running: RunningTime
  readonly #sweeping: Timer
  readonly #places: RequestPlaces
  /** Indexed by slot. */
  readonly #addresses: (string | undefined)[] = []
  #drained: (() => void) | undefined
  closing = false
  #second = -1
  #date = ''

  constructor(handler: Handler, options: ServeOptions) {
    this.#handler = handler
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.memory = options.bodyMemory ?? bodyMemory
    const { host, port, stallMs, connectionsMax = usualConnectionsMax, tls } = options
    const bounds = { headMs, idleMs, stallMs, lingerMs, connectionsMax }
    const sweepMs = Math.max(10, Math.min(1000, stallMs / 4))
    this.#running = new RunningTime(this.#clock, 2 * sweepMs)
    this.#places = new RequestPlaces(options.requestsMax, this.#running)
    const secure = tls === undefined ? {} : { tls }
    this.wire = openWire(
      { host, port, ...bounds, ...secure },
      (count) => this.#hear(count),
      options.by ?? servedBy,
    )
    this.responseCache = this.#openResponseCache(options)
    this.stalls = new Stalls(stallMs, this.#running)
    this.#requestDelays = new RequestDelays(this.wire, this.#clock)
    this.#sweeping = this.#clock.every(sweepMs, () => this.#sweep())
    this.#sweep()
  }

  /** The addon asks the system for the time: with another clock it would answer by another time than the handler. */
  #openResponseCache({ responseCache }: ServeOptions): ResponseCache | undefined {
    if (responseCache === undefined || this.#clock !== systemClock) return undefined
    const table = this.wire.responseCache?.(
      responseCache.maxBytes,
      responseCache.plain,
      this.#options.lines ?? '',
    )
    return table === undefined ? undefined : new ResponseCache(this.wire, table, responseCache)
  }

  get isSecure(): boolean {
    return this.#options.tls !== undefined
  }

  setCertificates(pairs: readonly CertificatePair[]): void {
    this.wire.setCertificates(pairs)
  }

  get onThrow(): (error: unknown) => void {
    return this.#options.onThrow
  }

  get port(): number {
    return this.wire.port
  }

  get listening(): Promise<void> {
    return this.wire.listening
  }

  get openRequests(): number {
    return this.#places.count
  }

  #sweep(): void {
    this.wire.sweep(this.#running.monotonic())
    this.responseCache?.reportSamples()
  }

  /** The lines that every answer has: Date (RFC 9110 section 6.6.1) and those of the options, each with CRLF in front. */
  dateLine(): string {
    const second = Math.floor(this.#clock.now() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#date = `\r\nDate: ${new Date(second * 1000).toUTCString()}${this.#options.lines ?? ''}`
    }
    return this.#date
  }

  delayNext(slot: number, ms: number): void {
    this.#requestDelays.add(slot, ms)
  }

  addressOf(slot: number): string {
    let address = this.#addresses[slot]
    if (address === undefined) {
      address = this.wire.address(slot)
      this.#addresses[slot] = address
    }
    return address
  }

  /** Handles all messages of the server since the last call. */
  #hear(count: number): void {
    const { inbox } = this.wire
    for (let at = 0; at < count; ) {
      if (inbox[at] === message.request) {
        const next = at + field.lines + lineFields * inbox[at + field.count]!
        if ((inbox[at + field.flags]! & requestFlag.first) !== 0) this.#addresses[inbox[at + 1]!] = undefined
        this.#take(at)
        at = next
      } else {
        this.#dispatch(at)
        at += shortMessage
      }
    }
  }

  #dispatch(at: number): void {
    const { inbox, bytes } = this.wire
    const reply = this.#places.replyAt(inbox[at + 1]!)
    if (reply === undefined) return
    try {
      const kind = inbox[at]
      if (kind === message.writable) reply.writable()
      else if (kind === message.gone) reply.abort()
      else {
        const start = inbox[at + 2]!
        reply.arrived(bytes.subarray(start, start + inbox[at + 3]!), inbox[at + 4] === 1)
      }
    } catch (error) {
      // A bug in one answer closes its socket only.
      reply.destroy()
      this.#options.onThrow(error)
    }
  }

  #take(at: number): void {
    const request = new SocketRequest(this, at)
    const reply = new SocketReply(request, this)
    const isFull = this.#places.isCrowded && !this.#places.mayBegin(this.clientOf(request))
    if (isFull) reply.turnAway(503, 'busy', 'Retry-After: 1')
    else {
      if (request.hasBody) reply.expect(this.#incoming(request.slot))
      try {
        this.#handler(request, reply)
      } catch (error) {
        reply.destroy()
        this.#options.onThrow(error)
      }
    }
    if (!reply.over) {
      this.#places.countFor(this.clientOf(request), request.slot)
      request.detach()
      reply.watch()
    }
  }

  #incoming(slot: number): IncomingBody {
    const { stallMs, bodyBytesPerSecondMin = bytesPerSecondMin } = this.#options
    const pace = new SenderPace({ stallMs, bytesPerSecondMin: bodyBytesPerSecondMin }, this.#running)
    return new IncomingBody(this.wire, slot, this.stalls, pace)
  }

  clientOf(request: Request): string {
    const { clientOf } = this.#options
    return clientOf === undefined ? request.remoteAddress : clientOf(request)
  }

  opened(reply: SocketReply, slot: number): void {
    this.#places.opened(reply, slot)
  }

  closed(slot: number): void {
    this.#places.closed(slot)
    if (this.#places.count === 0) this.#drained?.()
  }

  async close(graceMs: number): Promise<void> {
    if (this.closing) return
    this.closing = true
    await this.wire.shut()
    const graceEndsMs = this.#clock.monotonic() + graceMs
    if (this.#places.count > 0) {
      await new Promise<void>((resolve) => {
        const timer = this.#clock.after(graceMs, resolve)
        this.#drained = () => {
          timer.cancel()
          resolve()
        }
      })
    }
    while (this.responseCache?.isSending === true && this.#clock.monotonic() < graceEndsMs) {
      // Keeps the thread alive, unlike timers of the clock: with the last client gone nothing else may be left in the loop.
      await pause(sendingMs)
    }
    this.#places.abortAll()
    this.responseCache?.reportSamples()
    this.wire.destroy()
    this.responseCache?.close()
    this.stalls.close()
    this.#requestDelays.close()
    this.#sweeping.cancel()
  }
}

/** Listens. Throws where the address cannot be had. */
export function serve(handler: Handler, options: ServeOptions): Server {
  return new ListeningServer(handler, options)
}
