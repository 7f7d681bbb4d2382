import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import type { Test } from 'tap'
import {
  type AnswerControl,
  type Answering,
  type AnswerLines,
  HttpClient,
} from '../../native/client/client.js'
import type { CertificatePair } from '../../src/certificates/pair.js'
import { selfSigned } from '../../src/certificates/self-signed.js'

/** What was heard of one request. */
export class Heard implements Answering {
  status = 0
  lines: AnswerLines = {}
  heads = 0
  came = 0
  body = Buffer.alloc(0)
  pieces = 0
  ends = 0
  error: Error | undefined
  readonly over: Promise<this>
  onFirst: (() => void) | undefined
  #tell: (over: this) => void = () => undefined

  constructor() {
    this.over = new Promise((resolve) => {
      this.#tell = resolve
    })
  }

  onHead(status: number, lines: AnswerLines): void {
    this.status = status
    this.lines = lines
    this.heads += 1
  }

  onCame(bytes: number): void {
    this.came += bytes
  }

  memoryFor(length: number): Uint8Array {
    return Buffer.allocUnsafe(length)
  }

  onPiece(piece: Uint8Array): void {
    this.body = Buffer.concat([this.body, piece])
    this.pieces += 1
    this.onFirst?.()
  }

  onEnd(): void {
    this.ends += 1
    this.#tell(this)
  }

  onError(error: Error): void {
    this.error = error
    this.#tell(this)
  }
}

let made: Promise<CertificatePair> | undefined

/** A certificate for `localhost`, made once. */
export function localPair(): Promise<CertificatePair> {
  made ??= selfSigned(['localhost'], Date.now(), 2)
  return made
}

export interface RawServer {
  readonly port: number
  readonly sockets: ReadonlySet<Socket>
  connections: number
  close(): Promise<void>
}

/** A server that hands each request's head, the socket, and the number of the connection to `act`. `tls`: over TLS. */
export async function raw(
  t: Test,
  act: (socket: Socket, head: string, connection: number) => void,
  tls?: TlsOptions,
): Promise<RawServer> {
  const sockets = new Set<Socket>()
  const hear = (socket: Socket): void => {
    state.connections += 1
    const own = state.connections
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        const head = text.slice(0, end)
        text = text.slice(end + 4)
        act(socket, head, own)
      }
    })
  }
  const server: Server = tls === undefined ? createServer(hear) : createTlsServer(tls, hear)
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const state = {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    sockets,
    connections: 0,
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy()
      if (server.listening) await new Promise((resolve) => server.close(resolve))
    },
  }
  t.teardown(() => state.close())
  return state
}

export interface AskingOptions {
  readonly connectionsMax?: number
  readonly wholeMaxBytes?: number
  /** Absent: without TLS. */
  readonly tls?: { readonly authorities: string; readonly host: string; readonly isAddress?: boolean }
}

export interface Asking {
  readonly client: HttpClient
  readonly origin: number
  ask(path?: string, method?: 'GET' | 'HEAD'): { heard: Heard; request: AnswerControl }
}

/** A client of one server. */
export function asking(t: Test, port: number, options: AskingOptions = {}): Asking {
  const { connectionsMax = 4, wholeMaxBytes = 65_536, tls } = options
  const client = new HttpClient({ names: ['content-type', 'x-word'], connectionsMax, wholeMaxBytes })
  t.teardown(() => client.destroy())
  const origin = client.origin()
  if (tls !== undefined) {
    const { authorities, host, isAddress = false } = tls
    if (!client.trust({ authorities, suites: '', ciphers: '' })) throw new Error('there is no OpenSSL')
    client.secure(origin, host, isAddress)
  }
  client.locate(origin, ['127.0.0.1'], port)
  return {
    client,
    origin,
    ask(path = '/', method = 'GET') {
      const heard = new Heard()
      const head = `${method} ${path} HTTP/1.1\r\nhost: there\r\n\r\n`
      return { heard, request: client.request(origin, head, method === 'HEAD', heard) }
    },
  }
}
