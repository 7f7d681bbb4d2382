import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectPlain } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import t from 'tap'
import { tlsBy } from '../../native/server/server.js'
import { type Server, serve, type TlsOptions } from '../../src/http/listen.js'
import { TicketKeys } from '../../src/http/ticket-keys.js'
import { eventually } from '../eventually.js'
import { converse } from './raw.js'
import { clientHello, madePair, tlsWith } from './transport.js'

const ways = tlsBy === 'addon' ? (['addon', 'fallback'] as const) : (['fallback'] as const)
const ec = madePair('ec', 'first.test', '*.first.test')
const rsa = madePair('rsa', 'second.test', 'one.first.test')
const beside = madePair('ec', 'second.test', 'one.first.test')
const request = 'GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

async function listening(by: (typeof ways)[number], tls: TlsOptions, connectionsMax = 100): Promise<Server> {
  const server = serve(
    (incoming, reply) => reply.end({ status: 200, block: '' }, `${incoming.path} ${incoming.secure}`),
    {
      host: '127.0.0.1',
      port: 0,
      stallMs: 5000,
      requestsMax: 100,
      connectionsMax,
      by,
      tls,
      onThrow: (error) => t.fail(String(error)),
    },
  )
  t.teardown(() => server.close(0))
  await server.listening
  return server
}

interface Talk {
  readonly text: string
  /** Common name of the certificate. */
  readonly name: string | undefined
  readonly protocol: string | null
  readonly cipher: string
  readonly alpn: string | false | null
  readonly isResumed: boolean
  readonly session: Buffer | undefined
}

async function talk(port: number, more: ConnectionOptions = {}, sent = request): Promise<Talk> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...more })
  let session: Buffer | undefined
  socket.on('session', (one: Buffer) => {
    session = one
  })
  await once(socket, 'secureConnect')
  const certificate = socket.getPeerCertificate()
  const about = {
    name: certificate.subject?.CN as string | undefined,
    protocol: socket.getProtocol(),
    cipher: socket.getCipher().name,
    alpn: socket.alpnProtocol,
    isResumed: socket.isSessionReused(),
  }
  socket.write(sent)
  return { text: await textOf(socket), ...about, session }
}

async function textOf(socket: TLSSocket): Promise<string> {
  let text = ''
  socket.setEncoding('latin1')
  for await (const piece of socket) text += piece
  return text
}

