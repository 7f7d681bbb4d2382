import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import t from 'tap'
import { isRefusal, type Refusal } from '../../src/format/refusal.js'
import type { BodyControl, Request } from '../../src/http/exchange.js'
import { eventually } from '../eventually.js'
import { converse } from './raw.js'
import { connect } from './transport.js'
import { listening, ways } from './ways.js'

const total = 24 * 2 ** 20
const body = Buffer.alloc(total, 'streamed ')
const digest = createHash('sha256').update(body).digest('hex')

/** A client that sends as much as it is allowed to, until it is told to stop. */
async function sender(port: number, head: string): Promise<Socket> {
  const socket = connect(port)
  socket.on('error', () => 'the server may close first')
  await once(socket, 'connect')
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\n${head}\r\n\r\n`)
  return socket
}

function inChunks(bytes: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; at += 100_000) {
    const part = bytes.subarray(at, at + 100_000)
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'))
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

for (const by of ways) {
  t.test(`${by}: bodies that come at the same time keep their order`, async (t) => {
    const server = await listening(by, (request, reply) => {
      const hash = createHash('sha256')
      request.stream({
        piece: (bytes) => hash.update(bytes),
        over: () => reply.end({ status: 200, block: '' }, hash.digest('hex')),
      })
    })
    const upload = async (): Promise<string> => {
      const socket = await sender(server.port, `Content-Length: ${total}\r\nConnection: close`)
      const answer: Buffer[] = []
      socket.on('data', (piece: Buffer) => answer.push(piece))
      socket.write(body)
      await once(socket, 'close')
      return Buffer.concat(answer).toString()
    }
    for (const text of await Promise.all(Array.from({ length: 8 }, upload)))
      t.ok(text.endsWith(digest), text.slice(-100))
  })

  for (const chunked of [false, true]) {
    t.test(
      `${by}: a body ${chunked ? 'in chunks' : 'of known length'} waits while it is paused`,
      async (t) => {
        let got = 0
        let flow: BodyControl | undefined
        const server = await listening(by, (request, reply) => {
          const hash = createHash('sha256')
          flow = request.stream({
            piece(bytes) {
              got += bytes.length
              hash.update(bytes)
            },
            over: (refusal) =>
              reply.end({ status: refusal === undefined ? 200 : 400, block: '' }, hash.digest('hex')),
          })
          flow.pause()
        })
        const sent = chunked ? inChunks(body) : body
        const head = chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${total}`
        const socket = await sender(server.port, `${head}\r\nConnection: close`)
        socket.write(sent)
        const answer: Buffer[] = []
        socket.on('data', (piece: Buffer) => answer.push(piece))
        const over = once(socket, 'close')
        await eventually('the exchange has begun', () => flow !== undefined)
        // What the kernels of both sides hold is the most that can have left the client.
        await eventually('the socket is full', () => socket.writableLength > 0 && got < total)
        const before = got
        await new Promise((resolve) => setImmediate(resolve))
        t.equal(got, before, 'nothing comes while it is paused')
        for (let turn = 0; got < total; turn += 1) {
          flow?.resume()
          const seen = got
          await eventually('more of the body has come', () => got > seen || got === total)
          if (turn < 5) flow?.pause()
        }
        await over
        t.match(Buffer.concat(answer).toString(), new RegExp(`200 OK[^]*${digest}$`))
      },
    )
  }

  t.test(`${by}: a client that leaves is reported once, paused or not`, async (t) => {
    for (const paused of [false, true]) {
      const outcomes: (Refusal | undefined)[] = []
      let seen: Request | undefined
      const server = await listening(by, (request) => {
        const flow = request.stream({ piece: () => undefined, over: (refusal) => outcomes.push(refusal) })
        if (paused) flow.pause()
        seen = request
      })
      const socket = await sender(server.port, 'Content-Length: 1000')
      socket.write('some')
      await eventually('the request was read', () => seen !== undefined)
      socket.resetAndDestroy()
      await eventually('the exchange is over', () => outcomes.length > 0)
      t.equal(outcomes.length, 1)
      t.ok(isRefusal(outcomes[0]))
    }
  })

  t.test(
    `${by}: a client that expects 100 Continue gets it once, and an absent body is complete`,
    async (t) => {
      const server = await listening(by, (request, reply) => {
        const flow = request.stream({
          piece() {
            flow.pause()
            flow.resume()
          },
          over: (refusal) => reply.end({ status: refusal === undefined ? 200 : 400, block: '' }),
        })
        flow.pause()
        flow.resume()
      })
      const socket = await sender(
        server.port,
        'Expect: 100-continue\r\nConnection: close\r\nContent-Length: 4',
      )
      const [first] = (await once(socket, 'data')) as [Buffer]
      t.match(first.toString(), /^HTTP\/1\.1 100 Continue\r\n\r\n$/)
      socket.write('four')
      const [second] = (await once(socket, 'data')) as [Buffer]
      t.match(second.toString(), /^HTTP\/1\.1 200 OK/)
      const { statuses } = await converse(
        server.port,
        'POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
      )
      t.strictSame(statuses, [200])
    },
  )
}
