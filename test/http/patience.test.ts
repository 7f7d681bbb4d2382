import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { isRefusal } from '../../src/format/refusal.js'
import type { Reply, Request } from '../../src/http/exchange.js'
import type { Server } from '../../src/http/listen.js'
import { eventually } from '../eventually.js'
import { HandClock } from './hand-clock.js'
import { listening, ways } from './ways.js'

/** A connection, with all that came back on it. */
async function open(
  server: Server,
  sent: string,
): Promise<{ socket: Socket; heard(): string; over: Promise<unknown> }> {
  const socket = connect(server.port, '127.0.0.1')
  let text = ''
  socket.on('data', (piece: Buffer) => {
    text += piece.toString('latin1')
  })
  socket.on('error', () => socket.destroy())
  const over = new Promise((resolve) => socket.once('close', resolve))
  await once(socket, 'connect')
  socket.write(sent)
  await pause(30)
  return { socket, heard: () => text, over }
}

/** Turns time again and again: the server may see late what a client sent, and counts from then. */
async function turned(clock: HandClock, ms: number, over: Promise<unknown>): Promise<void> {
  let isOver = false
  void over.then(() => {
    isOver = true
  })
  while (!isOver) {
    clock.turn(ms)
    await pause(20)
  }
}

for (const by of ways) {
  t.test(`time limits of the ${by}`, async (t) => {
    const clock = new HandClock()
    let refusedMs = 0
    const server = await listening(
      by,
      (request, reply) => {
        void request.body(1000).then((body) => {
          if (isRefusal(body)) refusedMs = clock.monotonic()
          reply.end({ status: 200, block: '' }, isRefusal(body) ? body.refused : body)
        })
      },
      { clock, requestsMax: 9 },
    )

    await t.test('a head that does not end is answered 408', async (t) => {
      const { heard, over } = await open(server, 'GET / HTTP/1.1\r\nHost: x\r\n')
      clock.turn(9000)
      await pause(10)
      t.equal(heard(), '')
      await turned(clock, 2000, over)
      t.match(heard(), /^HTTP\/1\.1 408 /)
    })
    await t.test('a silent connection is closed', async (t) => {
      const { heard, over } = await open(server, '')
      await turned(clock, 11_000, over)
      t.equal(heard(), '')
    })
    await t.test('a connection is kept between requests for longer than proxies keep it', async (t) => {
      const { socket, heard, over } = await open(server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      await eventually('the answer has begun', () => heard().includes('200 OK'))
      clock.turn(61_000)
      await pause(10)
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      await eventually('the second answer has begun', () => heard().match(/200 OK/g)?.length === 2)
      await turned(clock, 76_000, over)
      t.equal(heard().match(/200 OK/g)?.length, 2)
    })
    await t.test('a client that expects 100 Continue gets it', async (t) => {
      const head =
        'POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n'
      const { socket, heard, over } = await open(server, head)
      await eventually('the interim answer', () => heard() === 'HTTP/1.1 100 Continue\r\n\r\n')
      socket.write('abc')
      await over
      t.match(heard(), /HTTP\/1\.1 200 OK\r\n[\s\S]*\r\nabc$/)
    })
    await t.test('thousands of requests at once are answered in their order', async (t) => {
      const one = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n'
      const count = 6000
      const bodies = Array.from({ length: count }, (_, n) => String(n).padStart(4, '0'))
      const last = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
      const { heard, over } = await open(server, `${bodies.map((body) => one + body).join('')}${last}`)
      await over
      const answers = heard().split('HTTP/1.1 200 OK').slice(1)
      t.equal(answers.length, count + 1)
      t.strictSame(
        answers.slice(0, count).map((text) => text.slice(-4)),
        bodies,
      )
    })
    await t.test('a body that arrives too slowly is refused', async (t) => {
      const { socket, heard, over } = await open(
        server,
        'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n',
      )
      while (!/late$/.test(heard())) {
        socket.write('a')
        await pause(10)
        clock.turn(1500)
      }
      await turned(clock, 4000, over)
      t.match(heard(), /late$/)
    })
    await t.test('what came fast at first gives no right to be slow for hours', async (t) => {
      const { socket, heard } = await open(
        server,
        'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 990\r\n\r\n',
      )
      socket.write('a'.repeat(900))
      const begunMs = clock.monotonic()
      while (!/late$/.test(heard())) {
        socket.write('a')
        await pause(10)
        clock.turn(1000)
      }
      t.ok(refusedMs - begunMs < 9000, `${refusedMs - begunMs} ms`)
      socket.destroy()
    })
  })

  t.test(`places of the ${by} that slow clients hold`, async (t) => {
    const clock = new HandClock()
    const requestsMax = 16
    const clientOf = (request: Request): string => request.header('x-client') ?? ''
    const answer = (request: Request, reply: Reply): void => {
      void request
        .body(1e6)
        .then((body) => reply.end({ status: 200, block: '' }, isRefusal(body) ? body.refused : 'all'))
    }
    const server = await listening(by, answer, { clock, requestsMax, clientOf })
    const head = (client: string, bytes: number): string =>
      `POST / HTTP/1.1\r\nHost: x\r\nX-Client: ${client}\r\nContent-Length: ${bytes}\r\n\r\n`
    const slow = await Promise.all(
      Array.from({ length: requestsMax }, (_, at) =>
        open(server, head(`range ${at >> 1}`, 900) + 'a'.repeat(at + 10)),
      ),
    )
    await eventually('every place is taken', () => server.openRequests === requestsMax)
    clock.turn(1000)
    const other = await open(server, `${head('another', 3)}abc`)
    await eventually('the other answer is whole', () => /all$/.test(other.heard()))
    await eventually('the late answer is there', () => /late$/.test(slow[0]?.heard() ?? ''))
    t.equal(slow.filter(({ heard }) => heard() !== '').length, 1, 'the slowest made room')
    clock.turn(1000)
    const more = await open(server, head('range 9', 900))
    const third = await open(server, head('range 7', 3))
    await eventually('the third one is refused', () => / 503 /.test(third.heard()))
    t.equal(more.heard(), '', 'who has as many as the others gets no place of theirs')
    for (const { socket } of [...slow, other, more, third]) socket.destroy()
  })
}

t.test('a thread that ends with its server open does not end the process', async (t) => {
  const listen = new URL('../../src/http/listen.js', import.meta.url).href
  const script = `
    const { parentPort } = require('node:worker_threads')
    void import('${listen}').then(async ({ serve }) => {
      const server = serve((request, reply) => reply.onAbort(() => undefined), {
        host: '127.0.0.1', port: 0, stallMs: 5000, requestsMax: 9, onThrow: () => undefined })
      await server.listening
      parentPort.postMessage(server.port)
    })`
  for (let round = 0; round < 3; round += 1) {
    const worker = new Worker(script, { eval: true })
    const [port] = (await once(worker, 'message')) as [number]
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    // Whether it is reset or not: its thread is gone in the middle of a request.
    const over = new Promise((resolve) => socket.once('close', resolve))
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /')
    await pause(20)
    await worker.terminate()
    await over
  }
  t.pass('and this process goes on')
})
