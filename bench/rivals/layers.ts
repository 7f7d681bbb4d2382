import uWebSockets from 'uWebSockets.js'
import { createServer } from 'node:http'
import { serve } from '../../src/http/listen.js'
import type { Content } from '../../src/store/content.js'
import type { Handler } from './handler.js'

/** Starts a server over a handler; resolves with its port. */
type Open = (handler: Pick<Handler, 'answer'>) => Promise<number>

/** Bytes that are in memory, as content. */
function contentOf(body: Uint8Array): Content {
  return {
    sizeBytes: body.length,
    read: (start, end) => body.subarray(start, end),
    ready: () => Promise.resolve(true),
    close: () => undefined,
  }
}

/** The server of this program, without the program. */
const own: Open = async (handler) => {
  const onThrow = (error: unknown): void => void process.stderr.write(`${String(error)}\n`)
  const options = { host: '127.0.0.1', port: 0, stallMs: 30_000, requestsMax: 4096, onThrow }
  const server = serve((request, reply) => {
    const { path } = request
    const host = request.header('host') ?? ''
    const answer = handler.answer(path, host, request.header('range'), request.header('if-none-match'))
    const { status, block, body } = answer
    const head = { status, block }
    if (request.method === 'HEAD') reply.endEmpty(head, body.length)
    else if (status === 304 || body.length === 0) reply.end(head)
    else void reply.stream(head, [{ start: 0, end: body.length }], contentOf(body))
  }, options)
  await server.listening
  return server.port
}

const statusWords: Readonly<Record<number, string>> = {
  200: '200 OK',
  206: '206 Partial Content',
  304: '304 Not Modified',
  404: '404 Not Found',
}

/** The whole block goes out as one header: a call for each of its lines costs about 4 us an answer more. */
const uws: Open = (handler) => {
  const app = uWebSockets.App({}).any('/*', (response, request) => {
    const isHead = request.getCaseSensitiveMethod() === 'HEAD'
    const range = request.getHeader('range') || undefined
    const tag = request.getHeader('if-none-match') || undefined
    const { status, block, body } = handler.answer(request.getUrl(), request.getHeader('host'), range, tag)
    const cut = block.indexOf(': ')
    response.cork(() => {
      response.writeStatus(statusWords[status] ?? '500')
      response.writeHeader(block.slice(0, cut), block.slice(cut + 2))
      // Given the length, endWithoutBody of this version does not end the answer.
      if (isHead) response.writeHeader('Content-Length', String(body.length))
      if (isHead || status === 304) response.endWithoutBody()
      else if (body.length <= 16_384) response.end(body)
      else {
        const [, isDone] = response.tryEnd(body, body.length)
        if (isDone) return
        response.onAborted(() => undefined)
        response.onWritable((offset) => response.tryEnd(body.subarray(offset), body.length)[0])
      }
    })
  })
  return new Promise((resolve, reject) => {
    app.listen('127.0.0.1', 0, (socket) => {
      if (socket === false) reject(new Error('uWebSockets cannot listen'))
      else resolve(uWebSockets.us_socket_local_port(socket))
    })
  })
}

const node: Open = (handler) => {
  const server = createServer((request, response) => {
    const { headers, method, url = '/' } = request
    const { host = '', range, 'if-none-match': tag } = headers
    const { status, block, body } = handler.answer(url, host, range, tag)
    const lines = block.split('\r\n').flatMap((line) => {
      const cut = line.indexOf(': ')
      return [line.slice(0, cut), line.slice(cut + 2)]
    })
    if (status !== 304) lines.push('Content-Length', String(body.length))
    response.writeHead(status, lines)
    if (method === 'HEAD' || status === 304) response.end()
    else response.end(body)
  })
  server.keepAliveTimeout = 300_000
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}

/** Server layers by name: all answer by the same handler. */
export const layers: Readonly<Record<string, Open>> = { own, uws, node }
