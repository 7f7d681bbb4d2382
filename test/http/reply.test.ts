import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { isRefusal } from '../../src/format/refusal.js'
import type { Reply, Request, Sent } from '../../src/http/exchange.js'
import type { Handler, ServeOptions, Server } from '../../src/http/listen.js'
import type { Content } from '../../src/store/content.js'
import { converse } from './raw.js'
import { connect, serve } from './transport.js'
import { ways } from './ways.js'

const block = 'Content-Type: application/octet-stream\r\nX-One: 1\r\nX-Two: b\xe9'

/** Bytes that come in steps of at most `step`; every `pauseEach`-th piece has to be waited for. */
class StepContent implements Content {
  readonly bytes: Uint8Array
  readonly #step: number
  readonly #pauseEach: number
  #reads = 0
  closed = 0
  breakAt = Number.POSITIVE_INFINITY

  constructor(bytes: Uint8Array, step: number, pauseEach: number) {
    this.bytes = bytes
    this.#step = step
    this.#pauseEach = pauseEach
  }

  get sizeBytes(): number {
    return this.bytes.length
  }

  read(start: number, end: number): Uint8Array | undefined {
    if (start >= this.breakAt) return undefined
    this.#reads += 1
    if (this.#pauseEach > 0 && this.#reads % this.#pauseEach === 0) return undefined
    return this.bytes.subarray(start, Math.min(end, start + this.#step))
  }

  async ready(start: number): Promise<boolean> {
    await pause(1)
    return start < this.breakAt
  }

  close(): void {
    this.closed += 1
  }
}

function bytesOf(length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at < length; at += 1) bytes[at] = (at * 31 + (at >> 8)) & 255
  return bytes
}

/** The way under test. */
let by: (typeof ways)[number] = 'fallback'

/** Serves until the end of the test; a handler that throws is expected only where `thrown` is given. */
function served(t: Tap, handler: Handler, options: Partial<ServeOptions> = {}): Server {
  const server = serve(handler, {
    host: '127.0.0.1',
    port: 0,
    stallMs: 20_000,
    requestsMax: 1000,
    onThrow: (error) => t.fail(String(error)),
    by,
    ...options,
  })
  t.teardown(async () => {
    const { openRequests } = server
    await server.close(0)
    if (openRequests > 0) throw new Error(`${openRequests} requests were left`)
  })
  return server
}
type Tap = {
  fail(message: string): unknown
  teardown(act: () => unknown): void
}

async function ask(server: Server, path: string, options: object = {}): Promise<IncomingMessage> {
  await server.listening
  const createConnection = () => connect(server.port)
  const exchange = httpRequest({ host: '127.0.0.1', port: server.port, path, createConnection, ...options })
  exchange.end()
  const [answer] = (await once(exchange, 'response')) as [IncomingMessage]
  return answer
}

async function bodyOf(answer: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of answer) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

for (const way of ways) {
  t.test(`answers of the ${way}`, async (t) => {
    by = way
    for (const [name, length, step, pauseEach] of [
      ['a small body that is here', 100, 1000, 0],
      ['a small body in steps', 100, 7, 0],
      ['a body larger than any socket buffer', 24_000_000, 300_000, 0],
      ['a body whose source has to be waited for', 3_000_000, 100_000, 3],
    ] as const) {
      t.test(`${name} arrives whole, and its content is closed once`, async (t) => {
        const content = new StepContent(bytesOf(length), step, pauseEach)
        let sent: Sent | Promise<Sent> | undefined
        const server = served(t, (_, reply) => {
          sent = reply.stream({ status: 200, block }, [{ start: 0, end: length }], content)
        })
        const answer = await ask(server, '/x')
        t.equal(answer.headers['content-length'], String(length))
        t.equal(answer.headers['x-one'], '1')
        t.equal(answer.headers['x-two'], 'b\xe9', 'field values are Latin-1')
        t.ok(answer.headers.date)
        t.ok((await bodyOf(answer)).equals(content.bytes))
        t.strictSame(await sent, { outcome: 'whole', bytes: length })
        t.equal(content.closed, 1)
      })
    }

    t.test('given bytes and windows of content are sent in their order', async (t) => {
      const content = new StepContent(bytesOf(1_000_000), 65_536, 4)
      const frame = (text: string) => ({ bytes: Buffer.from(text) })
      const pieces = [
        frame('--a--'),
        { start: 10, end: 500_000 },
        frame('--b--'),
        { start: 5, end: 6 },
        frame('--c--'),
      ]
      const server = served(t, (_, reply) => {
        void reply.stream({ status: 206, block }, pieces, content)
      })
      const answer = await ask(server, '/x')
      const expected = Buffer.concat(
        pieces.map((piece) =>
          'bytes' in piece ? piece.bytes : content.bytes.subarray(piece.start, piece.end),
        ),
      )
      t.equal(answer.statusCode, 206)
      t.ok((await bodyOf(answer)).equals(expected))
      t.equal(content.closed, 1)
    })

    t.test('an answer that is whole in one call needs no promise', async (t) => {
      const content = new StepContent(bytesOf(1000), 1000, 0)
      let sent: Sent | Promise<Sent> | undefined
      const server = served(t, (_, reply) => {
        sent = reply.stream({ status: 200, block }, [{ start: 0, end: 1000 }], content)
      })
      await bodyOf(await ask(server, '/x'))
      t.strictSame(sent, { outcome: 'whole', bytes: 1000 })
    })

    t.test('where a source breaks off the socket is closed early', async (t) => {
      const content = new StepContent(bytesOf(1_000_000), 50_000, 0)
      content.breakAt = 400_000
      let sent: Sent | Promise<Sent> | undefined
      const server = served(t, (_, reply) => {
        sent = reply.stream({ status: 200, block }, [{ start: 0, end: 1_000_000 }], content)
      })
      const answer = await ask(server, '/x')
      await t.rejects(bodyOf(answer))
      t.match(await sent, { outcome: 'broken' })
      t.equal(content.closed, 1)
    })

    t.test('a client that leaves ends the flow and calls the abort handlers', async (t) => {
      const content = new StepContent(bytesOf(50_000_000), 1_000_000, 0)
      let calls = 0
      let over: ((sent: Sent) => void) | undefined
      const ended = new Promise<Sent>((resolve) => {
        over = resolve
      })
      const server = served(t, async (_, reply) => {
        reply.onAbort(() => {
          calls += 1
        })
        over?.(await reply.stream({ status: 200, block }, [{ start: 0, end: content.sizeBytes }], content))
        t.ok(reply.aborted)
        reply.end({ status: 200, block }, 'after the end: ignored')
      })
      const answer = await ask(server, '/x')
      await once(answer, 'data')
      answer.destroy()
      t.equal((await ended).outcome, 'aborted')
      t.equal(calls, 1)
      t.equal(content.closed, 1)
    })

    t.test('a client that takes no byte is dropped after stallMs', async (t) => {
      const content = new StepContent(bytesOf(50_000_000), 1_000_000, 0)
      let over: ((sent: Sent) => void) | undefined
      const ended = new Promise<Sent>((resolve) => {
        over = resolve
      })
      const server = served(
        t,
        async (_, reply) => {
          over?.(await reply.stream({ status: 200, block }, [{ start: 0, end: content.sizeBytes }], content))
        },
        { stallMs: 60 },
      )
      await server.listening
      const socket = connect(server.port)
      socket.on('error', () => undefined)
      socket.pause()
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      t.equal((await ended).outcome, 'stalled')
      socket.destroy()
    })

    t.test('a source that is slower than stallMs is waited for', async (t) => {
      const content = new StepContent(bytesOf(1000), 1000, 0)
      content.read = () => undefined
      content.ready = async () => {
        await pause(150)
        content.read = () => content.bytes
        return true
      }
      const server = served(
        t,
        (_, reply) => {
          void reply.stream({ status: 200, block }, [{ start: 0, end: 1000 }], content)
        },
        { stallMs: 40 },
      )
      t.ok((await bodyOf(await ask(server, '/x'))).equals(content.bytes))
    })

    t.test('HEAD, 304 and 204 have no body, and HEAD says the length', async (t) => {
      const server = served(t, (request, reply) => {
        if (request.path === '/304') reply.end({ status: 304, block })
        else if (request.path === '/204') reply.end({ status: 204, block: '' })
        else reply.endEmpty({ status: 200, block }, 1234)
      })
      const one = 'Host: x\r\n\r\n'
      const sent = `HEAD /a HTTP/1.1\r\n${one}GET /304 HTTP/1.1\r\n${one}GET /204 HTTP/1.1\r\n${one}HEAD /a HTTP/1.1\r\n${one}`
      await server.listening
      const { statuses, text } = await converse(server.port, sent)
      t.strictSame(statuses, [200, 304, 204, 200])
      t.equal(text.match(/Content-Length: 1234/g)?.length, 2)
      t.equal(text.match(/Content-Length/g)?.length, 2)
    })

    t.test('a head cannot be split by characters beyond Latin-1', async (t) => {
      const server = served(t, (_, reply) => {
        reply.end({ status: 200, block: 'X-One: a\u010d\u010aX-Two: b' }, '')
      })
      const answer = await ask(server, '/')
      t.equal(answer.headers['x-one'], 'a??X-Two: b')
      t.equal(answer.headers['x-two'], undefined)
      answer.resume()
    })

    t.test('a request stays readable after the handler returned', async (t) => {
      const later: Request[] = []
      const server = served(t, async (request: Request, reply: Reply) => {
        later.push(request)
        await pause(5)
        reply.end(
          { status: 200, block: '' },
          `${request.header('x-many')} ${request.header('x-none')} ${request.query}`,
        )
      })
      const answer = await ask(server, '/p?a=%20b', { headers: { 'X-Many': ['a', 'b'] } })
      t.equal((await bodyOf(answer)).toString(), 'a, b undefined a=%20b')
      t.equal(later[0]?.remoteAddress, '127.0.0.1')
      t.equal(later[0]?.method, 'GET')
    })

    t.test('a handler that throws closes its socket and nothing else', async (t) => {
      const thrown: unknown[] = []
      const server = served(
        t,
        (request, reply) => {
          if (request.path === '/bad') throw new Error('a bug')
          reply.end({ status: 200, block: '' }, 'fine')
        },
        { onThrow: (error) => thrown.push(error) },
      )
      await server.listening
      const one = await converse(server.port, 'GET /bad HTTP/1.1\r\nHost: x\r\n\r\n')
      t.strictSame(one.statuses, [])
      t.equal(thrown.length, 1)
      t.equal((await bodyOf(await ask(server, '/good'))).toString(), 'fine')
    })

    t.test('more requests than requestsMax are answered 503 with Retry-After', async (t) => {
      let release: (() => void) | undefined
      const gate = new Promise<void>((resolve) => {
        release = resolve
      })
      const server = served(
        t,
        async (_, reply) => {
          await gate
          reply.end({ status: 200, block: '' }, 'late')
        },
        { requestsMax: 1 },
      )
      const first = ask(server, '/1')
      while (server.openRequests === 0) await pause(1)
      const second = await ask(server, '/2')
      t.equal(second.statusCode, 503)
      t.equal(second.headers['retry-after'], '1')
      release?.()
      t.equal((await bodyOf(await first)).toString(), 'late')
    })

    t.test('bodies are bounded, by their declared length and by the bytes that arrive', async (t) => {
      const server = served(t, async (request, reply) => {
        const body = await request.body(1000)
        reply.end({ status: isRefusal(body) ? 413 : 200, block: '' }, isRefusal(body) ? body.refused : body)
      })
      const post = async (
        headers: Record<string, string | number>,
        body: Buffer,
      ): Promise<[number | undefined, string]> => {
        await server.listening
        const exchange = httpRequest({
          host: '127.0.0.1',
          port: server.port,
          method: 'POST',
          headers,
          createConnection: () => connect(server.port),
        })
        exchange.on('error', () => undefined)
        exchange.end(body)
        const [answer] = (await once(exchange, 'response')) as [IncomingMessage]
        return [answer.statusCode, (await bodyOf(answer)).toString('latin1')]
      }
      const small = bytesOf(1000)
      const chunked = { 'Transfer-Encoding': 'chunked' }
      t.strictSame(await post({ 'Content-Length': 1000 }, small), [200, small.toString('latin1')])
      t.strictSame(await post(chunked, small), [200, small.toString('latin1')])
      t.strictSame(await post({ 'Content-Length': 1001 }, bytesOf(1001)), [413, 'too-large'])
      t.strictSame(await post(chunked, bytesOf(1001)), [413, 'too-large'])
    })

    t.test('closing lets running answers end, and takes no new connection', async (t) => {
      const server = serve(
        async (_, reply) => {
          await pause(30)
          reply.end({ status: 200, block: '' }, 'done')
        },
        {
          host: '127.0.0.1',
          port: 0,
          stallMs: 1000,
          requestsMax: 10,
          onThrow: (error) => t.fail(String(error)),
          by,
        },
      )
      const answer = ask(server, '/x')
      while (server.openRequests === 0) await pause(1)
      await Promise.all([
        server.close(5000),
        answer.then(bodyOf).then((body) => t.equal(body.toString(), 'done')),
      ])
      t.equal(server.openRequests, 0)
      await t.rejects(ask(server, '/y'))
    })
  })
}
