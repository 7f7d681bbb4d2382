import type { Reply, Request } from './exchange.js'

export interface ServeOptions {
  /** Numeric address to listen on. */
  readonly host: string
  /** 0: any free port. Threads that give the same number share it; the kernel spreads connections over them. */
  readonly port: number
  /** A client that takes no byte of a body, or sends none of its own, for so long is dropped. */
  readonly stallMs: number
  /** Requests being answered at once on this thread; one more is answered 503 with Retry-After. */
  readonly flowsMax: number
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

/** Listens. Throws where the address cannot be had. */
export function serve(_handler: Handler, _options: ServeOptions): Server {
  throw new Error('not built yet')
}
