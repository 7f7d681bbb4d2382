/** What clients of TLS can do to others, to the memory of the server and to the rest of its thread. */
import { once } from 'node:events'
import { type AddressInfo, connect as connectPlain, createServer as createRelay, type Socket } from 'node:net'
import { connect, createServer, type TLSSocket } from 'node:tls'
import t from 'tap'
import { tlsBy } from '../../native/server/server.js'
import { type Server, serve } from '../../src/http/listen.js'
import { eventually } from '../eventually.js'
import { forging, recordType } from './forged-records.js'
import { clientHello, madePair, tlsWith } from './transport.js'

const pair = madePair('ec', 'first.test')
const skip = tlsBy !== 'addon'

async function listening(connectionsMax = 100, by: 'addon' | 'fallback' = tlsBy): Promise<Server> {
  const server = serve((request, reply) => reply.end({ status: 200, block: '' }, request.path), {
    host: '127.0.0.1',
    port: 0,
    stallMs: 5000,
    requestsMax: 100,
    connectionsMax,
    by,
    tls: tlsWith(pair),
    onThrow: (error) => t.fail(String(error)),
  })
  t.teardown(() => server.close(0))
  await server.listening
  return server
}

function open(port: number, bytes: string | Uint8Array): Socket {
  const one = connectPlain({ port, host: '127.0.0.1' })
  one.on('error', () => 'a server may reset it')
  one.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  return one
}

t.test('what is no TLS breaks no other connection of its thread', async (t) => {
  const server = await listening()
  const other = createServer({ cert: pair.cert, key: pair.key }).listen(0, '127.0.0.1')
  t.teardown(() => other.close())
  await once(other, 'listening')
  const address = other.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const arrived = once(other, 'secureConnection')
  const mine = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  const [theirs] = (await arrived) as [TLSSocket]
  const hello = await clientHello()
  const damaged = Buffer.from(hello)
  damaged.fill(0xff, 60)
  const broken = ['\x17\x03\x03\x00\x20'.repeat(50), '\x80\x2e\x01\x00\x02', damaged, hello.subarray(0, 5)]
  for (const bytes of broken) {
    const one = open(server.port, bytes)
    one.end()
    one.resume()
    await once(one, 'close')
    // node:tls looks into the errors of the thread when nothing more is to be read.
    theirs.write('a word')
    const [echoed] = (await once(mine, 'data')) as [Buffer]
    t.equal(String(echoed), 'a word')
  }
  mine.destroy()
  theirs.destroy()
})

t.test('handshakes that failed are not counted as under way', { skip }, async (t) => {
  const server = await listening(64)
  const hello = await clientHello()
  // A quarter of all connections may be in their handshakes.
  const failed = Array.from({ length: 16 }, () => open(server.port, '\x16\x03\x01\xff\xff'))
  await Promise.all(failed.map((one) => once(one, 'data')))
  const slow = open(server.port, hello.subarray(0, 1))
  const fast = open(server.port, hello)
  await once(fast, 'data')
  slow.write(hello.subarray(1))
  if (!slow.closed) await Promise.race([once(slow, 'data'), once(slow, 'close')])
  t.notOk(slow.closed)
  for (const one of [...failed, slow, fast]) one.destroy()
})

/** A record of a handshake before keys. */
function shake(bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([recordType.handshake, 3, 1, 0, bytes.length]), bytes])
}

/** The head of a ClientHello of so many bytes. */
function stated(bytes: number): Buffer {
  return Buffer.from([1, bytes >> 16, (bytes >> 8) & 255, bytes & 255])
}

const decodeError = Buffer.from([recordType.alert, 3, 3, 0, 2, 2, 50])

