/** One party that opens what it can and sends nothing does not keep others out, nor itself. */
import { once } from 'node:events'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { pause } from '../../src/actor/clock.js'
import { isRefusal } from '../../src/format/refusal.js'
import { type Server, serve } from '../../src/http/listen.js'
import { eventually } from '../eventually.js'
import { ways } from './ways.js'

type Bounds = { readonly requestsMax: number; readonly connectionsMax: number }

async function started(t: Test, by: (typeof ways)[number], bounds: Bounds): Promise<Server> {
  const server = serve(
    (incoming, reply) => {
      if (incoming.method === 'GET') reply.end({ status: 200, block: '' }, 'fine')
      else {
        void incoming.body(1000).then((body) => {
          if (!reply.aborted) reply.end({ status: isRefusal(body) ? 408 : 200, block: '' }, 'done')
        })
      }
    },
    // Nothing ends here by itself while the test runs.
    { host: '0.0.0.0', port: 0, stallMs: 600_000, by, ...bounds, onThrow: (error) => t.fail(String(error)) },
  )
  t.teardown(() => server.close(0))
  await server.listening
  return server
}

/** Requests with a body of which one byte comes, and no more. */
async function unfinished(
  t: Test,
  port: number,
  count: number,
  from: (index: number) => string,
): Promise<Socket[]> {
  const head = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\nx'
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const socket = connect({ port, host: '127.0.0.1', localAddress: from(index) })
      t.teardown(() => socket.destroy())
      socket.on('error', () => undefined)
      socket.resume()
      await once(socket, 'connect')
      socket.write(head)
      return socket
    }),
  )
}

/** The status of a request from an address of this machine; 0 where the connection was closed. */
function incoming(port: number, from: string, method = 'GET'): Promise<number> {
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, localAddress: from, agent: false, method }, (answer) => {
      answer.resume()
      answer.once('end', () => resolve(answer.statusCode ?? 0))
    })
    sent.on('error', () => resolve(0))
    sent.end(method === 'GET' ? undefined : 'body')
  })
}

const fewSockets = { requestsMax: 1000, connectionsMax: 64 }
const alone = (): string => '127.0.0.1'
const inNetwork = (index: number): string => `127.3.0.${1 + (index % 250)}`
const inProvider = (index: number): string => `127.4.${index % 250}.1`

for (const by of ways) {
  for (const [what, bounds, attackers, from] of [
    ['sockets taken by one client', fewSockets, 64, alone],
    ['sockets, and more, taken by a network', fewSockets, 200, inNetwork],
    ['sockets, and more, taken by a provider', fewSockets, 200, inProvider],
    ['requests taken by one client', { requestsMax: 64, connectionsMax: 1000 }, 200, alone],
  ] as const) {
    t.test(`${by}: all ${what} with unfinished bodies`, async (t) => {
      const { port } = await started(t, by, bounds)
      await unfinished(t, port, attackers, from)
      for (let turn = 0; turn < 20; turn += 1) {
        t.equal(await incoming(port, '127.0.0.2'), 200, `another client, time ${turn}`)
        t.equal(await incoming(port, '127.0.0.2', 'POST'), 200, `its bodies, time ${turn}`)
      }
      t.ok(
        await eventually('the client is answered', async () => (await incoming(port, from(0))) === 200),
        'the same client',
      )
      t.ok(
        await eventually(
          'the client is answered with a body',
          async () => (await incoming(port, from(0), 'POST')) === 200,
        ),
        'with a body',
      )
    })
  }
}

/** A connection that is opened anew when it was closed, and sends a byte now and then. */
function lasting(t: Test, port: number, from: string, begin: string): void {
  let isOver = false
  let socket: Socket | undefined
  const open = (): void => {
    if (isOver) return
    const opened = connect({ port, host: '127.0.0.1', localAddress: from, allowHalfOpen: true })
    socket = opened
    opened.on('error', () => undefined)
    opened.resume()
    opened.write(begin)
    const dripping = setInterval(() => opened.write('x'), 100)
    opened.once('close', () => {
      clearInterval(dripping)
      setTimeout(open, 200)
    })
  }
  t.teardown(() => {
    isOver = true
    socket?.destroy()
  })
  open()
}

for (const by of ways) {
  for (const [what, begin] of [
    ['were refused', 'bad\r\n\r\n'],
    ['do not end their heads', 'GET / HTTP/1.1\r\nHost: x'],
    ['do not end their bodies', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n'],
  ] as const) {
    t.test(`${by}: connections of many providers that ${what} take no place of others`, async (t) => {
      const { port } = await started(t, by, fewSockets)
      for (let index = 0; index < 80; index += 1) lasting(t, port, `127.${10 + index}.0.1`, begin)
      await pause(500)
      let answered = 0
      for (let turn = 0; turn < 10; turn += 1) {
        if ((await incoming(port, `127.20${turn}.0.1`)) === 200) answered += 1
        if ((await incoming(port, `127.20${turn}.0.1`, 'POST')) === 200) answered += 1
      }
      t.equal(answered, 20, 'none had to wait for the end of another, which would be in ten minutes')
    })
  }
}

for (const by of ways) {
  t.test(`${by}: whose share a request uses is what clientOf says`, async (t) => {
    const waiting: (() => void)[] = []
    const server = serve(
      (incoming, reply) => {
        if (incoming.path === '/wait') waiting.push(() => reply.end({ status: 200, block: '' }))
        else reply.end({ status: 200, block: '' })
      },
      {
        host: '127.0.0.1',
        port: 0,
        stallMs: 600_000,
        requestsMax: 16,
        by,
        clientOf: (request) => request.header('x-client') ?? '',
        onThrow: (error) => t.fail(String(error)),
      },
    )
    t.teardown(() => server.close(0))
    await server.listening
    const url = `http://127.0.0.1:${server.port}`
    const one = { headers: { 'x-client': 'one' } }
    const held = Array.from({ length: 8 }, () => fetch(`${url}/wait`, one))
    t.ok(await eventually('eight requests wait', async () => waiting.length === 8))
    t.equal((await fetch(url, one)).status, 503, 'half of all is the most that one may have')
    t.equal((await fetch(url, { headers: { 'x-client': 'two' } })).status, 200)
    for (const end of waiting) end()
    for (const answer of await Promise.all(held)) t.equal(answer.status, 200)
    t.equal((await fetch(url, one)).status, 200)
  })
}
