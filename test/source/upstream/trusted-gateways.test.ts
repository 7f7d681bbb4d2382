import { randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import t from 'tap'
import { pause } from '../../../src/actor/clock.js'
import { encodeBase64url } from '../../../src/format/base64url.js'
import { isRefusal, type Refusal } from '../../../src/format/refusal.js'
import type { Found, Wanted } from '../../../src/source/source.js'
import { eventually } from '../../eventually.js'
import { HandClock } from '../../names/hand-clock.js'
import { gateways, sha256, someId, trail, upstream } from '../rig.js'

const never = new AbortController().signal

function wanted(more: Partial<Wanted> = {}): Wanted {
  return { id: someId(), hints: {}, provenance: trail, avoid: new Set(), ...more }
}

/** What is under way, and whether it is over. */
function watched<T>(outcome: Promise<T>): { readonly outcome: Promise<T>; readonly isOver: boolean } {
  let isOver = false
  void outcome.then(() => {
    isOver = true
  })
  return {
    outcome,
    get isOver() {
      return isOver
    },
  }
}

async function bytesOf(found: Found | Refusal): Promise<Buffer | Refusal> {
  if (isRefusal(found)) return found
  const pieces: Uint8Array[] = []
  for await (const piece of found.body) {
    if (isRefusal(piece)) return piece
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

t.test('what one question says is not said with the next one', async (t) => {
  const server = await upstream((_, response) => response.end('x'))
  const source = gateways([server.url])
  const root = someId()
  const wishes: Partial<Wanted>[] = [
    {},
    { hints: { rootId: root } },
    {},
    { provenance: { hops: 2, via: ['other.example'], forward: true } },
    { provenance: { hops: 0, origin: 'first.example', via: [], forward: true } },
    { window: { start: 0, end: 0 } },
    {},
  ]
  for (const more of wishes) await bytesOf(await source.open(wanted(more), never))
  const lines = server.requests.map(({ headers }) => [
    headers['x-ar-io-root-transaction-id'],
    headers['x-ar-io-hops'],
    headers['x-ar-io-origin'],
    headers['x-ar-io-via'],
    headers.range,
  ])
  const plain = [undefined, '1', 'gateway.example', 'gateway.example', undefined]
  t.same(lines, [
    plain,
    [root, ...plain.slice(1)],
    plain,
    [undefined, '3', 'gateway.example', 'other.example,gateway.example', undefined],
    [undefined, '1', 'first.example', 'gateway.example', undefined],
    [...plain.slice(0, 4), 'bytes=0-0'],
    plain,
  ])
  await source.close()
  await server.close()
})

t.test(
  'a request to a gateway has the via list in the vocabulary of the network, and no query',
  async (t) => {
    const server = await upstream((_, response) => response.end('x'))
    const source = gateways([server.url])
    const root = someId()
    const provenance = { hops: 1, origin: 'first.example', via: ['first.example'], forward: true }
    const want = wanted({ provenance, hints: { rootId: root, itemOffset: 10, itemSize: 20 } })
    await bytesOf(await source.open(want, never))
    const [request] = server.requests
    t.equal(request?.url, `/raw/${want.id}`)
    t.match(request?.headers, {
      'x-ar-io-hops': '2',
      'x-ar-io-origin': 'first.example',
      'x-ar-io-via': 'first.example,gateway.example',
      'x-ar-io-root-transaction-id': root,
      'x-ar-io-root-item-offset': '10',
      'x-ar-io-root-item-size': '20',
      'accept-encoding': 'identity',
    })
    await source.close()
    await server.close()
  },
)

t.test('loop defence: too many hops, our own name, a gateway already passed, or no forwarding', async (t) => {
  const server = await upstream((_, response) => response.end('x'))
  const source = gateways([server.url])
  for (const provenance of [
    { ...trail, hops: 3 },
    { ...trail, via: ['Gateway.Example'] },
    { ...trail, via: ['127.0.0.1'] },
    { ...trail, origin: '127.0.0.1' },
    { ...trail, forward: false },
  ]) {
    const refusal = await source.open(wanted({ provenance }), never)
    t.equal(isRefusal(refusal) && refusal.refused, 'unknown')
  }
  t.equal(server.requests.length, 0)
  await source.close()
  await server.close()
})

t.test('headers are read under both names, and malformed values count as absent', async (t) => {
  const digest = sha256(Buffer.from('x'))
  const root = someId()
  for (const spelling of ['X-AR-IO-', 'X-GATEWAY-']) {
    const server = await upstream((_, response) => {
      response.setHeader(`${spelling}Digest`, encodeBase64url(digest))
      response.setHeader(`${spelling}Hops`, '2')
      response.setHeader(`${spelling}Root-Transaction-Id`, root)
      response.setHeader(`${spelling}Root-Data-Item-Offset`, '128')
      response.setHeader(`${spelling}Data-Item-Size`, '-4')
      response.setHeader('Content-Type', 'text/html; charset=utf-8')
      response.setHeader('Content-Length', '1')
      response.end('x')
    })
    const source = gateways([server.url], false)
    const found = await source.open(wanted(), never)
    if (isRefusal(found)) throw new Error(found.message)
    t.same(Buffer.from(found.declaredDigest ?? []), digest)
    t.equal(found.hops, 2)
    t.same(found.hints, { rootId: root })
    t.same(found.learned, { contentType: 'text/html; charset=utf-8' })
    t.equal(found.trusted, false)
    t.equal(found.proven, false)
    t.equal(String(await bytesOf(found)), 'x')
    await source.close()
    await server.close()
  }
})

t.test('statuses: only 404 and its like mean unknown', async (t) => {
  for (const [status, reason, headers] of [
    [404, 'unknown'],
    [404, 'unsure', { 'retry-after': '10' }],
    [410, 'unknown'],
    [410, 'unsure', { 'retry-after': '10' }],
    [500, 'upstream'],
    [429, 'upstream'],
    [302, 'upstream'],
    [204, 'upstream'],
  ] as const) {
    const server = await upstream((_, response) => response.writeHead(status, headers).end())
    const source = gateways([server.url])
    const refusal = await source.open(wanted(), never)
    const isUnsure = isRefusal(refusal) && refusal.isUnsure === true
    t.equal(isUnsure ? 'unsure' : isRefusal(refusal) && refusal.refused, reason, `${status}`)
    await source.close()
    await server.close()
  }
})

t.test('a gateway that cannot be reached outweighs one that has nothing', async (t) => {
  const gone = await upstream(() => undefined)
  await gone.close()
  const empty = await upstream((_, response) => response.writeHead(404).end())
  const source = gateways([gone.url, empty.url])
  const refusal = await source.open(wanted(), never)
  t.equal(isRefusal(refusal) && refusal.refused, 'upstream')
  t.equal(empty.requests.length, 1)
  await source.close()
  await empty.close()
})

t.test('an answer whose length is missing, zero or unusable is refused', async (t) => {
  for (const headers of [{}, { 'content-length': '0' }]) {
    const server = await upstream((_, response) => {
      response.writeHead(200, headers)
      response.end('content-length' in headers ? undefined : 'chunked')
    })
    const source = gateways([server.url])
    const refusal = await source.open(wanted(), never)
    t.equal(isRefusal(refusal) && refusal.refused, 'upstream')
    await source.close()
    await server.close()
  }
})

t.test('windows: exact ranges, ranges cut here, and wrong ranges', async (t) => {
  const body = randomBytes(5000)
  const answers: [string, (start: number, end: number) => [number, string | undefined, Buffer], string][] = [
    ['exact', (a, b) => [206, `bytes ${a}-${b}/5000`, body.subarray(a, b + 1)], 'bytes'],
    ['whole', () => [200, undefined, body], 'bytes'],
    ['other', (a, b) => [206, `bytes ${a + 1}-${b + 1}/5000`, body.subarray(a, b + 1)], 'upstream'],
    ['short', (a, b) => [206, `bytes ${a}-${b}/5000`, body.subarray(a, b)], 'upstream'],
    ['star', (a, b) => [206, `bytes ${a}-${b}/*`, body.subarray(a, b + 1)], 'upstream'],
    ['outside', () => [416, 'bytes */5000', Buffer.alloc(0)], 'unsatisfiable'],
  ]
  for (const [name, answer, outcome] of answers) {
    const server = await upstream((request, response) => {
      t.equal(request.headers.range, 'bytes=1000-1999')
      const [status, range, bytes] = answer(1000, 1999)
      response.writeHead(status, { 'content-length': bytes.length, ...(range && { 'content-range': range }) })
      response.end(bytes)
    })
    const source = gateways([server.url])
    const found = await source.open(wanted({ window: { start: 1000, end: 1999 } }), never)
    const got = await bytesOf(found)
    if (isRefusal(got)) t.equal(got.refused, outcome, name)
    else {
      t.equal(outcome, 'bytes', name)
      t.ok(got.equals(body.subarray(1000, 2000)), name)
      t.equal(!isRefusal(found) && found.sizeBytes, 5000)
    }
    await source.close()
    await server.close()
  }
})

t.test('a window of a payload of unknown size ends with it', async (t) => {
  const body = randomBytes(5000)
  const part = (start: number, end: number): [number, string, Buffer] => {
    return [206, `bytes ${start}-${end}/5000`, body.subarray(start, end + 1)]
  }
  const open = Number.MAX_SAFE_INTEGER
  const answers: [string, number, string, [number, string, Buffer], string | Buffer][] = [
    ['beyond the end', 7000, 'bytes=4000-7000', part(4000, 4999), body.subarray(4000)],
    ['no end', open, 'bytes=4000-', part(4000, 4999), body.subarray(4000)],
    ['inside', 4500, 'bytes=4000-4500', part(4000, 4500), body.subarray(4000, 4501)],
    ['the whole instead', 7000, 'bytes=4000-7000', [200, '', body], body.subarray(4000)],
    ['too short', open, 'bytes=4000-', part(4000, 4998), 'upstream'],
    ['another start', open, 'bytes=4000-', part(4001, 4999), 'upstream'],
    ['outside', open, 'bytes=4000-', [200, '', body.subarray(0, 4000)], 'unsatisfiable'],
  ]
  for (const [name, end, line, [status, range, bytes], outcome] of answers) {
    const server = await upstream((request, response) => {
      t.equal(request.headers.range, line, name)
      response.writeHead(status, {
        'content-length': bytes.length,
        ...(range === '' ? {} : { 'content-range': range }),
      })
      response.end(bytes)
    })
    const source = gateways([server.url])
    const found = await source.open(wanted({ window: { start: 4000, end, mayEndEarlier: true } }), never)
    const got = await bytesOf(found)
    if (isRefusal(got)) t.equal(got.refused, outcome, name)
    else t.same(got, outcome, name)
    await source.close()
    await server.close()
  }
})

t.test('a body that is taken at once is whole, or refused as when it is read piece by piece', async (t) => {
  const body = randomBytes(30_000)
  const acts: Readonly<Record<string, (response: ServerResponse) => void>> = {
    'in pieces': (response) => {
      response.write(body.subarray(0, 10))
      setTimeout(() => response.end(body.subarray(10)), 30)
    },
    'in one piece': (response) => response.end(body),
    broken: (response) => response.write(body.subarray(0, 20_000), () => response.destroy()),
    silent: (response) => response.write(body.subarray(0, 20_000)),
  }
  for (const [name, act] of Object.entries(acts)) {
    const server = await upstream((_, response) => {
      response.writeHead(200, { 'content-length': body.length })
      act(response)
    })
    const source = gateways([server.url], true, name === 'silent' ? 300 : 30_000)
    const found = await source.open(wanted(), never)
    if (isRefusal(found) || found.collect === undefined) throw new Error(name)
    // Some of it may be here before it is asked for.
    if (name === 'in one piece') await pause(50)
    const all = await found.collect(body.length)
    if (isRefusal(all)) t.equal(all.refused, name === 'silent' ? 'late' : 'upstream', name)
    else t.ok(Buffer.concat(all).equals(body) && name.startsWith('in '), name)
    const less = await source.open(wanted(), never)
    if (isRefusal(less) || less.collect === undefined) throw new Error(name)
    t.match(await less.collect(19_999), { refused: 'upstream', message: 'the body is too long' })
    await source.close()
    await server.close()
  }
})

t.test('a socket is kept over a pause of seconds, where the gateway names no time', async (t) => {
  let sockets = 0
  const server = createServer((socket) => {
    sockets += 1
    socket.on('error', () => undefined)
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const source = gateways([`http://127.0.0.1:${(server.address() as AddressInfo).port}`])
  for (let turn = 0; turn < 2; turn += 1) {
    t.equal(String(await bytesOf(await source.open(wanted(), never))), 'fine')
    // Longer than undici keeps a socket of itself: no test turns the clock of either client.
    await pause(turn === 0 ? 5500 : 0)
  }
  t.equal(sockets, 1)
  await source.close()
  server.close()
})

t.test('an idle socket that the gateway closed is no failure', async (t) => {
  let answered = 0
  const server = await upstream((request, response) => {
    answered += 1
    if (answered === 2) return void request.socket.destroy()
    response.end('fine')
  })
  const source = gateways([server.url])
  t.equal(String(await bytesOf(await source.open(wanted(), never))), 'fine')
  t.equal(String(await bytesOf(await source.open(wanted(), never))), 'fine')
  t.equal(answered, 3)
  await source.close()
  await server.close()
})

t.test('a gateway that sends too slowly is given up, one that is slow but fast enough is not', async (t) => {
  const piece = Buffer.alloc(4096, 'x')
  const [clock, responses]: [HandClock, ServerResponse[]] = [new HandClock(), []]
  const server = await upstream((_, response) => {
    response.writeHead(200, { 'content-length': 10 * piece.length }).flushHeaders()
    responses.push(response)
  })
  const source = gateways([server.url], true, 2000, 10_000, clock)
  /** Opens a body of which so much is sent each 100 ms; its bytes at the end, or why it ended. */
  const received = async (bytes: Buffer): Promise<number | Refusal> => {
    const found = await source.open(wanted(), never)
    if (isRefusal(found)) return found
    let [count, sent] = [0, 0]
    let end: number | Refusal | undefined
    const read = async (): Promise<void> => {
      for await (const one of found.body) {
        if (isRefusal(one)) end = one
        else count += one.length
      }
      end ??= count
    }
    const reading = read()
    while (end === undefined && sent < 10 * piece.length) {
      sent += bytes.length
      await new Promise((resolve) => responses.at(-1)?.write(bytes, resolve))
      await clock.turn(100)
    }
    await reading
    return end ?? count
  }
  t.match(await received(Buffer.from('x')), { refused: 'late' })
  t.equal(await received(piece), 10 * piece.length)
  await source.close()
  await server.close()
})

t.test('an aborted opening ends at once', async (t) => {
  const server = await upstream(() => undefined)
  const source = gateways([server.url])
  const abort = new AbortController()
  const opening = source.open(wanted(), abort.signal)
  setTimeout(() => abort.abort(), 20)
  const refusal = await opening
  t.equal(isRefusal(refusal) && refusal.refused, 'late')
  await source.close()
  await server.close()
})

t.test('a silent gateway delays one request a little, and then comes behind the others', async (t) => {
  let isLeft: (() => void) | undefined
  const left = new Promise<void>((resolve) => {
    isLeft = resolve
  })
  const silent = await upstream((request) => request.socket.once('close', () => isLeft?.()))
  const second = await upstream((_, response) => response.end('x'))
  const clock = new HandClock()
  const source = gateways([silent.url, second.url], true, 30_000, 10_000, clock)
  const first = source.open(wanted(), never)
  await eventually('the first one is queried', () => silent.requests.length > 0)
  await clock.turn(499)
  t.equal(second.requests.length, 0, 'the first one has some time')
  await clock.turn(1)
  t.same(await bytesOf(await first), Buffer.from('x'), 'the second one was queried beside it')
  await left
  // Time stands still: the second one never takes so long that the first one is queried beside it.
  for (let more = 0; more < 3; more += 1) await bytesOf(await source.open(wanted(), never))
  t.equal(silent.requests.length, 1, 'who is silent is not queried before one that answers')
  t.equal(second.requests.length, 4)
  await source.close()
  await Promise.all([silent.close(), second.close()])
})

t.test('beside a silent gateway all others are queried, and its silence is no 404', async (t) => {
  const silent = await upstream(() => undefined)
  const [one, other] = await Promise.all([0, 1].map(() => upstream(answers404)))
  if (one === undefined || other === undefined) throw new Error('no servers')
  const source = gateways([silent.url, one.url, other.url], true, 30_000, 1500)
  const refusal = await source.open(wanted(), never)
  t.equal(isRefusal(refusal) && refusal.refused, 'late')
  t.same(
    [silent, one, other].map(({ requests }) => requests.length),
    [1, 1, 1],
  )
  await source.close()
  await Promise.all([silent.close(), one.close(), other.close()])
})

t.test('a lone silent gateway is queried each time, for a shorter time', async (t) => {
  let isBack = false
  const server = await upstream((_, response) => (isBack ? response.end('x') : undefined))
  const clock = new HandClock()
  const source = gateways([server.url], true, 30_000, 3000, clock)
  for (const [times, ms] of [
    [1, 3000],
    [2, 2000],
  ] as const) {
    const opening = watched(source.open(wanted(), never))
    await eventually('it is queried', () => server.requests.length === times)
    await clock.turn(ms - 1)
    t.notOk(opening.isOver, `not before ${ms} ms`)
    await clock.turn(1)
    t.match(await opening.outcome, { refused: 'late' })
  }
  isBack = true
  t.same(await bytesOf(await source.open(wanted(), never)), Buffer.from('x'))
  await source.close()
  await server.close()
})

t.test('gateways that were all silent about one id are waited for with the next', async (t) => {
  const cold = someId()
  const late: ServerResponse[] = []
  const respond = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.url?.includes(cold) === true) late.push(response)
  }
  const servers = await Promise.all([0, 1].map(() => upstream(respond)))
  const urls = servers.map(({ url }) => url)
  const clock = new HandClock()
  const source = gateways(urls, true, 30_000, 10_000, clock)
  const queried = (times: number): Promise<boolean> =>
    eventually('both are queried', () => servers.every(({ requests }) => requests.length === times))
  const first = source.open(wanted(), never)
  await clock.turn(500)
  await queried(1)
  await clock.turn(10_000)
  t.match(await first, { refused: 'late' }, 'a stranger makes both silent')
  const second = watched(source.open(wanted({ id: cold }), never))
  await clock.turn(500)
  await queried(2)
  await clock.turn(2500)
  t.notOk(second.isOver, 'a head after 3 s, later than the short limit of 2 s')
  for (const response of late) response.end('x')
  t.same(await bytesOf(await second.outcome), Buffer.from('x'))
  await source.close()
  await Promise.all(servers.map((server) => server.close()))
})

t.test('a silent gateway is waited for shortly where one that answers has nothing', async (t) => {
  const mute = (): undefined => undefined
  const servers = await Promise.all([mute, mute, answers404].map((respond) => upstream(respond)))
  const [one, other, third] = servers
  if (one === undefined || other === undefined || third === undefined) throw new Error('no servers')
  const clock = new HandClock()
  const source = gateways([one.url, other.url, third.url], true, 30_000, 20_000, clock)
  const queried = (server: typeof one, times: number): Promise<boolean> =>
    eventually('it is queried', () => server.requests.length === times)
  const first = source.open(wanted(), never)
  await clock.turn(500)
  await queried(other, 1)
  await clock.turn(19_500)
  await queried(third, 1)
  await clock.turn(500)
  t.match(await first, { refused: 'late' })
  const second = watched(source.open(wanted({ avoid: new Set([third.url]) }), never))
  await clock.turn(500)
  await queried(other, 2)
  await clock.turn(9499)
  t.notOk(second.isOver, 'both have half of the longest wait')
  await clock.turn(1)
  t.ok(isRefusal(await second.outcome))
  const last = source.open(wanted(), never)
  await queried(third, 2)
  await queried(one, 3)
  await clock.turn(500)
  await queried(other, 3)
  await clock.turn(2000)
  t.ok(isRefusal(await last), 'both had the short limit')
  t.equal(third.requests.length, 2)
  await source.close()
  await Promise.all(servers.map((server) => server.close()))
})

function answers404(_: unknown, response: ServerResponse): void {
  response.statusCode = 404
  response.end()
}

t.test('a large body comes whole, however slowly its pieces are read', async (t) => {
  const body = randomBytes(5_000_000)
  const server = await upstream((_, response) => {
    response.writeHead(200, { 'content-length': body.length })
    response.end(body)
  })
  const source = gateways([server.url])
  const found = await source.open(wanted(), never)
  if (isRefusal(found)) throw new Error(found.message)
  const pieces: Uint8Array[] = []
  for await (const piece of found.body) {
    if (isRefusal(piece)) throw new Error(piece.message)
    // Others arrive while this one is read.
    await new Promise((resolve) => setTimeout(resolve, 2))
    pieces.push(new Uint8Array(piece))
  }
  t.ok(Buffer.concat(pieces).equals(body))
  await source.close()
  await server.close()
})

t.test('the number of hops of a request is no part of that of the answer', async (t) => {
  // As gateways in use do: they repeat the number of the request.
  const server = await upstream((request, response) => {
    response.setHeader('X-AR-IO-Hops', request.headers['x-ar-io-hops'] ?? '')
    response.end('x')
  })
  const source = gateways([server.url])
  for (const hops of [0, 1, 2]) {
    const found = await source.open(wanted({ provenance: { ...trail, hops } }), never)
    if (isRefusal(found)) throw new Error(found.message)
    t.equal(found.hops, 1)
    await bytesOf(found)
  }
  await source.close()
  await server.close()
})

t.test('bodies that one client reads slowly leave sockets to the gateway for others', async (t) => {
  const known = someId()
  const server = await upstream((request, response) => {
    const isKnown = request.url?.endsWith(known) === true
    response.writeHead(200, { 'content-length': isKnown ? 4 : 1_000_000 })
    if (isKnown) response.end('here')
    else response.write('here')
  })
  const clock = new HandClock()
  const source = gateways([server.url], true, 30_000, 2000, clock)
  const ending = new AbortController()
  // All requests of this test share it, while those of the program have one each.
  setMaxListeners(0, ending.signal)
  const opened: (Found | Refusal)[] = []
  const greedy = Array.from({ length: 64 }, () =>
    source.open(wanted({ client: '10.0.0.1' }), ending.signal).then((found) => opened.push(found)),
  )
  for (const client of ['192.0.2.1', '198.51.100.1'])
    t.strictSame(await bytesOf(await source.open(wanted({ id: known, client }), never)), Buffer.from('here'))
  await eventually('half of the sockets are in use', () => opened.length === 8)
  await clock.turn(2000)
  await Promise.all(greedy)
  t.equal(opened.filter((found) => !isRefusal(found)).length, 8, 'half of the sockets')
  t.match(opened.at(-1), { refused: 'busy', fault: 'self' }, 'the others have waited for a turn')
  t.equal(server.requests.length, 10)
  t.strictSame(await bytesOf(await source.open(wanted({ id: known }), never)), Buffer.from('here'))
  ending.abort()
  await source.close()
  await server.close()
})
