import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { createSecureContext, createServer, type SecureContext, type Server, type TLSSocket } from 'node:tls'
import { type Pair, plainOnTls, ticketLayout, tlsCiphers, tlsGroups, type WireTls } from './wire.js'

/** For a handshake to be complete, from the connection's start. */
const handshakeMs = 10_000

const handshakeRecord = 22
/** The heads of a record and of a message in it. */
const headBytes = 9
const helloMaxBytes = 16 * 1024
/** The alert that the addon sends, too. */
const decodeError = Buffer.from([21, 3, 3, 0, 2, 2, 50])

/** TLS over `node:tls` in front of the fallback: what `tls.cc` does for the addon. */
export class FallbackTls {
  #server: Server | undefined
  readonly #options: WireTls
  readonly #max: number
  #contexts: readonly { readonly names: readonly string[]; readonly context: SecureContext }[] = []
  /** Connections that are not up yet, by the address of their client: since when. The oldest first. */
  readonly #waiting = new Map<string, { readonly socket: Socket; readonly since: number }>()
  #now = 0
  #keyCount = -1

  /** `max`: connections that may be in their handshake, or before it. */
  constructor(options: WireTls, max: number, add: (socket: Socket) => void) {
    this.#options = options
    this.#max = max
    this.use(options.pairs)
    this.#server = createServer({
      ...this.#common(options.pairs[0]),
      allowHalfOpen: true,
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: handshakeMs,
      SNICallback: (name, give) => {
        const context = this.#contextOf(name)
        if (context === undefined) give(new Error('no certificate has this name'))
        else give(null, context)
      },
    })
    this.#renewTickets()
    this.#server.on('secureConnection', (socket: TLSSocket) => {
      this.#waiting.delete(clientOf(socket))
      add(socket)
    })
    this.#server.on('tlsClientError', (_, socket) => socket.destroy())
  }

  #common(pair: Pair | undefined) {
    return {
      cert: pair?.cert ?? '',
      key: pair?.key ?? '',
      minVersion: 'TLSv1.2',
      ciphers: tlsCiphers,
      ecdhCurve: tlsGroups,
      honorCipherOrder: true,
    } as const
  }

  /** Throws where one of them cannot be used: the old ones stay then. */
  use(pairs: readonly Pair[]): void {
    const made = pairs.map((pair) => {
      // OpenSSL takes a key of another kind than the certificate's beside it.
      if (!new X509Certificate(pair.cert).checkPrivateKey(createPrivateKey(pair.key)))
        throw new Error('the key is not that of the certificate')
      return { names: pair.names, context: createSecureContext(this.#common(pair)) }
    })
    if (made.length === 0) throw new Error('TLS needs a certificate')
    this.#contexts = made
    if (this.#server === undefined) return
    this.#server.setSecureContext(this.#common(pairs[0]))
    this.#keyCount = -1
    this.#renewTickets()
  }

  #contextOf(requested: string): SecureContext | undefined {
    const name = requested.toLowerCase()
    const wild = `*${name.slice(name.indexOf('.'))}`
    const found =
      this.#contexts.find(({ names }) => names.includes(name)) ??
      this.#contexts.find(({ names }) => name.includes('.') && names.includes(wild))
    return (found ?? (this.#options.unknownName === 'default' ? this.#contexts[0] : undefined))?.context
  }

  /** node:tls knows one key of tickets at a time: those made with the one before it are not taken. */
  #renewTickets(): void {
    const { ticketKeys } = this.#options
    const count = Atomics.load(new Int32Array(ticketKeys, 0, 1), 0)
    if (count === this.#keyCount) return
    this.#keyCount = count
    const { headBytes, keyBytes, places } = ticketLayout
    const at = headBytes + (count % places) * keyBytes
    // Its tickets have keys of 16 bytes each.
    const key = new Uint8Array(ticketKeys, at, 48).slice()
    this.#server?.setTicketKeys(Buffer.from(key))
  }

  /** A connection of which nothing was read. Where too many are under way, the oldest makes room. */
  take(socket: Socket): void {
    const [oldest] = this.#waiting.size < this.#max ? [] : this.#waiting
    if (oldest !== undefined) {
      this.#waiting.delete(oldest[0])
      oldest[1].socket.destroy()
    }
    const client = clientOf(socket)
    this.#waiting.set(client, { socket, since: this.#now })
    const broken = (): void => void socket.destroy()
    socket.on('close', () => {
      if (this.#waiting.get(client)?.socket === socket) this.#waiting.delete(client)
    })
    socket.on('error', broken)
    socket.on('end', broken)
    let first = Buffer.alloc(0)
    const look = (piece: Buffer): void => {
      first = Buffer.concat([first, piece])
      const verdict = verdictOf(first)
      if (verdict === 'more') return
      socket.off('data', look)
      socket.off('end', broken)
      if (verdict !== 'tls') {
        socket.end(verdict === 'plain' ? plainOnTls : decodeError)
        return
      }
      socket.pause()
      socket.off('error', broken)
      socket.unshift(first)
      this.#renewTickets()
      this.#server?.emit('connection', socket)
    }
    socket.on('data', look)
  }

  /** Closes connections that are not up in time, and those that do not leave after their answer. */
  sweep(now: number): void {
    this.#now = now
    for (const { socket, since } of this.#waiting.values()) if (now - since > handshakeMs) socket.destroy()
  }

  destroy(): void {
    for (const { socket } of this.#waiting.values()) socket.destroy()
  }
}

/**
 * What the first bytes of a connection are. OpenSSL makes room for the length that the first message states, up to 128 KiB, so no
 * more than `helloMaxBytes` is let through (`stated-hello.h`). Later messages are not looked at here.
 */
function verdictOf(first: Buffer): 'more' | 'plain' | 'tls' | 'large' {
  const type = first[0] ?? 0
  if (type >= 65 && type <= 90) return 'plain'
  if (type !== handshakeRecord) return 'tls'
  if (first.length < headBytes) return 'more'
  // Behind the type, version and length of the record stand the type and the length of the message; no client parts these.
  return first.readUInt16BE(3) < 4 || first.readUIntBE(6, 3) > helloMaxBytes ? 'large' : 'tls'
}

/** Address and port of the other end: no two connections of one listener have the same. */
function clientOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
