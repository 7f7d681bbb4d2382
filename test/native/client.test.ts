import { connect, createServer, type Server, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import {
  type Answering,
  type AnswerLines,
  type OpenQuestion,
  PlainClient,
} from '../../native/client/client.js'
import { pause } from '../../src/actor/clock.js'
import { eventually } from '../eventually.js'

/** What was heard of one question. */
class Heard implements Answering {
  status = 0
  lines: AnswerLines = {}
  heads = 0
  came = 0
  body = Buffer.alloc(0)
  pieces = 0
  ends = 0
  error: Error | undefined
  readonly over: Promise<this>
  onFirst: (() => void) | undefined
  #tell: (over: this) => void = () => undefined

  constructor() {
    this.over = new Promise((resolve) => {
      this.#tell = resolve
    })
  }

  onHead(status: number, lines: AnswerLines): void {
    this.status = status
    this.lines = lines
    this.heads += 1
  }

  onCame(bytes: number): void {
    this.came += bytes
  }

  memoryFor(length: number): Uint8Array {
    return Buffer.allocUnsafe(length)
  }

  onPiece(piece: Uint8Array): void {
    this.body = Buffer.concat([this.body, piece])
    this.pieces += 1
    this.onFirst?.()
  }

  onEnd(): void {
    this.ends += 1
    this.#tell(this)
  }

  onError(error: Error): void {
    this.error = error
    this.#tell(this)
  }
}

/** A server that hands each request's head, the number of the connection, and the socket to `act`. */
async function raw(act: (socket: Socket, head: string, connection: number) => void) {
  const sockets = new Set<Socket>()
  let connections = 0
  const server: Server = createServer((socket) => {
    connections += 1
    const own = connections
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        const head = text.slice(0, end)
        text = text.slice(end + 4)
        act(socket, head, own)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    sockets,
    get connections() {
      return connections
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function asking(port: number, connectionsMax = 4, wholeMaxBytes = 65_536) {
  const client = new PlainClient({ names: ['content-type', 'x-word'], connectionsMax, wholeMaxBytes })
  const origin = client.origin()
  client.locate(origin, ['127.0.0.1'], port)
  return {
    client,
    origin,
    ask(path = '/', method = 'GET'): { heard: Heard; asked: OpenQuestion } {
      const heard = new Heard()
      const head = `${method} ${path} HTTP/1.1\r\nhost: there\r\n\r\n`
      return { heard, asked: client.ask(origin, head, method === 'HEAD', heard) }
    },
  }
}

const skip = PlainClient.isThere ? false : 'the addon is not here'

/** Answers, each followed by nothing more: the socket stays open. What is heard of it. */
const sound: Readonly<Record<string, { answer: string; status: number; body: string; method?: string }>> = {
  'a length': { answer: 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc', status: 200, body: 'abc' },
  'no reason, and no space': {
    answer: 'HTTP/1.1 200\r\ncontent-length:3\r\n\r\nabc',
    status: 200,
    body: 'abc',
  },
  chunks: {
    answer:
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nTrailer: 1\r\n\r\n',
    status: 200,
    body: 'abc',
  },
  'words before it': {
    answer:
      'HTTP/1.1 103 Early\r\nLink: </>\r\n\r\nHTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na',
    status: 200,
    body: 'a',
  },
  'no content': { answer: 'HTTP/1.1 204 None\r\n\r\n', status: 204, body: '' },
  'not modified, with a length': {
    answer: 'HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n',
    status: 304,
    body: '',
  },
  'the head alone': {
    answer: 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n',
    status: 200,
    body: '',
    method: 'HEAD',
  },
  'a redirect': {
    answer: 'HTTP/1.1 302 There\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n',
    status: 302,
    body: '',
  },
}

for (const [name, { answer, status, body, method }] of Object.entries(sound))
  t.test(`an answer is read, and its connection used again: ${name}`, { skip }, async (t) => {
    for (const cut of [answer.length, 1, 7]) {
      const server = await raw((socket, _, connection) => {
        socket.setNoDelay(true)
        void (async () => {
          for (let at = 0; at < answer.length && connection === 1; at += cut) {
            socket.write(answer.slice(at, at + cut), 'latin1')
            if (cut < answer.length) await pause(0)
          }
        })()
      })
      const { client, ask } = asking(server.port)
      for (let turn = 0; turn < 2; turn += 1) {
        const heard = await ask('/', method).heard.over
        t.equal(heard.error, undefined)
        t.match(heard, { status, heads: 1, ends: 1 })
        t.equal(heard.body.toString(), body)
      }
      t.equal(server.connections, 1)
      client.destroy()
      await server.close()
    }
  })

const big = 'x'.repeat(40_000)

const unsound: Readonly<Record<string, string>> = {
  'no status line': 'HTP/1.1 200 OK\r\n\r\n',
  'version 2': 'HTTP/2.0 200 OK\r\n\r\n',
  'a status of two digits': 'HTTP/1.1 20 OK\r\nContent-Length: 1\r\n\r\na',
  'a status that is none': 'HTTP/1.1 600 OK\r\nContent-Length: 1\r\n\r\na',
  'another protocol': 'HTTP/1.1 101 Other\r\n\r\n',
  'a bare line feed': 'HTTP/1.1 200 OK\nContent-Length: 1\r\n\r\na',
  'a folded line': 'HTTP/1.1 200 OK\r\nX-Word: a\r\n b\r\nContent-Length: 1\r\n\r\na',
  'a space before the colon': 'HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\na',
  'a line without a name': 'HTTP/1.1 200 OK\r\n: 1\r\nContent-Length: 1\r\n\r\na',
  'a zero in a value': 'HTTP/1.1 200 OK\r\nX-Word: a\0b\r\nContent-Length: 1\r\n\r\na',
  'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na',
  'a length that is none': 'HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na',
  'a length with a sign': 'HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na',
  'a length without end': `HTTP/1.1 200 OK\r\nContent-Length: ${'9'.repeat(16)}\r\n\r\na`,
  'a length and chunks': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\na',
  'another coding': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\na',
  'chunks in HTTP/1.0': 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'a bad chunk': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n',
  'a head without end': `HTTP/1.1 200 OK\r\nX-Word: ${big}`,
  'a large head': `HTTP/1.1 200 OK\r\nX-Word: ${big}\r\nContent-Length: 1\r\n\r\na`,
  'too many lines': `HTTP/1.1 200 OK\r\n${'X-Word: a\r\n'.repeat(201)}Content-Length: 1\r\n\r\na`,
  'words without end': 'HTTP/1.1 103 Early\r\n\r\n'.repeat(9),
}

for (const [name, answer] of Object.entries(unsound))
  t.test(`an answer is refused: ${name}`, { skip }, async (t) => {
    const server = await raw((socket) => socket.write(answer, 'latin1'))
    const { client, ask } = asking(server.port)
    const { error, ends, body } = await ask().heard.over
    t.match(error, { code: 'EBADMSG' })
    t.equal(ends, 0)
    t.ok(body.length <= 1)
    await eventually('its connection is closed', () => server.sockets.size === 0)
    client.destroy()
    await server.close()
  })

t.test(
  'a body without length ends with its connection, and a shorter one than its length breaks',
  { skip },
  async (t) => {
    const server = await raw((socket, head) => {
      if (head.includes('/open')) socket.end('HTTP/1.1 200 OK\r\n\r\nabc')
      else if (head.includes('/reset'))
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc', () => socket.resetAndDestroy())
      else if (head.includes('/chunks'))
        socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc')
      else if (head.includes('/head')) socket.end('HTTP/1.1 200 OK\r\nContent-')
      else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc')
    })
    const { client, ask } = asking(server.port)
    const whole = await ask('/open').heard.over
    t.match(whole, { ends: 1, error: undefined })
    t.equal(whole.body.toString(), 'abc')
    for (const path of ['/short', '/reset', '/chunks', '/head']) {
      const heard = await ask(path).heard.over
      t.ok(heard.error instanceof Error, path)
      t.equal(heard.ends, 0, path)
    }
    client.destroy()
    await server.close()
  },
)

t.test('bytes behind an answer are nobody’s: the connection is not used again', { skip }, async (t) => {
  const server = await raw((socket, head) => {
    const length = head.includes('/late') ? 1 : 2
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\nab`)
    if (length === 1) return
    setTimeout(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz'), 20)
  })
  const { client, ask } = asking(server.port)
  t.equal((await ask('/late').heard.over).body.toString(), 'a')
  t.equal((await ask().heard.over).body.toString(), 'ab')
  t.equal(server.connections, 2, 'after a body that is too long')
  await pause(60)
  t.equal((await ask().heard.over).body.toString(), 'ab')
  t.equal(server.connections, 3, 'after an answer that nobody asked for')
  client.destroy()
  await server.close()
})

t.test(
  'a question on a kept connection that was closed is asked once more, on a new one',
  { skip },
  async (t) => {
    const server = await raw((socket, head, connection) => {
      if (head.includes('/first')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na')
      else if (connection === 1) socket.resetAndDestroy()
      else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb')
    })
    const { client, ask } = asking(server.port)
    await ask('/first').heard.over
    const heard = await ask('/second').heard.over
    t.equal(heard.error, undefined)
    t.equal(heard.body.toString(), 'b')
    t.equal(server.connections, 2)
    client.destroy()
    await server.close()
  },
)

t.test('what breaks on a new connection, or after a byte, is not asked again', { skip }, async (t) => {
  let questions = 0
  const server = await raw((socket, head) => {
    questions += 1
    if (head.includes('/first')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na')
    else if (head.includes('/byte')) socket.end('H')
    else socket.resetAndDestroy()
  })
  const { client, ask } = asking(server.port)
  t.ok((await ask('/new').heard.over).error)
  await ask('/first').heard.over
  t.ok((await ask('/byte').heard.over).error)
  t.equal(questions, 3)
  client.destroy()
  await server.close()
})

t.test(
  'a large body comes in pieces; the socket is left to fill while nobody wants more',
  { skip },
  async (t) => {
    const sizeBytes = 32 * 1024 * 1024
    let written = 0
    const piece = Buffer.alloc(64 * 1024, 'p')
    const server = await raw((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${sizeBytes}\r\n\r\n`)
      const more = (): void => {
        while (written < sizeBytes) {
          written += piece.length
          if (!socket.write(piece)) {
            socket.once('drain', more)
            return
          }
        }
      }
      more()
    })
    const { client, ask } = asking(server.port)
    const { heard, asked } = ask()
    const first = new Promise<void>((resolve) => {
      heard.onFirst = () => {
        asked.pause()
        resolve()
      }
    })
    await first
    await pause(100)
    const seen = heard.body.length
    t.ok(written < sizeBytes, 'the server has to wait')
    await pause(50)
    t.equal(heard.body.length, seen, 'nothing comes meanwhile')
    heard.onFirst = undefined
    asked.resume()
    await heard.over
    t.equal(heard.body.length, sizeBytes)
    t.equal(heard.ends, 1)
    client.destroy()
    await server.close()
  },
)

t.test('a small body that trickles is told of, and then told as a whole', { skip }, async (t) => {
  const server = await raw((socket) => {
    socket.setNoDelay(true)
    void (async () => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Word: one\r\nX-Word: two\r\n\r\n')
      for (const letter of 'abcde') {
        await pause(10)
        socket.write(letter)
      }
    })()
  })
  const { client, ask } = asking(server.port)
  const heard = await ask().heard.over
  t.match(heard, { heads: 1, pieces: 1, ends: 1 })
  t.ok(heard.came >= 3)
  t.equal(heard.body.toString(), 'abcde')
  t.strictSame(heard.lines, { 'x-word': ['one', 'two'] })
  client.destroy()
  await server.close()
})

t.test('dropped questions are never heard of, and make room', { skip }, async (t) => {
  let seen = 0
  const server = await raw((socket, head) => {
    seen += 1
    if (head.includes('/answer')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na')
  })
  const { client, ask } = asking(server.port, 2)
  const silent = [ask('/1'), ask('/2'), ask('/3'), ask('/4')]
  while (seen < 2) await pause(5)
  await pause(50)
  t.equal(seen, 2, 'others wait for a connection')
  for (const { asked } of silent) asked.drop()
  t.equal((await ask('/answer').heard.over).body.toString(), 'a')
  for (const { heard } of silent) t.match(heard, { heads: 0, ends: 0, error: undefined })
  const last = ask('/5')
  client.destroy()
  await pause(20)
  t.match(last.heard, { heads: 0, ends: 0, error: undefined })
  await server.close()
})

t.test('who refuses connections, and who has no address', { skip }, async (t) => {
  const server = await raw(() => undefined)
  await server.close()
  const { client, ask, origin } = asking(server.port)
  t.match((await ask().heard.over).error, { code: 'ECONNREFUSED' })
  const other = await raw((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na'))
  client.locate(origin, ['127.0.0.9', '127.0.0.1'], other.port)
  t.equal((await ask().heard.over).body.toString(), 'a', 'the next address is tried')
  const nowhere = new Heard()
  client.ask(client.origin(), 'GET / HTTP/1.1\r\n\r\n', false, nowhere)
  t.match((await nowhere.over).error, { code: 'EHOSTUNREACH' })
  client.destroy()
  await other.close()
})

t.test('an answer that a reset follows at once is heard', { skip }, async (t) => {
  const server = await raw((socket) =>
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab', () => socket.resetAndDestroy()),
  )
  const { client, ask } = asking(server.port)
  for (let turn = 0; turn < 20; turn += 1) {
    const heard = await ask().heard.over
    t.equal(heard.error, undefined)
    t.equal(heard.body.toString(), 'ab')
  }
  client.destroy()
  await server.close()
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
  'bytes that came while this thread was busy are no answer to its next question',
  { skip },
  async (t) => {
    const worker = new Worker(lateServer, { eval: true })
    const port = await new Promise<number>((resolve) => worker.once('message', resolve))
    const { client, ask } = asking(port)
    t.match(await ask().heard.over, { status: 200 })
    for (const until = Date.now() + 100; Date.now() < until; );
    t.match(await ask().heard.over, { status: 200 })
    client.destroy()
    await worker.terminate()
  },
)

t.test('an address that does not answer gives way to the next one', { skip }, async (t) => {
  const server = await raw((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na'))
  // Its queue is full, and nobody accepts: the kernel drops what else comes.
  const silent = new Worker(
    `const { createServer } = require('node:net')
    const { parentPort, workerData } = require('node:worker_threads')
    createServer().listen({ port: workerData, host: '127.0.0.2', backlog: 1 }, () => {
      parentPort.postMessage('')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000)
    })`,
    { eval: true, workerData: server.port },
  )
  await new Promise((resolve) => silent.once('message', resolve))
  const filling = Array.from({ length: 6 }, () =>
    connect(server.port, '127.0.0.2').on('error', () => undefined),
  )
  await pause(50)
  const { client, ask, origin } = asking(server.port)
  client.locate(origin, ['127.0.0.2', '127.0.0.1'], server.port)
  const begun = performance.now()
  const heard = await Promise.all([ask().heard.over, ask().heard.over])
  t.ok(heard.every(({ body }) => body.toString() === 'a'))
  t.ok(performance.now() - begun < 2000)
  client.destroy()
  for (const socket of filling) socket.destroy()
  await silent.terminate()
  await server.close()
})

t.test('however many wait, a network that is gone breaks them all', { skip }, async (t) => {
  const server = await raw(() => undefined)
  const { client, ask, origin } = asking(server.port, 1)
  const first = ask()
  const waiting = Array.from({ length: 100_000 }, () => ask().heard)
  // No connection over TCP leads there: each fails in its first call.
  client.locate(origin, ['255.255.255.255'], 80)
  first.asked.drop()
  const all = await Promise.all(waiting.map(({ over }) => over))
  t.ok(all.every(({ error }) => error !== undefined))
  client.destroy()
  await server.close()
})

t.test('thousands at once, over few connections', { skip }, async (t) => {
  const body = 'b'.repeat(6000)
  const server = await raw((socket, head) => {
    const [, path] = head.split(' ')
    socket.write(
      `HTTP/1.1 200 OK\r\nContent-Length: ${body.length + (path?.length ?? 0)}\r\n\r\n${body}${path}`,
    )
  })
  const { client, ask } = asking(server.port, 8)
  const all = await Promise.all(Array.from({ length: 5000 }, (_, at) => ask(`/${at}`).heard.over))
  t.ok(all.every((heard, at) => heard.body.toString() === `${body}/${at}`))
  t.equal(server.connections, 8)
  client.destroy()
  await server.close()
})

t.test('what is no head is not sent', { skip }, (t) => {
  const { client, origin } = asking(1)
  for (const head of [
    '',
    'GET / HTTP/1.1\r\n',
    'GET / HTTP/1.1\r\n\r\nX: y\r\n\r\n',
    'GET /\nX: y\r\n\r\n',
    'GET /\rX\r\n\r\n',
  ])
    t.throws(() => client.ask(origin, head, false, new Heard()), RangeError)
  t.throws(() => client.ask(origin + 1, 'GET / HTTP/1.1\r\n\r\n', false, new Heard()), RangeError)
  t.throws(() => client.locate(origin, ['there'], 80), RangeError)
  client.destroy()
  t.end()
})
