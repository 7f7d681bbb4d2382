import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import type { Server } from '../../src/http/listen.js'
import { HandClock } from './hand-clock.js'
import { listening, ways } from './ways.js'

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`

interface Client {
  readonly socket: Socket
  /** Bodies that came so far. */
  bodies(): string[]
  /** Resolves when so many bodies came. */
  count(bodies: number): Promise<void>
  readonly over: Promise<unknown>
}

async function open(server: Server): Promise<Client> {
  const socket = connect(server.port, '127.0.0.1')
  let text = ''
  socket.on('data', (piece: Buffer) => {
    text += piece.toString('latin1')
  })
  socket.on('error', () => undefined)
  const over = once(socket, 'close')
  await once(socket, 'connect')
  const bodies = (): string[] =>
    [...text.matchAll(/\r\n\r\n(\/(?:1000|500|90000|00|0))/g)].map(([, body]) => body ?? '')
  const count = async (wanted: number): Promise<void> => {
    while (bodies().length < wanted) await pause(5)
  }
  return { socket, bodies, count, over }
}

for (const by of ways) {
  t.test(`connections that the ${by} holds`, async (t) => {
    const clock = new HandClock()
    let reached = 0
    const start = (): Promise<Server> =>
      listening(
        by,
        (request, reply) => {
          reached += 1
          // The path says for how many milliseconds.
          reply.delayNext(Number(request.path.slice(1)))
          reply.delayNext(0)
          reply.end({ status: 429, block: '' }, request.path)
        },
        { clock, requestsMax: 9 },
      )
    const server = await start()

    await t.test('are answered at once, and read again when the hold is over', async (t) => {
      const { socket, bodies, count } = await open(server)
      socket.write(get('/1000'))
      await count(1)
      socket.write(get('/0'))
      await pause(40)
      clock.turn(900)
      await pause(40)
      t.strictSame(bodies(), ['/1000'])
      clock.turn(100)
      await count(2)
      socket.write(get('/00'))
      await count(3)
      t.strictSame(bodies(), ['/1000', '/0', '/00'])
      socket.destroy()
    })
    await t.test('lose no request and keep the order of those sent together', async (t) => {
      const { socket, bodies, count } = await open(server)
      const paths = Array.from({ length: 300 }, (_, at) => (at % 100 === 0 ? '/500' : '/0'))
      socket.write(paths.map(get).join(''))
      for (const wanted of [1, 101, 201]) {
        await count(wanted)
        await pause(30)
        t.equal(bodies().length, wanted)
        clock.turn(500)
      }
      await count(300)
      t.strictSame(bodies(), paths)
      socket.destroy()
    })
    await t.test('take no memory for what their clients send meanwhile', async (t) => {
      const { socket, count } = await open(server)
      socket.write(get('/1000'))
      await count(1)
      const before = reached
      // More than the kernel's buffers of both sides take.
      socket.write(get('/0').repeat(400_000))
      await pause(100)
      t.ok(socket.writableLength > 0, 'the client cannot get rid of it')
      t.equal(reached, before)
      socket.destroy()
    })
    await t.test('do not delay other connections', async (t) => {
      const held = await open(server)
      held.socket.write(get('/1000') + get('/0').repeat(10))
      await held.count(1)
      const other = await open(server)
      other.socket.write(get('/0'))
      await other.count(1)
      t.equal(held.bodies().length, 1)
      held.socket.destroy()
      other.socket.destroy()
    })
    await t.test('answer what a client sent that then sends no more', async (t) => {
      const { socket, bodies, count, over } = await open(server)
      socket.write(get('/1000') + get('/0'))
      await count(1)
      socket.end(get('/00'))
      await pause(40)
      clock.turn(1000)
      await over
      t.strictSame(bodies(), ['/1000', '/0', '/00'])
    })
    await t.test('are closed when their clients leave', async (t) => {
      const { socket, over, count } = await open(server)
      socket.write(get('/1000'))
      await count(1)
      socket.end()
      await over
      t.pass('without a turn of the clock')
    })
    await t.test('are closed when they end with their answer', async (t) => {
      const { socket, bodies, over } = await open(server)
      socket.write('GET /1000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
      await over
      t.strictSame(bodies(), ['/1000'])
    })
    await t.test('are not closed by the time limit for a head, but by that for an idle client', async (t) => {
      const { socket, bodies, count, over } = await open(server)
      socket.write(get('/90000') + get('/0'))
      await count(1)
      clock.turn(20_000)
      await pause(30)
      t.equal(socket.closed, false)
      clock.turn(60_000)
      await over
      t.strictSame(bodies(), ['/90000'])
    })
    await t.test('do not delay closing the server', async () => {
      const ending = await start()
      const { socket, count, over } = await open(ending)
      socket.write(get('/1000') + get('/0'))
      await count(1)
      await ending.close(60_000)
      await over
    })
  })
}
