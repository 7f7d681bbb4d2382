import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSocketServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import t, { type Test } from 'tap'
import { versionOf } from '../../bench/kit/child.js'
import {
  type Manner,
  makeLoad,
  type Outcome,
  type Plan,
  type Target,
  tryLoad,
  WrongAnswers,
} from '../../bench/load/load.js'
import { pause, systemClock } from '../../src/actor/clock.js'
import { selfSigned } from '../../src/certificates/self-signed.js'

if (versionOf('c++', '--version') === undefined) {
  t.comment('no C++ compiler: the load maker cannot be built')
  process.exit(0)
}

const truth = Buffer.from(Array.from({ length: 5000 }, (_, at) => (at * 7 + (at >> 8)) & 255))
const truthPath = join(t.testdir(), 'truth')
writeFileSync(truthPath, truth)

/** Windows of the truth: the last one goes on at its beginning. */
const windows = [
  { start: 0, size: 1000 },
  { start: 1234, size: 17 },
  { start: 4990, size: 700 },
]
const bodies = windows.map(({ start, size }) => Buffer.concat([truth, truth]).subarray(start, start + size))
const targets: Target[] = windows.map(({ start, size }, at) => ({
  path: `/${at}`,
  sizeBytes: size,
  truthStart: start,
}))

