/** Answers that are read from the socket without `fetch`: plain ones, and everything that only looks like one. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import { pause } from '../../src/actor/clock.js'
import { besideFetch } from '../../src/client/beside-fetch.js'
import { directHead, endOfHead } from '../../src/client/fetch/direct-head.js'
import { Gateways } from '../../src/client/fetch/gateways.js'
import { platformFetch } from '../../src/client/platform-fetch.js'
import { codeOf, serving } from './rig.js'

interface Server {
  readonly url: string
  connections: number
  questions: number
}

/** Says to each question what `answer` writes. */
async function raw(
  t: Test,
  answer: (socket: Socket, questions: number) => void | Promise<void>,
): Promise<Server> {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    counted.connections++
    open.add(socket)
    socket.on('error', () => open.delete(socket))
    socket.on('data', (text) => {
      // Each question comes in one piece here.
      t.match(text.toString(), /^GET \/x HTTP\/1\.1\r\n[\s\S]*\r\n\r\n$/)
      counted.questions++
      Promise.resolve(answer(socket, counted.questions)).catch((error: Error) => socket.destroy(error))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const counted: Server = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: 0,
    questions: 0,
  }
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return counted
}

const head = (length: number, more = ''): string =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n${more}\r\n`

async function held(gateways: Gateways, url: string, bytesMax = 1e8, signal?: AbortSignal) {
  const answer = await gateways.whole(`${url}/x`, bytesMax, signal)
  const seen: Uint8Array[] = []
  const bytes = Buffer.from(await answer.held((piece) => void seen.push(new Uint8Array(piece))))
  t.ok(Buffer.concat(seen).equals(bytes), 'every byte is shown once, in order')
  return { isDirect: answer.isDirect, bytes }
}

const content = Buffer.alloc(3_000_000, 'content that is long enough for several reads ')

t.test('a plain answer is read into its place, however it is cut', async (t) => {
  const pieces = await raw(t, async (socket) => {
    for (const char of head(5)) {
      socket.write(char)
      await pause(1)
    }
    socket.write('he')
    await pause(5)
    socket.write('llo')
  })
  const gateways = new Gateways({ gatewayUrls: [pieces.url] })
  const one = await held(gateways, pieces.url)
  t.strictSame([one.isDirect, one.bytes.toString()], [true, 'hello'])

  const long = await raw(
    t,
    (socket) => void socket.write(Buffer.concat([Buffer.from(head(content.length)), content])),
  )
  for (let round = 0; round < 3; round++) {
    const { isDirect, bytes } = await held(gateways, long.url)
    t.ok(isDirect && bytes.equals(content))
  }
  t.equal(long.connections, 1, 'its connection is used again')
  const both = await Promise.all([held(gateways, long.url), held(gateways, long.url)])
  t.ok(both.every(({ bytes }) => bytes.equals(content)))

  const empty = await raw(t, (socket) => void socket.write(head(0)))
  t.equal((await held(gateways, empty.url)).bytes.length, 0)
})

t.test('what is not plain is left to fetch, from then on at once', async (t) => {
  const chunked = 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'
  const answers: Record<string, string> = {
    chunks: `HTTP/1.1 200 OK\r\n${chunked}`,
    'an interim answer': `HTTP/1.1 103 Early Hints\r\n\r\n${head(5)}hello`,
    'a length that is told twice': `${head(5, 'Content-Length: 5\r\n')}hello`,
    'bytes behind its end': `${head(5)}hello, and more`,
  }
  for (const [name, text] of Object.entries(answers)) {
    const server = await raw(t, (socket) => void socket.end(text))
    const gateways = new Gateways({ gatewayUrls: [server.url] })
    for (const questions of [2, 3]) {
      const answer = await gateways.whole(`${server.url}/x`, 1000).catch((error: Error) => error)
      if (answer instanceof Error)
        t.match(answer.message, /did not answer/, `${name}: fetch does not read it either`)
      else t.equal(Buffer.from(await answer.held(() => undefined)).toString(), 'hello', name)
      t.equal(server.questions, questions)
    }
  }
})

t.test('statuses, and what is too long', async (t) => {
  const absent = await raw(
    t,
    (socket) => void socket.write('HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno'),
  )
  const gateways = new Gateways({ gatewayUrls: [absent.url] })
  t.equal(await codeOf(gateways.whole(`${absent.url}/x`, 1000)), 'not-found')
  t.equal(absent.questions, 1)
  const long = await raw(t, (socket) => void socket.write(head(2000)))
  const answer = await gateways.whole(`${long.url}/x`, 1000)
  t.equal(answer.headers.get('content-length'), '2000')
  await answer.drop()
})

t.test('a gateway that breaks off, says nothing, or says too little', async (t) => {
  const broken = await raw(t, (socket) => void socket.end(`${head(10)}hello`))
  const gateways = new Gateways({ gatewayUrls: [broken.url], patienceMs: 300 })
  t.equal(await codeOf(held(gateways, broken.url)), 'unavailable')
  t.equal(broken.questions, 1, 'half a body is told, and not asked for again here')
  for (const sent of ['', 'HTTP/1.1 200 OK\r\nConte', `${head(10)}hello`]) {
    const silent = await raw(t, (socket) => void socket.write(sent))
    t.equal(await codeOf(held(gateways, silent.url)), 'unavailable', `after ${sent.length} characters`)
    t.equal(silent.questions, 1)
  }
  const trickle = await raw(t, async (socket) => {
    socket.write(head(1000))
    for (let at = 0; at < 100 && !socket.destroyed; at++) {
      socket.write('.')
      await pause(50)
    }
  })
  t.equal(await codeOf(held(gateways, trickle.url)), 'unavailable')
  const slow = await raw(t, async (socket) => {
    for (const char of 'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n') {
      if (!socket.destroyed) socket.write(char)
      await pause(20)
    }
  })
  t.equal(await codeOf(held(gateways, slow.url)), 'unavailable', 'a head that comes byte by byte')
  t.equal(await codeOf(held(gateways, 'http://127.0.0.1:1')), 'unavailable')
})

t.test('a connection that ended meanwhile costs nothing, and the caller can stop', async (t) => {
  const once = await raw(t, async (socket, questions) => {
    if (questions === 2) return void socket.destroy()
    socket.write(`${head(5)}hello`)
  })
  const gateways = new Gateways({ gatewayUrls: [once.url] })
  await held(gateways, once.url)
  const second = await held(gateways, once.url)
  t.strictSame([second.isDirect, second.bytes.toString()], [false, 'hello'])
  t.ok((await held(gateways, once.url)).isDirect, 'the next one is direct again')

  for (const sent of ['', `${head(10)}hello`]) {
    const silent = await raw(t, (socket) => void socket.write(sent))
    const controller = new AbortController()
    const code = codeOf(held(gateways, silent.url, 1000, controller.signal))
    await pause(50)
    controller.abort()
    t.equal(await code, 'aborted')
  }
  const controller = new AbortController()
  const code = codeOf(held(new Gateways({ gatewayUrls: [once.url] }), once.url, 1000, controller.signal))
  controller.abort()
  t.equal(await code, 'aborted', 'before the connection is made')
})

t.test('a length for which there is no memory is a failure of that answer', async (t) => {
  const vast = await raw(t, (socket) => void socket.write(head(10 ** 15 - 1)))
  const gateways = new Gateways({ gatewayUrls: [vast.url] })
  t.equal(await codeOf(held(gateways, vast.url, Number.MAX_SAFE_INTEGER)), 'too-large')
})

t.test('a dispatcher of the program sends every request', async (t) => {
  const server = await raw(t, (socket) => void socket.write(`${head(5)}hello`))
  const gateways = new Gateways({ gatewayUrls: [server.url] })
  const usual = getGlobalDispatcher()
  t.teardown(() => setGlobalDispatcher(usual))
  const [proxied, plain] = [new Agent({ connect: { timeout: 60_000 } }), new Agent()]
  // What is composed has the Agent's name, and does other things.
  const composed = plain.compose((dispatch) => (options, handler) => dispatch(options, handler))
  for (const [one, isDirect] of [
    [proxied, false],
    [composed, false],
    [plain, true],
  ] as const) {
    setGlobalDispatcher(one)
    t.equal((await held(gateways, server.url)).isDirect, isDirect)
  }
  await Promise.all([proxied.close(), plain.close()])
})

t.test('where the program replaced fetch, everything goes there', async (t) => {
  const server = await raw(t, (socket) => void socket.write(`${head(5)}hello`))
  const gateways = new Gateways({ gatewayUrls: [server.url] })
  const usual = globalThis.fetch
  globalThis.fetch = async () => new Response('other')
  try {
    t.equal((await held(gateways, server.url)).bytes.toString(), 'other')
    t.equal(besideFetch('node:net', globalThis.fetch), undefined, 'before the client was loaded, too')
  } finally {
    globalThis.fetch = usual
  }
  const given = new Gateways({ gatewayUrls: [server.url], fetch: async () => new Response('given') })
  t.equal((await held(given, server.url)).bytes.toString(), 'given')
  t.ok((await held(gateways, server.url)).isDirect)
})

t.test('heads that are not well-formed', async (t) => {
  const read = (text: string) => directHead(Buffer.from(text, 'latin1'))
  t.equal(read('HTTP/1.1 200 OK\r\nA: b\r\ncontent-length:7\r\n\r\n')?.length, 7)
  t.equal(read('HTTP/1.1 206\r\nContent-Length: 7\r\nConnection: Close\r\n\r\n')?.isLasting, false)
  for (const text of [
    'HTTP/1.0 200 OK\r\nContent-Length: 1',
    'HTTP/1.1 200 OK\r\nContent-Length: +1',
    'HTTP/1.1 200 OK\r\nContent-Length: 1, 1',
    'HTTP/1.1 200 OK\r\nContent-Length : 1',
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n folded',
    'HTTP/1.1 200 OK\r\nContent-Length: 1\nA: b',
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nA: \0',
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Encoding: gzip',
    'HTTP/1.1 301 Moved\r\nContent-Length: 1',
    'HTTP/1.1 200 OK',
  ])
    t.equal(read(`${text}\r\n\r\n`), undefined, JSON.stringify(text))
  const bytes = Buffer.from('HTTP/1.1 200 OK\r\n\r\nbody')
  t.equal(endOfHead(bytes, 0), 19)
  t.equal(endOfHead(bytes.subarray(0, 18), 0), undefined)
})

t.test('a long body is sent as it lies in memory, and an answer is an answer', async (t) => {
  const body = new Uint8Array(2_000_000).fill(7)
  let came = 0
  const { url } = await serving(t, ({ method, path, body: got, headers }) => {
    came = got.length
    if (path === '/cut') return { cut: true }
    if (path === '/moved') return { status: 307, headers: { location: 'http://127.0.0.1:1/' }, text: '' }
    if (path === '/empty') return { status: 204, text: '' }
    return {
      json: { method, length: headers['content-length'], own: headers['x-own'] },
      headers: { 'x-told': 'yes' },
    }
  })
  const post = (path: string, signal?: AbortSignal) =>
    platformFetch(url + path, {
      method: 'POST',
      headers: { 'x-own': '1' },
      body,
      redirect: 'manual',
      ...(signal && { signal }),
    })
  const answer = await post('/')
  t.strictSame(await answer.json(), { method: 'POST', length: '2000000', own: '1' })
  t.equal(answer.headers.get('x-told'), 'yes')
  t.equal(came, body.length)
  t.equal((await post('/moved')).headers.get('location'), 'http://127.0.0.1:1/', 'and is not followed')
  t.equal((await post('/empty')).status, 204)
  await t.rejects(post('/cut'), { message: 'the request failed' })
  await t.rejects(platformFetch('http://127.0.0.1:1/', { method: 'POST', body }), {
    message: 'the request failed',
  })

  const odd = await serving(t, () => ({ status: 999, text: '' }))
  await t.rejects(platformFetch(odd.url, { method: 'POST', body }), { cause: { message: /status 999/ } })

  const silent = await serving(t, () => new Promise(() => undefined))
  const controller = new AbortController()
  const waiting = platformFetch(`${silent.url}/x`, { method: 'POST', body, signal: controller.signal })
  await pause(50)
  controller.abort()
  await t.rejects(waiting)
  await t.rejects(platformFetch(`${silent.url}/x`, { method: 'POST', body, signal: controller.signal }))
})
