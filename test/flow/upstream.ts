import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Test } from 'tap'

/** A gateway to fetch from, on this machine: it counts, and does what it is told. */
export interface Upstream {
  readonly url: string
  /** Ids asked for, in order. */
  readonly requested: readonly string[]
  /** Nobody listens there any more. A second call does nothing. */
  close(): Promise<void>
}

/** Starts an upstream that answers `GET /raw/{id}` by `answer`, until the test's end. */
export async function upstream(
  t: Test,
  answer: (id: string, request: IncomingMessage, response: ServerResponse) => void,
): Promise<Upstream> {
  const requested: string[] = []
  const server = createServer((request, response) => {
    const id = /^\/raw\/([\w-]{43})$/.exec(request.url ?? '')?.[1]
    if (id === undefined) {
      response.writeHead(404).end()
      return
    }
    requested.push(id)
    answer(id, request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const close = async (): Promise<void> => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  t.teardown(close)
  return { url: `http://127.0.0.1:${port}`, requested, close }
}

/** Sends `body` in pieces with pauses between; `until` cuts it off. The last piece waits for `last`. */
export function drip(
  response: ServerResponse,
  body: Buffer,
  pieceBytes: number,
  pauseMs: number,
  until = body.length,
  last = Promise.resolve(),
): void {
  let at = 0
  const next = (): void => {
    if (response.destroyed) return
    if (at >= until) {
      if (until === body.length) response.end()
      else response.destroy()
      return
    }
    const piece = body.subarray(at, Math.min(until, at + pieceBytes))
    at += pieceBytes
    const send = (): void => void response.write(piece, () => setTimeout(next, pauseMs))
    if (at >= until) void last.then(send)
    else send()
  }
  next()
}