async function listen(t: Test, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** A server that answers rightly where `spoil` does not say otherwise (true: it has answered). */
function serving(
  t: Test,
  spoil: (request: IncomingMessage, response: ServerResponse, body: Buffer, at: number) => boolean = () =>
    false,
): Promise<number> {
  let requests = 0
  const server = createServer((request, response) => {
    const body = bodies[Number(request.url?.slice(1))]
    requests += 1
    if (body === undefined) response.writeHead(404, { 'content-length': 0 }).end()
    else if (spoil(request, response, body, requests)) return
    else {
      const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
      const [from, to] = range === null ? [0, body.length - 1] : [Number(range[1]), Number(range[2])]
      const head = {
        'content-length': to - from + 1,
        ...(range === null ? {} : { 'content-range': `bytes ${from}-${to}/${body.length}` }),
      }
      response.writeHead(range === null ? 200 : 206, head).end(body.subarray(from, to + 1))
    }
  })
  t.teardown(() => server.closeAllConnections())
  return listen(t, server)
}

const plan: Plan = { truthPath, targets }
const manner = { connections: 4, seconds: 0.3, compare: 1 } as const

/** What a load complains of. */
async function complaintOf(
  port: number,
  requested: Plan = plan,
  how: Partial<Manner> = {},
): Promise<WrongAnswers> {
  try {
    await makeLoad(requested, { ...manner, port, ...how })
  } catch (error) {
    if (error instanceof WrongAnswers) return error
    throw error
  }
  throw new Error('no complaint')
}

function isBalanced(t: Test, { sent, answered, wrong }: Outcome): void {
  t.equal(answered + wrong.closed + wrong.unanswered, sent, 'every request is accounted for')
}

t.test('right answers pass, each of them counted', async (t) => {
  const outcome = await makeLoad(plan, { ...manner, port: await serving(t) })
  t.ok(outcome.answered > 3)
  t.equal(outcome.checked, outcome.answered)
  t.strictSame(outcome.statuses, { 200: outcome.answered })
  t.ok(outcome.p50Us > 0 && outcome.p99Us >= outcome.p50Us && outcome.maxUs >= outcome.p999Us)
  isBalanced(t, outcome)
})

t.test(
  'over TLS, with connections of many requests and of one, whose sessions are resumed or not',
  async (t) => {
    const { cert, key } = await selfSigned(['localhost'], systemClock.now(), 1)
    const inner = createServer((request, response) => {
      const body = bodies[Number(request.url?.slice(1))] ?? Buffer.alloc(0)
      response.writeHead(200, { 'content-length': body.length }).end(body)
    })
    const seen = { handshakes: 0, resumed: 0, protocols: new Set<string | null>() }
    const served = createTlsServer({ cert, key }, (socket) => {
      seen.handshakes += 1
      if (socket.isSessionReused()) seen.resumed += 1
      seen.protocols.add(socket.getProtocol())
      inner.emit('connection', socket)
    })
    const port = await listen(t, served)
    t.teardown(() => inner.closeAllConnections())
    for (const [tls, protocol] of [
      ['1.2', 'TLSv1.2'],
      ['1.3', 'TLSv1.3'],
    ] as const) {
      seen.protocols.clear()
      seen.handshakes = 0
      const kept = await makeLoad(plan, { ...manner, port, tls })
      t.equal(kept.checked, kept.answered)
      t.equal(seen.handshakes, manner.connections)
      t.strictSame([...seen.protocols], [protocol])
      const fresh = await makeLoad(plan, { ...manner, port, tls, fresh: true, seconds: 0.1 })
      t.equal(fresh.connects, fresh.sent)
      t.equal(fresh.checked, fresh.answered)
      t.equal(seen.resumed, 0)
      const resumed = await makeLoad(plan, { ...manner, port, tls, fresh: true, resume: true, seconds: 0.1 })
      t.equal(seen.resumed, resumed.connects)
      seen.resumed = 0
      const shaken = await makeLoad(plan, { ...manner, port, tls, shake: true, seconds: 0.1 })
      t.ok(shaken.answered > 1)
      t.equal(shaken.bytes, 0)
    }
    const forgetful = createTlsServer({ cert, key, minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' }, (socket) =>
      inner.emit('connection', socket),
    )
    const first = await listen(t, forgetful)
    forgetful.on('secureConnection', () => forgetful.setTicketKeys(Buffer.alloc(48, seen.handshakes++)))
    const { outcome } = await complaintOf(first, plan, { tls: '1.2', fresh: true, resume: true })
    t.ok(outcome.wrong.handshake > 0, 'a ticket that is not taken is a complaint')
  },
)

t.test('heads of several kinds of clients reach the server, and nothing else changes', async (t) => {
  const agents = new Set<string>()
  const port = await serving(t, (request) => {
    agents.add(`${request.headers['user-agent']}, ${request.headers.accept}`)
    return false
  })
  const clients = ['a', 'b', 'c'].map((name) => [`User-Agent: ${name}`, `Accept: ${name}/*`])
  await makeLoad({ ...plan, clients }, { ...manner, port })
  t.strictSame([...agents].sort(), ['a, a/*', 'b, b/*', 'c, c/*'])
})

t.test('each target is asked for once where that is wanted', async (t) => {
  const requested: string[] = []
  const port = await serving(t, (request) => {
    requested.push(request.url ?? '')
    return false
  })
  const outcome = await makeLoad(plan, { ...manner, port, order: 'once', seconds: 10 })
  t.strictSame(requested.sort(), ['/0', '/1', '/2'])
  t.equal(outcome.answered, 3)
})

t.test('targets that are due faster than they are answered are each asked for once, too', async (t) => {
  const requested: string[] = []
  const port = await serving(t, (request) => {
    requested.push(request.url ?? '')
    return false
  })
  const outcome = await makeLoad(plan, {
    ...manner,
    port,
    connections: 1,
    order: 'once',
    rate: 1e6,
    seconds: 10,
  })
  t.strictSame(requested.sort(), ['/0', '/1', '/2'])
  t.equal(outcome.answered, 3)
})

t.test('by the law of Zipf the first target is asked for most often', async (t) => {
  const times = [0, 0, 0]
  const port = await serving(t, (request) => {
    const at = Number(request.url?.slice(1))
    times[at] = (times[at] ?? 0) + 1
    return false
  })
  await makeLoad(plan, { ...manner, port, order: 'zipf:2', seconds: 0.5 })
  const [first = 0, second = 0, third = 0] = times
  t.ok(first > 2 * second && second > third && third > 0, String(times))
})

t.test('ranges are asked for anywhere, and compared there', async (t) => {
  const starts = new Set<string>()
  const port = await serving(t, (request) => {
    starts.add(request.headers.range ?? '')
    return false
  })
  const ranged = { ...plan, targets: [{ path: '/2', sizeBytes: 700, truthStart: 4990, rangeBytes: 100 }] }
  const outcome = await makeLoad(ranged, { ...manner, port })
  t.strictSame(outcome.statuses, { 206: outcome.answered })
  t.ok(starts.size > 10)
})

t.test('unknown ids are asked for among the others and want 404', async (t) => {
  const outcome = await makeLoad(plan, { ...manner, port: await serving(t), unknown: 10 })
  t.equal(outcome.statuses[404], Math.floor(outcome.sent / 10))
})

t.test('one wrong status among many fails', async (t) => {
  const port = await serving(t, (_, response, __, at) => {
    if (at !== 7) return false
    response.writeHead(503, { 'content-length': 4 }).end('busy')
    return true
  })
  const { message, outcome } = await complaintOf(port)
  t.equal(outcome.wrong.status, 1)
  t.match(message, /1 x status \(GET \/\d: 503 instead of 200\)/)
  isBalanced(t, outcome)
})

t.test('a body that is shorter than its content fails', async (t) => {
  const port = await serving(t, (_, response, body) => {
    response.writeHead(200, { 'content-length': body.length - 1 }).end(body.subarray(1))
    return true
  })
  const { outcome } = await complaintOf(port)
  t.equal(outcome.wrong.length, outcome.answered)
})

t.test('a body that ends before its length fails', async (t) => {
  const port = await serving(t, (_, response, body, at) => {
    if (at % 5 !== 0) return false
    response.writeHead(200, { 'content-length': body.length })
    response.write(body.subarray(0, body.length - 1), () => response.destroy())
    return true
  })
  const { outcome } = await complaintOf(port)
  t.ok(outcome.wrong.closed > 0)
  isBalanced(t, outcome)
})

t.test('one wrong byte fails', async (t) => {
  const port = await serving(t, (_, response, body, at) => {
    if (at !== 5) return false
    const other = Buffer.from(body)
    other[other.length - 1] = (other.at(-1) ?? 0) ^ 1
    response.writeHead(200, { 'content-length': other.length }).end(other)
    return true
  })
  const { outcome } = await complaintOf(port)
  t.equal(outcome.wrong.body, 1)
})

t.test('the answer to another range fails', async (t) => {
  const port = await serving(t, (_, response, body) => {
    const head = { 'content-length': 10, 'content-range': `bytes 0-9/${body.length}` }
    response.writeHead(206, head).end(body.subarray(0, 10))
    return true
  })
  const ranged = { ...plan, targets: [{ path: '/0', sizeBytes: 1000, truthStart: 0, rangeBytes: 10 }] }
  const { outcome } = await complaintOf(port, ranged)
  t.ok(outcome.wrong.range > 0 && outcome.wrong.body > 0)
})

t.test('a whole body where a range was asked for fails', async (t) => {
  const port = await serving(t, (_, response, body) => {
    response.writeHead(200, { 'content-length': body.length }).end(body)
    return true
  })
  const ranged = { ...plan, targets: [{ path: '/0', sizeBytes: 1000, truthStart: 0, rangeBytes: 10 }] }
  const { outcome } = await complaintOf(port, ranged)
  t.equal(outcome.wrong.status, outcome.answered)
})

/** A server that hands each connection to `act`. */
function talking(t: Test, act: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createSocketServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    act(socket)
  })
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  return listen(t, server)
}