for (const by of ['addon', 'fallback'] as const)
  t.test(
    `a message whose length is stated and not sent takes no memory: ${by}`,
    { skip: by === 'addon' && skip },
    async (t) => {
      const server = await listening(100, by)
      const large = stated(131_000)
      const parts = [large.subarray(0, 1), large.subarray(1, 3), large.subarray(3)]
      for (const sent of [
        shake(large),
        Buffer.concat(parts.map(shake)),
        // A message of no bytes, and one of one byte, in front.
        shake(Buffer.concat([stated(0), stated(1), Buffer.of(7), large])),
      ]) {
        const one = open(server.port, sent)
        const [answer] = (await once(one, 'data')) as [Buffer]
        t.same(answer, decodeError)
        one.destroy()
      }
      const slow = open(server.port, '')
      for (const byte of await clientHello()) slow.write(Buffer.of(byte))
      const [answer] = (await once(slow, 'data')) as [Buffer]
      t.equal(answer[0], recordType.handshake, 'an honest one may come byte by byte')
      slow.destroy()
    },
  )

t.test('nor does one behind the request for another ClientHello', { skip }, async (t) => {
  const server = await listening()
  for (const isFalse of [false, true]) {
    let flights = 0
    let answered = Buffer.alloc(0)
    const relay = createRelay((inner) => {
      const wire = open(server.port, '')
      inner.on('error', () => 'its peer is refused')
      inner.on('data', (bytes: Buffer) => {
        flights += 1
        const forged = Buffer.concat([Buffer.from([20, 3, 3, 0, 1, 1]), shake(stated(131_000))])
        wire.write(isFalse && flights === 2 ? forged : bytes)
      })
      wire.on('data', (bytes: Buffer) => {
        answered = Buffer.concat([answered, bytes])
        inner.write(bytes)
      })
      wire.on('close', () => inner.destroy())
    }).listen(0, '127.0.0.1')
    await once(relay, 'listening')
    const { port } = relay.address() as AddressInfo
    // The server has no such group, so that it requests a key of the other one.
    const client = connect({
      port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      ecdhCurve: 'X448:P-256',
    })
    client.on('error', () => 'it is refused')
    await new Promise((resolve) => client.once(isFalse ? 'close' : 'secureConnect', resolve))
    t.ok(flights >= 2, 'there was a second flight')
    if (isFalse) t.same(answered.subarray(-decodeError.length), decodeError)
    client.destroy()
    relay.close()
  }
})

for (const asks of [true, false])
  t.test(
    `a client that has new keys without end is dropped${asks ? ', which asks for ours' : ''}`,
    { skip },
    async (t) => {
      const server = await listening()
      const { forger, wire, client } = await forging(server.port)
      for (let count = 0; count < 16; count += 1) wire.write(forger.newKey(asks))
      wire.write(forger.record(recordType.data, Buffer.from('GET /a HTTP/1.1\r\nHost: x\r\n\r\n')))
      const [answer] = (await once(client, 'data')) as [Buffer]
      t.match(String(answer), /^HTTP\/1\.1 200 /, 'some are no fault')
      for (let count = 0; count < 1000; count += 1) wire.write(forger.newKey(asks))
      await eventually('it is closed', async () => wire.destroyed || undefined)
      client.destroy()
    },
  )

for (const by of tlsBy === 'addon' ? (['addon', 'fallback'] as const) : (['fallback'] as const)) {
  t.test(`a client of the ${by} that sends no more gets its refusal`, async (t) => {
    const server = await listening(100, by)
    for (const bytes of [20_000, 300_000]) {
      const sent = `GET /a HTTP/1.1\r\nHost: x\r\nA: ${'b'.repeat(bytes)}\r\n\r\n`
      const client = connect({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false })
      let text = ''
      client.setEncoding('latin1')
      client.on('data', (piece: string) => {
        text += piece
      })
      client.on('error', () => 'it may be reset behind the answer')
      await once(client, 'secureConnect')
      client.end(sent)
      await once(client, 'close')
      t.match(text, /^HTTP\/1\.1 431 /, `${bytes} bytes`)
    }
  })
}

t.test('handshakes of the fallback are bounded, and the oldest make room', async (t) => {
  const server = await listening(64, 'fallback')
  // The first byte of a record: the server waits for the others.
  const unfinished = Array.from({ length: 40 }, () => open(server.port, '\x16'))
  await eventually('the oldest are closed', () => unfinished.filter((one) => one.closed).length >= 24)
  const client = connect({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false })
  await once(client, 'secureConnect')
  t.notOk(unfinished.at(-1)?.closed, 'the youngest stay')
  for (const one of unfinished) one.destroy()
  client.destroy()
})
