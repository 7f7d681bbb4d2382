/** The native client of other servers: what is read, what is refused, which connections are used again; with and without TLS. */
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { HttpClient } from '../../native/client/client.js'
import { pause } from '../../src/actor/clock.js'
import { eventually } from '../eventually.js'
import { type Asking, type AskingOptions, asking, localPair, type RawServer, raw } from './asking.js'

interface Kind {
  serve(t: Test, act: (socket: Socket, head: string, connection: number) => void): Promise<RawServer>
  ask(t: Test, port: number, options?: AskingOptions): Asking
}

const pair = await localPair()
const skip = HttpClient.isThere ? false : 'the addon is not here'

const plain: Kind = { serve: raw, ask: asking }
const secure: Kind = {
  serve: (t, act) => raw(t, act, pair),
  ask: (t, port, options) =>
    asking(t, port, { ...options, tls: { authorities: pair.cert, host: 'localhost' } }),
}

/** A test with and without TLS. */
function either(name: string, act: (t: Test, kind: Kind) => Promise<void>): void {
  t.test(name, { skip }, (t) => act(t, plain))
  t.test(`${name}, over TLS`, { skip }, (t) => act(t, secure))
}

/** Ends a connection without a word. */
function reset(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy()
  else socket.resetAndDestroy()
}

