/** Answers of other gateways as bytes on a socket: which are read, which are refused, and when a connection is used again. */
import type { Socket } from 'node:net'
import * as tls from 'node:tls'
import t, { type Test } from 'tap'
import { HttpClient } from '../../../native/client/client.js'
import { pause, systemClock } from '../../../src/actor/clock.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { UpstreamClient, type UpstreamClientOptions } from '../../../src/source/upstream/upstream-client.js'
import { eventually } from '../../eventually.js'
import { localPair, type RawServer, raw as rawServer } from '../../native/asking.js'

/** A server that hands each request's head, the number of its connection, and the socket to `act`. */
async function raw(
  t: Test,
  act: (socket: Socket, head: string, connection: number) => void,
): Promise<RawServer & { readonly url: string }> {
  const server = await rawServer(t, act)
  return Object.assign(server, { url: `http://127.0.0.1:${server.port}` })
}

const usual = { headMs: 60_000, stallMs: 60_000, connectionsMax: 4 } as const

/** Lines by both clients: where the addon is not there, both are undici. */
const clients: Readonly<Record<string, UpstreamClientOptions>> = {
  undici: usual,
  'native/client': { ...usual, reads: ['content-length'] },
}

function clientTo(t: Test, options: UpstreamClientOptions): UpstreamClient {
  const client = new UpstreamClient(options, systemClock)
  t.teardown(() => client.close())
  return client
}

/** A test for each client; `client` makes one. */
function byEach(name: string, act: (t: Test, client: (t: Test) => UpstreamClient) => Promise<void>): void {
  for (const [client, options] of Object.entries(clients))
    t.test(`${name}, by ${client}`, (t) => act(t, (t) => clientTo(t, options)))
}

interface Got {
  readonly status: number
  readonly body: string
}

/** What was got; a string: why nothing, or not all of it, was. */
async function got(client: UpstreamClient, url: string, path = '/', method: 'GET' | 'HEAD' = 'GET') {
  const answer = await client.request(url, { method, path, headers: {} }, new AbortController().signal)
  if (isRefusal(answer)) return answer.message
  let body = ''
  for await (const piece of answer) {
    if (isRefusal(piece)) return piece.message
    body += Buffer.from(piece).toString('latin1')
  }
  return { status: answer.statusCode, body }
}

interface Sound extends Got {
  readonly answer: string
}