for (const by of ways) {
  t.test(`TLS of the ${by}`, async (t) => {
    // node:tls cannot tell keys of different kinds apart.
    const tls = tlsWith(ec, by === 'addon' ? rsa : beside)
    const server = await listening(by, tls)
    const { port } = server

    await t.test('a request over it is told so, in both versions', async (t) => {
      for (const [version, cipher] of [
        ['TLSv1.3', 'TLS_AES_128_GCM_SHA256'],
        ['TLSv1.2', 'ECDHE-ECDSA-AES128-GCM-SHA256'],
      ] as const) {
        const agreed = await talk(port, { maxVersion: version, ALPNProtocols: ['h2', 'http/1.1'] })
        t.match(agreed, { protocol: version, cipher, alpn: 'http/1.1' })
        t.match(agreed.text, /^HTTP\/1\.1 200 OK[\s\S]*\r\n\/a true$/)
      }
      const mobile = { ciphers: 'TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256' }
      if (by === 'addon') t.match((await talk(port, mobile)).cipher, /CHACHA20/)
    })

    await t.test('the name that is asked for chooses the certificate', async (t) => {
      const nameOf = async (servername: string) => (await talk(port, { servername })).name
      t.equal(await nameOf('first.test'), 'first.test')
      t.equal(await nameOf('SECOND.test'), 'second.test')
      t.equal(await nameOf('any.first.test'), 'first.test')
      t.equal(await nameOf('one.first.test'), 'second.test', 'its own name comes before a wildcard')
      t.equal(await nameOf('a.b.first.test'), 'first.test', 'no name of ours: the first one')
      const strict = await listening(by, { ...tls, unknownName: 'refuse' })
      t.equal((await talk(strict.port, { servername: 'second.test' })).name, 'second.test')
      await t.rejects(talk(strict.port, { servername: 'a.b.first.test' }))
    })

    await t.test('a session goes on with another thread, and with new certificates', async (t) => {
      const other = await listening(by, tls)
      for (const maxVersion of ['TLSv1.3', 'TLSv1.2'] as const) {
        const { session, isResumed } = await talk(port, { maxVersion })
        t.notOk(isResumed)
        other.setCertificates([ec, rsa])
        const again = await talk(other.port, { maxVersion, session })
        t.ok(again.isResumed)
        // Browsers use a ticket of TLS 1.3 once (RFC 8446 appendix C.4). node:tls replaces none while its key is the newest.
        if (by === 'addon' && maxVersion === 'TLSv1.3')
          t.type(again.session, Buffer, 'with a ticket for the next time')
      }
      const strange = await listening(by, tlsWith(ec))
      const { session } = await talk(port)
      t.notOk((await talk(strange.port, { session })).isResumed, 'not where the keys are others')
    })

    await t.test('new certificates end no connection, and unusable ones change nothing', async (t) => {
      const own = await listening(by, tlsWith(ec))
      const socket = connect({ port: own.port, host: '127.0.0.1', rejectUnauthorized: false })
      await once(socket, 'secureConnect')
      own.setCertificates([rsa])
      t.equal((await talk(own.port)).name, 'second.test')
      t.throws(() => own.setCertificates([{ ...ec, key: rsa.key }]))
      t.throws(() => own.setCertificates([{ ...ec, cert: 'none' }]))
      t.throws(() => own.setCertificates([]))
      t.equal((await talk(own.port)).name, 'second.test')
      socket.write(request)
      t.match(await textOf(socket), /\/a true$/)
    })

    await t.test('what is no TLS, or an old one, is refused, and hurts nobody', async (t) => {
      const plain = await converse(port, request)
      t.match(plain.text, /^HTTP\/1\.1 400 [\s\S]*this port speaks TLS/)
      await t.rejects(talk(port, { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' }))
      await t.rejects(talk(port, { maxVersion: 'TLSv1.2', ciphers: 'AES128-SHA' }))
      await t.rejects(talk(port, { ALPNProtocols: ['h2'] }))
      // node:tls finds out by its deadline.
      const broken = [
        '\x16\x03\x01\xff\xff',
        '\x16\x03\x01\x00\x05\x01\x00\xff\xff\xff',
        '\x16\x03\x01\x00\x00'.repeat(100),
        '\x16',
        '\x80\x2e\x01\x00\x02',
        '\x15\x03\x01\x00\x02\x02\x28',
        '\x17\x03\x03\x00\x20'.repeat(50),
      ]
      for (const bytes of by === 'addon' ? broken : []) t.notMatch((await converse(port, bytes)).text, 'HTTP')
      t.match((await talk(port)).text, /\/a true$/)
    })

    await t.test('it takes records of a byte, and handshakes in pieces', async (t) => {
      const between = connectPlain({ port, host: '127.0.0.1' })
      const socket = connect({ socket: between, rejectUnauthorized: false })
      await once(socket, 'secureConnect')
      for (const letter of request) socket.write(letter)
      t.match(await textOf(socket), /\/a true$/)
    })

    await t.test('it says that nothing follows, and serves clients that send no more', async (t) => {
      const words = ['s_client', '-connect', `127.0.0.1:${port}`, '-quiet', '-servername', 'first.test']
      const client = spawn('openssl', words, { stdio: ['pipe', 'pipe', 'ignore'] })
      client.stdin.end(request)
      let printed = ''
      for await (const piece of client.stdout) printed += piece
      t.match(printed, /\/a true$/)
    })
  })
}

t.test('floods of handshakes', { skip: tlsBy !== 'addon' }, async (t) => {
  const server = await listening('addon', tlsWith(ec), 64)
  const idle = Array.from({ length: 60 }, () => connectPlain({ port: server.port, host: '127.0.0.1' }))
  for (const one of idle) one.on('error', () => 'the server gives its place to others')
  // A quarter of all connections may be in their handshakes: the oldest make room.
  await eventually('idle connections are closed', () => idle.filter((one) => one.closed).length >= 40)
  t.match((await talk(server.port)).text, /\/a true$/)
  for (const one of idle) one.destroy()
})

t.test(
  'an address that begins more handshakes than its rate has to wait, and is not refused',
  { skip: tlsBy !== 'addon' },
  async (t) => {
    const server = await listening('addon', tlsWith(ec), 16_384)
    const hello = await clientHello()
    const open = (bytes: Uint8Array) => {
      const one = connectPlain({ port: server.port, host: '127.0.0.1' })
      one.on('error', (error) => t.fail(error.message))
      one.write(bytes)
      return one
    }
    // More handshakes at once than a turn takes, and then more beginnings than the address may have at once.
    const first = Array.from({ length: 64 }, () => open(hello))
    await Promise.all(first.map((one) => once(one, 'data')))
    const all = Array.from({ length: 1200 }, () => open(hello.subarray(0, 1)))
    await Promise.all(all.map((one) => once(one, 'connect')))
    const more = Array.from({ length: 64 }, () => open(hello))
    t.match((await talk(server.port)).text, /\/a true$/)
    await Promise.all(more.map((one) => once(one, 'data')))
    t.equal([...first, ...all, ...more].filter((one) => one.closed).length, 0)
    for (const one of [...first, ...all, ...more]) one.destroy()
  },
)

t.test('all handshakes that wait have their turn', { skip: tlsBy !== 'addon' }, async (t) => {
  const server = await listening('addon', tlsWith(ec), 16_384)
  const hello = await clientHello()
  const all = Array.from({ length: 1000 }, () => connectPlain({ port: server.port, host: '127.0.0.1' }))
  for (const one of all) one.on('error', (error) => t.fail(error.message))
  await Promise.all(all.map((one) => once(one, 'connect')))
  // Some leave while they wait, and their slots are taken by others.
  for (const one of all) one.write(hello)
  for (const one of all.slice(0, 300)) one.resetAndDestroy()
  const [answered, text] = await Promise.all([
    Promise.all(all.slice(300).map((one) => once(one, 'data'))),
    talk(server.port),
  ])
  t.equal(answered.length, 700)
  t.match(text.text, /\/a true$/)
  for (const one of all) one.destroy()
})

t.test('keys of tickets are kept for two changes', async (t) => {
  let made = 0
  const keys = new TicketKeys(TicketKeys.memory(), (bytes) => {
    made += 1
    return randomBytes(bytes)
  })
  const server = await listening(ways[0], { ...tlsWith(ec), ticketKeys: keys.bytes })
  const { session } = await talk(server.port)
  if (ways[0] === 'addon') {
    keys.rotate()
    keys.rotate()
    t.ok((await talk(server.port, { session })).isResumed)
  }
  keys.rotate()
  t.notOk((await talk(server.port, { session })).isResumed && made === 4 && ways[0] === 'fallback')
  keys.rotate()
  t.notOk((await talk(server.port, { session })).isResumed)
})