t.test('bytes behind an answer that nobody asked for fail', async (t) => {
  const port = await talking(t, (socket) => {
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc'))
  })
  const { outcome } = await complaintOf(port, { targets: [{ path: '/' }] })
  t.ok(outcome.wrong.framing > 0)
})

t.test('what is no HTTP/1.1 with a length fails', async (t) => {
  for (const answer of [
    'HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n',
    'HTTP/1.1 200 OK\r\n\r\n',
    '\r\n\r\n',
  ]) {
    const port = await talking(t, (socket) => socket.on('data', () => socket.write(answer)))
    const { outcome } = await complaintOf(port, { targets: [{ path: '/' }] })
    t.ok(outcome.wrong.framing > 0, JSON.stringify(answer))
  }
})

t.test('a server that takes requests and never answers fails: nothing was answered', async (t) => {
  const port = await talking(t, (socket) => socket.resume())
  const { message, outcome } = await complaintOf(port, plan, { drainMs: 100 })
  t.equal(outcome.answered, 0)
  t.equal(outcome.wrong.unanswered, 4)
  t.match(message, /unanswered/)
})

t.test('a server that goes away ends the load', async (t) => {
  const server = createSocketServer((socket) => {
    socket.on('error', () => socket.destroy())
    socket.once('data', () => {
      server.close()
      socket.destroy()
    })
  })
  const port = await listen(t, server)
  const { outcome } = await complaintOf(port, plan, { connections: 1, seconds: 60 })
  t.ok(outcome.wrong.closed > 0 && outcome.seconds < 60)
})

