import { createReadStream, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'

/** The usual way in Node: node:http and file streams. Arguments: folder of the objects. Prints its port. */
const folder = process.argv[2] ?? '.'
const server = createServer((request, response) => {
  const path = join(folder, (request.url ?? '/').slice(1))
  const { size } = statSync(path)
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
  const [start, end] = range === null ? [0, size - 1] : [Number(range[1]), Number(range[2])]
  const head = {
    'Content-Type': 'application/octet-stream',
    'Content-Length': end - start + 1,
    ETag: '"bench"',
  }
  if (request.headers['if-none-match'] !== undefined) response.writeHead(304, { ETag: '"bench"' }).end()
  else if (request.method === 'HEAD') response.writeHead(200, head).end()
  else createReadStream(path, { start, end }).pipe(response.writeHead(range === null ? 200 : 206, head))
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object' && address !== null) process.stdout.write(`${address.port}\n`)
})
