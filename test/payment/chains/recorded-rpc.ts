import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Test } from 'tap'

/** A server of JSON whose answer to each request comes from `say`. Undefined: 404. A number: that status. */
export async function answeringServer(
  t: Test,
  say: (call: { readonly path: string; readonly body: unknown }) => unknown,
): Promise<string> {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const text = Buffer.concat(pieces).toString()
      const answer = say({ path: request.url ?? '', body: /^[[{]/.test(text) ? JSON.parse(text) : text })
      response.statusCode = typeof answer === 'number' ? answer : answer === undefined ? 404 : 200
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(typeof answer === 'number' ? {} : (answer ?? {})))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const place = server.address()
  return `http://127.0.0.1:${typeof place === 'object' ? place?.port : 0}`
}
