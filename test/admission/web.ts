import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Test } from 'tap'

/** One request at a server that a test wrote. */
export interface Call {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly text: string
  readonly response: ServerResponse
  json(status: number, body: unknown): void
}

/** A small server on loopback, ended with the test. Resolves with its address. */
export async function serveWeb(
  t: Test,
  handle: (call: Call) => void | Promise<void>,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const json = (status: number, body: unknown): void => {
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(body, (_, value) => (typeof value === 'bigint' ? `${value}` : value)))
      }
      const text = Buffer.concat(pieces).toString()
      const call = { path: request.url ?? '', headers: request.headers, text, response, json }
      void Promise.resolve(handle(call)).catch((error: unknown) => {
        if (response.headersSent) response.destroy()
        else json(500, { error: String(error) })
      })
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const close = async (): Promise<void> => {
    if (!server.listening) return
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  t.teardown(close)
  return { url: `http://127.0.0.1:${address.port}`, close }
}
