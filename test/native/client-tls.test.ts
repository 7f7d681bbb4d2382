/** TLS of the native client of other servers: which of them are believed, and what ends a connection. */
import { randomBytes } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import { rootCertificates, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { HttpClient, tlsFailed } from '../../native/client/client.js'
import { pause } from '../../src/actor/clock.js'
import { nodesTrust } from '../../src/source/upstream/authorities.js'
import { authority, signed } from '../certificates/made.js'
import { asking, localPair, raw } from './asking.js'

const skip = HttpClient.isThere ? false : 'the addon is not here'
const pair = await localPair()

const answer = (body: string): string => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
const reply = (socket: Socket): void => void socket.write(answer('a'))

async function heardOf(t: Test, port: number, authorities: string, host: string, isAddress = false) {
  return asking(t, port, { tls: { authorities, host, isAddress } }).ask().heard.over
}

t.test('a server is believed by its certificate and its name only', { skip }, async (t) => {
  const folder = t.testdir()
  const root = authority(folder, 'root')
  const good = signed(`${folder}/good`, root, { names: ['localhost', '*.wild.example'] })
  const late = signed(`${folder}/late`, root, { names: ['localhost'], days: -1 })
  const server = await raw(t, reply, good)
  const expired = await raw(t, reply, late)
  t.equal((await heardOf(t, server.port, root.cert, 'localhost')).body.toString(), 'a')
  t.equal((await heardOf(t, server.port, root.cert, 'one.wild.example')).body.toString(), 'a')
  const wrong: readonly [string, number, string, string, boolean][] = [
    ['another name', server.port, root.cert, 'other.example', false],
    ['a name below a wildcard’s', server.port, root.cert, 'a.b.wild.example', false],
    ['an address that is not in it', server.port, root.cert, '127.0.0.1', true],
    ['an unknown authority', server.port, authority(folder, 'other').cert, 'localhost', false],
    ['no authority', server.port, '', 'localhost', false],
    ['an authority of the web', server.port, rootCertificates.join('\n'), 'localhost', false],
    ['an expired one', expired.port, root.cert, 'localhost', false],
  ]
  for (const [name, port, authorities, host, isAddress] of wrong) {
    const { error, heads, ends } = await heardOf(t, port, authorities, host, isAddress)
    t.match(
      { error, heads, ends },
      { error: { code: tlsFailed, message: /certificate/ }, heads: 0, ends: 0 },
      name,
    )
  }
})

t.test('the authorities of Node are taken, with those of a file beside them', { skip }, async (t) => {
  const file = `${t.testdir({ 'extra.pem': pair.cert })}/extra.pem`
  const { authorities, suites, ciphers } = nodesTrust(file)
  const [first = ''] = rootCertificates
  t.ok(authorities.includes(first))
  t.ok(suites.split(':').every((word) => word.startsWith('TLS_')))
  t.notOk(ciphers.includes('TLS_'))
  const client = new HttpClient({ names: [], connectionsMax: 1, wholeMaxBytes: 0 })
  t.teardown(() => client.destroy())
  t.ok(client.trust({ authorities, suites, ciphers }))
  t.doesNotThrow(() => nodesTrust(`${file}.absent`))
})

t.test('what is no TLS is an error of TLS, whatever it sends', { skip }, async (t) => {
  for (const bytes of [answer('a'), randomBytes(50_000), Buffer.alloc(20_000, 22)]) {
    const server = createServer((socket) => {
      socket.on('error', () => undefined).resume()
      socket.end(bytes)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    t.match(await heardOf(t, port, pair.cert, 'localhost'), { error: Error, heads: 0 })
    await new Promise((resolve) => server.close(resolve))
  }
})

t.test('a request whose server never shakes hands can be dropped', { skip }, async (t) => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket
      .on('error', () => undefined)
      .on('close', () => sockets.delete(socket))
      .resume()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const { ask } = asking(t, port, { tls: { authorities: pair.cert, host: 'localhost' } })
  const { heard, request } = ask()
  while (sockets.size === 0) await pause(5)
  request.drop()
  while (sockets.size > 0) await pause(5)
  t.match(heard, { heads: 0, ends: 0, error: undefined })
  await new Promise((resolve) => server.close(resolve))
})

t.test('both versions are spoken, and no older one', { skip }, async (t) => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const server = await raw(t, reply, { ...pair, minVersion: version, maxVersion: version })
    t.equal((await heardOf(t, server.port, pair.cert, 'localhost')).body.toString(), 'a', version)
  }
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' } as const
  const server = await raw(t, reply, { ...pair, ...old })
  t.match(await heardOf(t, server.port, pair.cert, 'localhost'), { error: { code: tlsFailed }, heads: 0 })
})