/** Answers, each followed by nothing more: the socket stays open. What is heard of it. */
const sound: Readonly<Record<string, { answer: string; status: number; body: string; method?: 'HEAD' }>> = {
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
  either(`an answer is read, and its connection used again: ${name}`, async (t, kind) => {
    for (const cut of [answer.length, 1, 7]) {
      const server = await kind.serve(t, (socket, _, connection) => {
        socket.setNoDelay(true)
        void (async () => {
          for (let at = 0; at < answer.length && connection === 1; at += cut) {
            socket.write(answer.slice(at, at + cut), 'latin1')
            if (cut < answer.length) await pause(0)
          }
        })()
      })
      const { ask } = kind.ask(t, server.port)
      for (let turn = 0; turn < 2; turn += 1) {
        const heard = await ask('/', method).heard.over
        t.equal(heard.error, undefined)
        t.match(heard, { status, heads: 1, ends: 1 })
        t.equal(heard.body.toString(), body)
      }
      t.equal(server.connections, 1)
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
  either(`an answer is refused: ${name}`, async (t, kind) => {
    const server = await kind.serve(t, (socket) => socket.write(answer, 'latin1'))
    const { ask } = kind.ask(t, server.port)
    const { error, ends, body } = await ask().heard.over
    t.match(error, { code: 'EBADMSG' })
    await t.equal(ends, 0)
    t.ok(body.length <= 1)
    await eventually('its connection is closed', () => server.sockets.size === 0)
  })

either(
  'a body without length ends with its connection, and a shorter one than its length breaks',
  async (t, kind) => {
    const server = await kind.serve(t, (socket, head) => {
      if (head.includes('/open')) socket.end('HTTP/1.1 200 OK\r\n\r\nabc')
      else if (head.includes('/reset'))
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc', () => reset(socket))
      else if (head.includes('/chunks'))
        socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc')
      else if (head.includes('/head')) socket.end('HTTP/1.1 200 OK\r\nContent-')
      else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc')
    })
    const { ask } = kind.ask(t, server.port)
    const whole = await ask('/open').heard.over
    t.match(whole, { ends: 1, error: undefined })
    t.equal(whole.body.toString(), 'abc')
    for (const path of ['/short', '/reset', '/chunks', '/head']) {
      const heard = await ask(path).heard.over
      t.ok(heard.error instanceof Error, path)
      t.equal(heard.ends, 0, path)
    }
  },
)

either('bytes behind an answer are nobody’s: the connection is not used again', async (t, kind) => {
  let isLeft = false
  const server = await kind.serve(t, (socket, head) => {
    const length = head.includes('/late') ? 1 : 2
    socket.once('close', () => {
      isLeft ||= length === 2
    })
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\nab`)
    if (length === 1) return
    setTimeout(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz'), 20)
  })
  const { ask } = kind.ask(t, server.port)
  t.equal((await ask('/late').heard.over).body.toString(), 'a')
  t.equal((await ask().heard.over).body.toString(), 'ab')
  t.equal(server.connections, 2, 'after a body that is too long')
  await eventually('the client leaves', () => isLeft)
  t.equal((await ask().heard.over).body.toString(), 'ab')
  t.equal(server.connections, 3, 'after an answer that nobody asked for')
})

either('a request on a kept connection that was closed is asked once more, on a new one', async (t, kind) => {
  const server = await kind.serve(t, (socket, head, connection) => {
    if (head.includes('/first')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na')
    else if (connection === 1) reset(socket)
    else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb')
  })
  const { ask } = kind.ask(t, server.port)
  await ask('/first').heard.over
  const heard = await ask('/second').heard.over
  t.equal(heard.error, undefined)
  t.equal(heard.body.toString(), 'b')
  t.equal(server.connections, 2)
})

either('what breaks on a new connection, or after a byte, is not asked again', async (t, kind) => {
  let requests = 0
  const server = await kind.serve(t, (socket, head) => {
    requests += 1
    if (head.includes('/first')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na')
    else if (head.includes('/byte')) socket.end('H')
    else reset(socket)
  })
  const { ask } = kind.ask(t, server.port)
  t.ok((await ask('/new').heard.over).error)
  await ask('/first').heard.over
  t.ok((await ask('/byte').heard.over).error)
  t.equal(requests, 3)
})

either(
  'a large body comes in pieces; the socket is left to fill while nobody wants more',
  async (t, kind) => {
    const sizeBytes = 32 * 1024 * 1024
    let written = 0
    const piece = Buffer.alloc(64 * 1024, 'p')
    const server = await kind.serve(t, (socket) => {
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
    const { ask } = kind.ask(t, server.port)
    const { heard, request } = ask()
    const first = new Promise<void>((resolve) => {
      heard.onFirst = () => {
        request.pause()
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
    request.resume()
    await heard.over
    t.equal(heard.body.length, sizeBytes)
    t.equal(heard.ends, 1)
  },
)

either('a small body that trickles is told of, and then told as a whole', async (t, kind) => {
  const sockets: Socket[] = []
  const server = await kind.serve(t, (socket) => {
    socket.setNoDelay(true)
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Word: one\r\nX-Word: two\r\n\r\n')
    sockets.push(socket)
  })
  const { ask } = kind.ask(t, server.port)
  const trickling = ask().heard
  // Bytes that come in one turn with the head are not told of by themselves.
  await eventually('the head is here', () => trickling.heads > 0)
  const socket = sockets[0] as Socket
  for (const letter of 'abcde') {
    const before = trickling.came
    socket.write(letter)
    await eventually('the letter is here', () => trickling.came > before || trickling.ends > 0)
  }
  const heard = await trickling.over
  t.match(heard, { heads: 1, pieces: 1, ends: 1 })
  t.ok(heard.came >= 3)
  t.equal(heard.body.toString(), 'abcde')
  t.strictSame(heard.lines, { 'x-word': ['one', 'two'] })
})

either('dropped requests are never heard of, and make room', async (t, kind) => {
  let seen = 0
  const server = await kind.serve(t, (socket, head) => {
    seen += 1
    if (head.includes('/answer')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na')
  })
  const { client, ask } = kind.ask(t, server.port, { connectionsMax: 2 })
  const silent = [ask('/1'), ask('/2'), ask('/3'), ask('/4')]
  while (seen < 2) await pause(5)
  await pause(50)
  t.equal(seen, 2, 'others wait for a connection')
  for (const { request } of silent) request.drop()
  t.equal((await ask('/answer').heard.over).body.toString(), 'a')
  for (const { heard } of silent) t.match(heard, { heads: 0, ends: 0, error: undefined })
  const last = ask('/5')
  client.destroy()
  await pause(20)
  t.match(last.heard, { heads: 0, ends: 0, error: undefined })
  await server.close()
})

either('an answer that a reset follows at once is heard', async (t, kind) => {
  const server = await kind.serve(t, (socket) =>
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab', () => reset(socket)),
  )
  const { ask } = kind.ask(t, server.port)
  for (let turn = 0; turn < 20; turn += 1) {
    const heard = await ask().heard.over
    t.equal(heard.error, undefined)
    t.equal(heard.body.toString(), 'ab')
  }
})

either('thousands at once, over few connections', async (t, kind) => {
  const body = 'b'.repeat(6000)
  const server = await kind.serve(t, (socket, head) => {
    const [, path] = head.split(' ')
    socket.write(
      `HTTP/1.1 200 OK\r\nContent-Length: ${body.length + (path?.length ?? 0)}\r\n\r\n${body}${path}`,
    )
  })
  const { ask } = kind.ask(t, server.port, { connectionsMax: 8 })
  const all = await Promise.all(Array.from({ length: 5000 }, (_, at) => ask(`/${at}`).heard.over))
  t.ok(all.every((heard, at) => heard.body.toString() === `${body}/${at}`))
  t.equal(server.connections, 8)
})
