import t from 'tap'
import { converse } from './raw.js'
import { listening, ways } from './ways.js'

for (const by of ways) {
  t.test(`${by}: interim answers come before the last one, and not over HTTP/1.0`, async (t) => {
    const server = await listening(by, (request, reply) => {
      reply.inform({ status: 104, block: 'Location: /a' })
      void request.body(100).then(() => {
        reply.inform({ status: 104, block: 'Upload-Offset: 3' })
        reply.end({ status: 200, block: 'X: y' }, 'done')
        reply.inform({ status: 104, block: 'Too: late' })
      })
    })
    const lines = 'Host: x\r\nContent-Length: 3\r\n'
    const { text: received } = await converse(
      server.port,
      `POST / HTTP/1.1\r\n${lines}Connection: close\r\n\r\nabc`,
    )
    const heads = received.split('\r\n\r\n')
    t.equal(heads[0], 'HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /a')
    t.equal(heads[1], 'HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Offset: 3')
    t.match(heads[2], /^HTTP\/1\.1 200 OK\r\nX: y/)
    t.equal(heads[3], 'done')
    const { text: both } = await converse(
      server.port,
      `POST / HTTP/1.1\r\n${lines}\r\nabcPOST / HTTP/1.1\r\n${lines}Connection: close\r\n\r\nabc`,
    )
    t.equal(both.split('HTTP/1.1 104').length, 5, 'two for each of two requests of a connection')
    const { text: old } = await converse(server.port, `POST / HTTP/1.0\r\n${lines}\r\nabc`)
    t.match(old, /^HTTP\/1\.1 200 OK/)
    t.notMatch(old, '104')
  })
}