t.test('a connection resumes the session of one before', { skip }, async (t) => {
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    const resumed: boolean[] = []
    const server = await raw(
      t,
      (socket) => {
        resumed.push((socket as TLSSocket).isSessionReused())
        socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na`)
      },
      { ...pair, maxVersion },
    )
    const { ask } = asking(t, server.port, { tls: { authorities: pair.cert, host: 'localhost' } })
    for (let turn = 0; turn < 3; turn += 1) t.equal((await ask().heard.over).error, undefined)
    t.same(resumed, [false, true, true], maxVersion)
  }
})

t.test('a body without length is whole only where TLS says so', { skip }, async (t) => {
  const server = await raw(
    t,
    (socket, head) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\nabc', () => {
        if (head.includes('/said')) socket.end()
        else setTimeout(() => socket.destroy(), 20)
      })
    },
    pair,
  )
  const { ask } = asking(t, server.port, { tls: { authorities: pair.cert, host: 'localhost' } })
  t.match(await ask('/said').heard.over, { ends: 1, error: undefined })
  t.match(await ask('/cut').heard.over, { ends: 0, error: Error })
})

t.test('bytes of any size arrive as they were, in one piece or many', { skip }, async (t) => {
  const body = randomBytes(3_000_000).toString('base64')
  const server = await raw(
    t,
    (socket, head) => socket.write(answer(body.slice(0, Number(head.split(/[ /]/)[2])))),
    pair,
  )
  const tls = { authorities: pair.cert, host: 'localhost' }
  const { ask } = asking(t, server.port, { connectionsMax: 2, tls })
  const sizes = [0, 1, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 200_000, body.length]
  const all = await Promise.all([...sizes, ...sizes].map((size) => ask(`/${size}`).heard.over))
  for (const { error, body: got, ends } of all) {
    t.equal(error, undefined)
    t.equal(ends, 1)
    t.ok(body.startsWith(got.toString()))
  }
  t.same(
    all.map(({ body: got }) => got.length),
    [...sizes, ...sizes],
  )
  t.equal(server.connections, 2)
})

t.test('a server that names a time is not asked on a connection that is older', { skip }, async (t) => {
  const server = await raw(
    t,
    (socket) => socket.write('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 1\r\n\r\na'),
    pair,
  )
  const { ask } = asking(t, server.port, { tls: { authorities: pair.cert, host: 'localhost' } })
  await ask().heard.over
  await pause(20)
  await ask().heard.over
  t.equal(server.connections, 2)
})

t.test(
  'many at once share connections as they become free, and none waits for one that is silent',
  { skip },
  async (t) => {
    const server = await raw(t, (socket, head) => void (head.includes('/silent') || reply(socket)), pair)
    const tls = { authorities: pair.cert, host: 'localhost' }
    const { ask } = asking(t, server.port, { connectionsMax: 512, tls })
    const silent = Array.from({ length: 6 }, () => ask('/silent'))
    const all = await Promise.all(Array.from({ length: 400 }, () => ask().heard.over))
    t.ok(all.every(({ body, error }) => error === undefined && body.toString() === 'a'))
    t.ok(server.connections < 400, `${server.connections} connections`)
    for (const { heard, request } of silent) {
      request.drop()
      t.match(heard, { heads: 0, error: undefined })
    }
  },
)
