import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { serve } from '../../src/http/listen.js'
import { ways } from './ways.js'

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`

for (const by of ways) {
  t.test(`clients of the ${by} that send without waiting do not go before others`, async (t) => {
    let greedy = 0
    let heard: (() => void) | undefined
    const server = serve(
      (request, reply) => {
        if (request.path === '/greedy') greedy += 1
        else heard?.()
        reply.end({ status: 200, block: '' })
      },
      {
        host: '127.0.0.1',
        port: 0,
        stallMs: 5000,
        requestsMax: 9,
        by,
        onThrow: (error) => t.fail(String(error)),
      },
    )
    t.teardown(() => server.close(0))
    await server.listening
    const open = async (): Promise<Socket> => {
      const socket = connect(server.port, '127.0.0.1')
      t.teardown(() => socket.destroy())
      await once(socket, 'connect')
      socket.resume()
      return socket
    }
    const calm = await open()
    const clients = await Promise.all(Array.from({ length: 40 }, open))
    const many = get('/greedy').repeat(2000)
    const before: number[] = []
    /** Requests that were handled between two looks at all sockets. */
    let inTurn = 0
    let last = 0
    let isOver = false
    const look = (): void => {
      inTurn = Math.max(inTurn, greedy - last)
      last = greedy
      if (!isOver) setImmediate(look)
    }
    look()
    for (let turn = 0; turn < 20; turn += 1) {
      for (const client of clients) if (client.writableLength === 0) client.write(many)
      await pause(5)
      const from = greedy
      const reached = new Promise<void>((resolve) => (heard = resolve))
      calm.write(get('/calm'))
      await reached
      before.push(greedy - from)
    }
    isOver = true
    const most = Math.max(...before)
    t.ok(greedy > 500, `${greedy} of the others`)
    t.ok(most <= clients.length, `${most} requests of 40 clients before one of another`)
    t.ok(inTurn <= 2 * 64, `${inTurn} in one turn of the loop`)
  })
}
