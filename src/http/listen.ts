import server, { type HttpRequest, type HttpResponse, type us_listen_socket } from 'uWebSockets.js'
import { type Clock, systemClock } from '../actor/clock.js'
import { Inflow } from './body.js'
import type { Reply, Request } from './exchange.js'
import { type Desk, SocketReply } from './reply.js'
import { SocketRequest } from './request.js'
import { Stalls } from './stalls.js'

export interface ServeOptions {
  /** Numeric address to listen on. */
  readonly host: string
  /** 0: any free port. Threads that give the same number share it; the kernel spreads connections over them. */
  readonly port: number
  /** A client that takes no byte of a body, or sends none of its own, for so long is dropped. */
  readonly stallMs: number
  /** Requests being answered at once on this thread; one more is answered 503 with Retry-After. */
  readonly flowsMax: number
  /** Hears of a handler that threw; its socket is closed. */
  readonly onThrow: (error: unknown) => void
  readonly clock?: Clock
}

export interface Server {
  readonly port: number
  /** Requests being answered. */
  readonly flows: number
  /** Takes no new connection, lets running answers end for up to `graceMs`, then closes what is left. */
  close(graceMs: number): Promise<void>
}

/** What answers requests. It must end each reply exactly once, now or later; a throw closes that socket. */
export type Handler = (request: Request, reply: Reply) => void

/** The server's signature would be one line more in each answer. */
function hideSignature(): void {
  ;(server as unknown as { _cfg(key: string): void })._cfg('silent')
}

class Edge implements Desk, Server {
  readonly port: number
  readonly stalls: Stalls
  readonly #handler: Handler
  readonly #options: ServeOptions
  readonly #clock: Clock
  readonly #app = server.App()
  readonly #flows = new Set<SocketReply>()
  #listening: us_listen_socket | undefined
  #drained: (() => void) | undefined
  closing = false

  constructor(handler: Handler, options: ServeOptions) {
    this.#handler = handler
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.stalls = new Stalls(options.stallMs, this.#clock)
    this.#app.any('/*', (res, req) => this.#take(res, req))
    this.#app.listen(options.host, options.port, (socket) => {
      if (socket !== false) this.#listening = socket
    })
    if (this.#listening === undefined) {
      this.stalls.close()
      throw new Error(`cannot listen on ${options.host}:${options.port}`)
    }
    this.port = server.us_socket_local_port(this.#listening as never)
  }

  get flows(): number {
    return this.#flows.size
  }

  #take(res: HttpResponse, req: HttpRequest): void {
    const request = new SocketRequest(res, req)
    const reply = new SocketReply(res, request, this)
    if (request.fault !== undefined) reply.turnAway(400, request.fault, '')
    else if (this.#flows.size >= this.#options.flowsMax) reply.turnAway(503, 'busy', 'Retry-After: 1')
    else this.#handle(request, reply, res)
    request.detach(!reply.over)
    reply.handlerReturned()
  }

  #handle(request: SocketRequest, reply: SocketReply, res: HttpResponse): void {
    if (request.framing.body) request.expect(new Inflow(res, this.stalls))
    try {
      this.#handler(request, reply)
    } catch (error) {
      reply.destroy()
      this.#options.onThrow(error)
    }
  }

  opened(reply: SocketReply): void {
    this.#flows.add(reply)
  }

  closed(reply: SocketReply): void {
    this.#flows.delete(reply)
    if (this.#flows.size === 0) this.#drained?.()
  }

  async close(graceMs: number): Promise<void> {
    if (this.closing) return
    this.closing = true
    if (this.#listening !== undefined) server.us_listen_socket_close(this.#listening)
    if (this.#flows.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = this.#clock.after(graceMs, resolve)
        this.#drained = () => {
          timer.cancel()
          resolve()
        }
      })
    }
    // Idle connections end here too, and answers that took too long.
    this.#app.close()
    this.stalls.close()
  }
}

/** Listens. Throws where the address cannot be had. */
export function serve(handler: Handler, options: ServeOptions): Server {
  hideSignature()
  return new Edge(handler, options)
}
