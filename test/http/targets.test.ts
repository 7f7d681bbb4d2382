import t from 'tap'
import { converse } from './raw.js'
import { serve } from './transport.js'
import { ways } from './ways.js'

/** Targets in absolute form (RFC 9112 section 3.2.2), and what a handler sees of them: path, query, host. */
const rows: readonly [target: string, path: string, query: string, host: string][] = [
  ['http://y/a', '/a', '', 'y'],
  ['https://y/a', '/a', '', 'y'],
  ['HTTP://y/a', '/a', '', 'y'],
  ['hTTpS://Y.z:8080/a/b?c=d?e', '/a/b', 'c=d?e', 'Y.z:8080'],
  ['http://y', '/', '', 'y'],
  ['http://y/', '/', '', 'y'],
  ['http://y?c', '/', 'c', 'y'],
  ['http://y/?', '/', '', 'y'],
  ['http://[::1]:80/a', '/a', '', '[::1]:80'],
  ['http://y/http://z/?http://z', '/http://z/', 'http://z', 'y'],
  ['/http://z/', '/http://z/', '', 'x'],
]

for (const by of ways) {
  t.test(`targets at the listener of the ${by}`, async (t) => {
    const server = serve(
      (request, reply) => {
        const answer = (): void => {
          const { method, path, query } = request
          const parts = [method, path, query, request.header('host'), request.header('accept')]
          reply.end({ status: 200, block: 'Connection: close' }, parts.join(' '))
        }
        // At once, and from the copy of the head that a handler keeps which waits.
        if (request.method === 'GET') answer()
        else setImmediate(answer)
      },
      {
        host: '127.0.0.1',
        port: 0,
        stallMs: 5000,
        requestsMax: 9,
        onThrow: (error) => t.fail(String(error)),
        by,
      },
    )
    t.teardown(() => server.close(0))
    await server.listening
    for (const [target, path, query, host] of rows) {
      for (const method of ['GET', 'POST']) {
        for (const lines of ['Host: x\r\nAccept: a', 'Accept: a\r\nHost: x']) {
          const { text } = await converse(server.port, `${method} ${target} HTTP/1.1\r\n${lines}\r\n\r\n`)
          t.equal(text.split('\r\n\r\n')[1], `${method} ${path} ${query} ${host} a`, target)
        }
      }
    }
    const { text } = await converse(server.port, 'GET http://y/a HTTP/1.0\r\nHost: x\r\n\r\n')
    t.match(text, /GET {1}\/a {2}y /, 'of HTTP/1.0 too')
  })
}
