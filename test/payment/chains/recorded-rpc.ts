import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Test } from 'tap'

/** A server of JSON that answers as it is told, by what was asked. Undefined: 404. A number: that status. */
export async function answeringServer(
  t: Test,
  say: (asked: { readonly path: string; readonly body: unknown }) => unknown,
): Promise<string> {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const text = Buffer.concat(pieces).toString()
      const said = say({ path: request.url ?? '', body: /^[[{]/.test(text) ? JSON.parse(text) : text })
      response.statusCode = typeof said === 'number' ? said : said === undefined ? 404 : 200
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(typeof said === 'number' ? {} : (said ?? {})))
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
