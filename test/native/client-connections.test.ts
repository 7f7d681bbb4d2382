/** Connections of the native client of other servers: addresses, late bytes, and what is not sent. Without TLS. */
import { connect } from 'node:net'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { HttpClient } from '../../native/client/client.js'
import { pause } from '../../src/actor/clock.js'
import { eventually } from '../eventually.js'
import { asking, Heard, raw } from './asking.js'

const skip = HttpClient.isThere ? false : 'the addon is not here'

t.test('who refuses connections, and who has no address', { skip }, async (t) => {
  const server = await raw(t, () => undefined)
  await server.close()
  const { client, ask, origin } = asking(t, server.port)
  t.match((await ask().heard.over).error, { code: 'ECONNREFUSED' })
  const other = await raw(t, (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na'))
  client.locate(origin, ['127.0.0.9', '127.0.0.1'], other.port)
  t.equal((await ask().heard.over).body.toString(), 'a', 'the next address is tried')
  const nowhere = new Heard()
  client.request(client.origin(), 'GET / HTTP/1.1\r\n\r\n', false, nowhere)
  t.match((await nowhere.over).error, { code: 'EHOSTUNREACH' })
  client.destroy()
})

/** On a thread of its own: answers, and sends more behind the answer some time later, whatever this thread does. */
const lateServer = `
const { createServer } = require('node:net')
const { parentPort } = require('node:worker_threads')
const server = createServer((socket) => {
  socket.on('error', () => undefined)
  socket.once('data', () => {
    socket.write('HTTP/1.1 200 OK\\r\\nContent-Length: 1\\r\\n\\r\\na')
    setTimeout(() => socket.write('HTTP/1.1 408 Late\\r\\nContent-Length: 1\\r\\n\\r\\nz'), 20)
  })
}).listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`

t.test(
  'bytes that came while this thread was busy are no answer to its next request',
  { skip },
  async (t) => {
    const worker = new Worker(lateServer, { eval: true })
    const port = await new Promise<number>((resolve) => worker.once('message', resolve))
    const { client, ask } = asking(t, port)
    t.match(await ask().heard.over, { status: 200 })
    for (const until = Date.now() + 100; Date.now() < until; );
    t.match(await ask().heard.over, { status: 200 })
    client.destroy()
    await worker.terminate()
  },
)

t.test('an address that does not answer gives way to the next one', { skip }, async (t) => {
  const server = await raw(t, (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na'))
  // Its queue is full, and nobody accepts: the kernel drops what else comes.
  const silent = new Worker(
    `const { createServer } = require('node:net')
    const { parentPort, workerData } = require('node:worker_threads')
    createServer().listen({ port: workerData, host: '127.0.0.2', backlog: 1 }, () => {
      parentPort.postMessage('')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    })`,
    { eval: true, workerData: server.port },
  )
  await new Promise((resolve) => silent.once('message', resolve))
  let isGivenUp = false
  const filling = Array.from({ length: 6 }, () =>
    connect(server.port, '127.0.0.2').on('error', () => {
      isGivenUp = true
    }),
  )
  await pause(50)
  const { client, ask, origin } = asking(t, server.port)
  client.locate(origin, ['127.0.0.2', '127.0.0.1'], server.port)
  const heard = await Promise.all([ask().heard.over, ask().heard.over])
  t.ok(heard.every(({ body }) => body.toString() === 'a'))
  t.notOk(isGivenUp, 'before the kernel gives up an address that does not answer')
  client.destroy()
  for (const socket of filling) socket.destroy()
  await silent.terminate()
  await server.close()
})

t.test('however many wait, a network that is gone breaks them all', { skip }, async (t) => {
  const server = await raw(t, () => undefined)
  const { client, ask, origin } = asking(t, server.port, { connectionsMax: 1 })
  const first = ask()
  const waiting = Array.from({ length: 100_000 }, () => ask().heard)
  // No connection over TCP leads there: each fails in its first call.
  client.locate(origin, ['255.255.255.255'], 80)
  first.request.drop()
  const all = await Promise.all(waiting.map(({ over }) => over))
  t.ok(all.every(({ error }) => error !== undefined))
})

t.test('what is no head is not sent', { skip }, (t) => {
  const { client, origin } = asking(t, 1)
  for (const head of [
    '',
    'GET / HTTP/1.1\r\n',
    'GET / HTTP/1.1\r\n\r\nX: y\r\n\r\n',
    'GET /\nX: y\r\n\r\n',
    'GET /\rX\r\n\r\n',
  ])
    t.throws(() => client.request(origin, head, false, new Heard()), RangeError)
  t.throws(() => client.request(origin + 1, 'GET / HTTP/1.1\r\n\r\n', false, new Heard()), RangeError)
  t.throws(() => client.locate(origin, ['there'], 80), RangeError)
  return Promise.resolve()
})

t.test(
  'an idle connection is closed when its time is over, though nobody asks again',
  { skip },
  async (t) => {
    const server = await raw(t, (socket) =>
      socket.write('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=2\r\nContent-Length: 1\r\n\r\na'),
    )
    const { ask } = asking(t, server.port)
    await Promise.all([ask().heard.over, ask().heard.over])
    t.equal(server.sockets.size, 2)
    await eventually('both are closed', () => server.sockets.size === 0)
  },
)