t.test('nobody listens: an error', async (t) => {
  await t.rejects(makeLoad(plan, { ...manner, port: 1 }), /cannot connect/)
})

t.test('answers slower than what is allowed fail', async (t) => {
  const port = await serving(t, (_, response, body) => {
    void pause(120).then(() => response.writeHead(200, { 'content-length': body.length }).end(body))
    return true
  })
  const { outcome } = await complaintOf(port, plan, { lateMs: 50 })
  t.equal(outcome.wrong.late, outcome.answered)
})

t.test(
  'at a fixed rate requests are timed from when they were due, not from when a connection was free',
  async (t) => {
    // One answer holds the only connection for 300 ms: all that were due meanwhile waited, too.
    const port = await serving(t, (_, response, body, at) => {
      if (at !== 10) return false
      void pause(300).then(() => response.writeHead(200, { 'content-length': body.length }).end(body))
      return true
    })
    const how = { port, connections: 1, seconds: 0.6, rate: 200 }
    const outcome = await tryLoad(plan, { ...manner, ...how })
    t.equal(outcome.answered, outcome.sent)
    t.ok(outcome.sent > 60, `${outcome.sent} of about 120 were sent`)
    // About 60 of about 120 requests fell due during the stall: far more than the one that met it were slow.
    t.ok(outcome.p99Us > 200_000, `p99 ${outcome.p99Us} us`)
    t.ok(outcome.p50Us < outcome.p99Us)
  },
)

t.test('a rate is kept, at moments that are no beat', async (t) => {
  const times: number[] = []
  const port = await serving(t, () => {
    times.push(performance.now())
    return false
  })
  const outcome = await makeLoad(plan, { ...manner, port, connections: 32, rate: 400, seconds: 1 })
  t.ok(outcome.sent > 250 && outcome.sent < 550, `${outcome.sent} in a second`)
  isBalanced(t, outcome)
})

t.test('a server that cannot keep the rate leaves requests unanswered, and that fails', async (t) => {
  const port = await serving(t, (_, response, body) => {
    void pause(100).then(() => response.writeHead(200, { 'content-length': body.length }).end(body))
    return true
  })
  const { outcome } = await complaintOf(port, plan, { connections: 2, rate: 300, drainMs: 100 })
  t.ok(outcome.wrong.unanswered > 10)
  t.ok(outcome.p99Us > 150_000)
})

t.test('a flood does not wait for answers', async (t) => {
  const port = await talking(t, (socket) => socket.resume())
  const outcome = await tryLoad(plan, { ...manner, port, rate: 2000, flood: true, drainMs: 0 })
  t.ok(outcome.sent > 100)
  t.equal(outcome.answered, 0)
})
