/** Memory of bodies that handlers want as a whole: by their bytes, not by their pieces, and bounded for all together. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { HeldMemory } from '../../src/actor/held-memory.js'
import { collector } from '../../src/actor/idle-memory.js'
import { isRefusal } from '../../src/format/refusal.js'
import { serve } from '../../src/http/listen.js'
import { statusOf } from '../../src/http/status.js'
import { eventually } from '../eventually.js'

const collect = collector()

async function listening(t: Test, bodyMemory: HeldMemory) {
  const server = serve(
    (request, reply) => {
      void request.body(1_000_000).then((body) => {
        const status = isRefusal(body) ? statusOf[body.refused] : 200
        reply.end({ status, block: '' }, isRefusal(body) ? body.message : body)
      })
    },
    {
      host: '127.0.0.1',
      port: 0,
      stallMs: 30_000,
      requestsMax: 100,
      bodyMemory,
      clientOf: (request) => request.header('from') ?? '',
      onThrow: (error) => t.fail(String(error)),
    },
  )
  t.teardown(() => server.close(0))
  await server.listening
  return server.port
}

/** A request that has sent its head; `lines`: of the head. */
async function begun(t: Test, port: number, from: string, line: string): Promise<Socket & { text: string }> {
  const socket = Object.assign(connect({ port, host: '127.0.0.1', noDelay: true }), { text: '' })
  t.teardown(() => socket.destroy())
  socket.on('data', (piece) => {
    socket.text += piece.toString('latin1')
  })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nFrom: ${from}\r\n${line}\r\n\r\n`)
  return socket
}

const heldBytes = (): number => {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

t.test('a body that comes byte by byte takes some bytes a byte', async (t) => {
  const memory = new HeldMemory(64 * 1024 * 1024)
  const port = await listening(t, memory)
  const [connections, bytes] = [40, 2000]
  const sockets = await Promise.all(
    Array.from({ length: connections }, () => begun(t, port, '10.0.0.1', `Content-Length: ${bytes + 1}`)),
  )
  await turn()
  const before = heldBytes()
  for (let at = 0; at < bytes; at += 1) {
    for (const socket of sockets) socket.write('x')
    await turn()
  }
  await turn()
  const each = (heldBytes() - before) / (connections * bytes)
  t.ok(each < 40, `${each.toFixed(1)} bytes of memory for each byte`)
  for (const socket of sockets) socket.write('y')
  for (const socket of sockets)
    await eventually('each is answered with its body', () => socket.text.endsWith(`${'x'.repeat(bytes)}y`))
  t.equal(memory.bytes, 0)
})

t.test('a network that fills the memory makes room for others', async (t) => {
  const memory = new HeldMemory(1_000_000)
  const port = await listening(t, memory)
  const greedy = await Promise.all(
    Array.from({ length: 10 }, (_, at) => begun(t, port, `10.0.0.${at}`, 'Content-Length: 100000')),
  )
  for (const socket of greedy) socket.write(Buffer.alloc(99_999))
  // A body that comes at once has no room beyond its bytes.
  await eventually('all of it is taken', () => memory.bytes >= greedy.length * 99_999)
  const own = await begun(t, port, '10.0.0.3', 'Content-Length: 50000')
  own.write(Buffer.alloc(50_000))
  await eventually('one more of a client that has its share is answered', () => own.text !== '')
  t.match(own.text, /^HTTP\/1.1 503 /)
  const other = await begun(t, port, '20.0.0.1', 'Content-Length: 50000')
  other.write(Buffer.alloc(50_000, 'z'))
  await eventually('another network gets its answer', () => other.text.endsWith('z'.repeat(50_000)))
  const ended = greedy.filter(({ text }) => text.startsWith('HTTP/1.1 503 '))
  t.equal(ended.length, 1, 'one made room')
  for (const socket of greedy) socket.write('.')
  await eventually('the others go on', () => greedy.filter(({ text }) => text.includes(' 200 ')).length === 9)
  t.equal(memory.bytes, 0)
})

t.test(
  'a body in chunks that is too long, and one whose client leaves, give their memory back',
  async (t) => {
    const memory = new HeldMemory(5_000_000)
    const port = await listening(t, memory)
    const long = await begun(t, port, '10.0.0.1', 'Transfer-Encoding: chunked')
    for (let at = 0; at < 11; at += 1)
      long.write(Buffer.concat([Buffer.from('186A0\r\n'), Buffer.alloc(100_000), Buffer.from('\r\n')]))
    await eventually('it is refused', () => long.text.startsWith('HTTP/1.1 413 '))
    t.equal(memory.bytes, 0)
    const leaving = await begun(t, port, '10.0.0.1', 'Content-Length: 500000')
    leaving.write(Buffer.alloc(400_000))
    await eventually('it is counted', () => memory.bytes >= 400_000)
    leaving.destroy()
    await eventually('it is not counted any more', () => memory.bytes === 0)
  },
)