/** Each followed by nothing more: the socket stays open. */
const sound: Readonly<Record<string, Sound>> = {
  'a length': { answer: 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc', status: 200, body: 'abc' },
  'no reason': { answer: 'HTTP/1.1 200 \r\ncontent-length:3\r\n\r\nabc', status: 200, body: 'abc' },
  chunks: {
    answer:
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nTrailer: 1\r\n\r\n',
    status: 200,
    body: 'abc',
  },
  'informational answers first': {
    answer: 'HTTP/1.1 103 Early\r\nLink: </>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na',
    status: 200,
    body: 'a',
  },
  'no content': { answer: 'HTTP/1.1 204 None\r\n\r\n', status: 204, body: '' },
  'a redirect': {
    answer: 'HTTP/1.1 302 There\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n',
    status: 302,
    body: '',
  },
}

for (const [name, { answer, status, body }] of Object.entries(sound))
  byEach(`an answer is read, and its connection used again: ${name}`, async (t, clientOf) => {
    for (const cut of [answer.length, 1]) {
      const server = await raw(t, (socket, _, connection) => {
        void (async () => {
          for (let at = 0; at < answer.length && connection === 1; at += cut) {
            socket.write(answer.slice(at, at + cut), 'latin1')
            if (cut < answer.length) await pause(0)
          }
        })()
      })
      const client = clientOf(t)
      for (let turn = 0; turn < 2; turn += 1) {
        t.strictSame(await got(client, server.url), { status, body })
        // Only now the client has the connection back.
        await pause(0)
      }
      t.equal(server.connections, 1)
    }
  })

byEach('a head has no body, whatever length it states', async (t, clientOf) => {
  const server = await raw(t, (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'))
  t.strictSame(await got(clientOf(t), server.url, '/', 'HEAD'), { status: 200, body: '' })
})

const big = 'x'.repeat(40_000)

const unsound: Readonly<Record<string, string>> = {
  'no status line': 'HTP/1.1 200 OK\r\n\r\n',
  'a status of two digits': 'HTTP/1.1 20 OK\r\nContent-Length: 1\r\n\r\na',
  'another protocol': 'HTTP/1.1 101 Other\r\n\r\n',
  'a space before the colon': 'HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\na',
  'a line without a name': 'HTTP/1.1 200 OK\r\n: 1\r\nContent-Length: 1\r\n\r\na',
  'a zero in a value': 'HTTP/1.1 200 OK\r\nX-Word: a\0b\r\nContent-Length: 1\r\n\r\na',
  'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na',
  'two lengths that differ': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
  'a length that is none': 'HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na',
  'a length with a sign': 'HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na',
  'a length without end': `HTTP/1.1 200 OK\r\nContent-Length: ${'9'.repeat(30)}\r\n\r\na`,
  'a length and chunks':
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n',
  'another coding': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n',
  'a bad chunk': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\na\r\n0\r\n\r\n',
  'a large head': `HTTP/1.1 200 OK\r\nX-Word: ${big}\r\nContent-Length: 1\r\n\r\na`,
}

for (const [name, answer] of Object.entries(unsound))
  byEach(`an answer is refused: ${name}`, async (t, clientOf) => {
    const server = await raw(t, (socket) => socket.write(answer, 'latin1'))
    const client = clientOf(t)
    t.type(await got(client, server.url), 'string')
    await eventually('its connection is closed', () => server.sockets.size === 0)
  })

byEach(
  'a body without length ends with its connection, and a shorter one than its length breaks',
  async (t, clientOf) => {
    const server = await raw(t, (socket, head) => {
      if (head.includes('/open')) socket.end('HTTP/1.1 200 OK\r\n\r\nabc')
      else if (head.includes('/reset'))
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc', () => socket.resetAndDestroy())
      else if (head.includes('/chunks'))
        socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc')
      else if (head.includes('/head')) socket.end('HTTP/1.1 200 OK\r\nContent-')
      else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc')
    })
    const client = clientOf(t)
    t.strictSame(await got(client, server.url, '/open'), { status: 200, body: 'abc' })
    for (const path of ['/short', '/reset', '/chunks', '/head'])
      t.type(await got(client, server.url, path), 'string', path)
  },
)

byEach('bytes behind an answer are nobody’s: the connection is not used again', async (t, clientOf) => {
  const server = await raw(t, (socket, head) => {
    const length = head.includes('/long') ? 1 : 2
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\nab`)
    if (length === 2) void pause(10).then(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz'))
  })
  const client = clientOf(t)
  t.strictSame(await got(client, server.url, '/long'), { status: 200, body: 'a' })
  t.strictSame(await got(client, server.url), { status: 200, body: 'ab' })
  t.equal(server.connections, 2, 'after a body that is too long')
  await eventually('the next connection is closed, too', () => server.sockets.size === 0)
  t.strictSame(await got(client, server.url), { status: 200, body: 'ab' })
  t.equal(server.connections, 3, 'after an answer that nobody requested')
})

byEach(
  'a request on a kept connection that was closed is sent once more, on a new one',
  async (t, clientOf) => {
    const server = await raw(t, (socket, head, connection) => {
      if (head.includes('/first')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na')
      else if (connection === 1) socket.resetAndDestroy()
      else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb')
    })
    const client = clientOf(t)
    await got(client, server.url, '/first')
    t.strictSame(await got(client, server.url, '/second'), { status: 200, body: 'b' })
    t.equal(server.connections, 2)
  },
)

byEach('header lines that would begin another line are not sent', async (t, clientOf) => {
  let requests = 0
  const server = await raw(t, (socket) => {
    requests += 1
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na')
  })
  const client = clientOf(t)
  const never = new AbortController().signal
  for (const [path, headers] of [
    ['/', { 'x-word': 'a\r\nx-other: b' }],
    ['/a b', {}],
    ['/a\r\nx: y', {}],
  ] as const) {
    const answer = await client.request(server.url, { method: 'GET', path, headers }, never)
    t.ok(isRefusal(answer), path)
  }
  t.equal(requests, 0)
})

t.test('what is not reached over TLS by one client is asked by the other', async (t) => {
  const pair = await localPair()
  const server = await rawServer(
    t,
    (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na'),
    pair,
  )
  const file = `${t.testdir({ 'extra.pem': pair.cert })}/extra.pem`
  const url = `https://localhost:${server.port}`
  const known = clientTo(t, { ...usual, reads: [], authoritiesFile: file })
  const isNodes = 'getCACertificates' in tls
  if (HttpClient.isThere && !isNodes) t.strictSame(await got(known, url), { status: 200, body: 'a' })
  // Nobody knows this authority: both clients refuse the server, each by its own rules.
  const client = clientTo(t, { ...usual, reads: [] })
  const before = server.connections
  t.match(await got(client, url), /self.signed certificate/)
  t.match(await got(client, url), /self.signed certificate/)
  t.equal(server.connections, before, 'none of them came into being')
})
