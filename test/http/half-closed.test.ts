import { once } from 'node:events'
import type { Socket } from 'node:net'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { isRefusal } from '../../src/format/refusal.js'
import type { Reply } from '../../src/http/exchange.js'
import type { Server } from '../../src/http/listen.js'
import type { Content } from '../../src/store/content.js'
import { eventually } from '../eventually.js'
import { HandClock } from './hand-clock.js'
import { converse } from './raw.js'
import { connect } from './transport.js'
import { listening, ways } from './ways.js'

const large = Buffer.alloc(8 * 2 ** 20, 'x')
/** Content whose bytes are here only when it is told so. */
function arriving(): { content: Content; arrive(): void } {
  let isHere = false
  let tell: (here: boolean) => void = () => undefined
  const here = new Promise<boolean>((resolve) => {
    tell = resolve
  })
  const content: Content = {
    sizeBytes: large.length,
    read: (start, end) => (isHere ? large.subarray(start, end) : undefined),
    ready: () => here,
    close: () => undefined,
  }
  const arrive = (): void => {
    isHere = true
    tell(true)
  }
  return { content, arrive }
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
const statusLine = /HTTP\/1\.1 200 OK/g

for (const by of ways) {
  t.test(`clients of the ${by} that send no more`, async (t) => {
    const clock = new HandClock()
    /** Replies of requests for /later, as they come. */
    const waiting: Reply[] = []
    let heard: (() => void) | undefined
    const next = async (): Promise<Reply> => {
      while (waiting.length === 0) await new Promise<void>((resolve) => (heard = resolve))
      return waiting.shift() as Reply
    }
    const server: Server = await listening(
      by,
      (request, reply) => {
        if (request.path === '/later') {
          waiting.push(reply)
          heard?.()
        } else if (request.method === 'GET') reply.end({ status: 200, block: '' }, request.path)
        else {
          void request
            .body(1000)
            .then((body) => reply.end({ status: 200, block: '' }, isRefusal(body) ? body.refused : body))
        }
      },
      { clock, requestsMax: 9 },
    )
    const asking = async (sent: string): Promise<{ socket: Socket; over: Promise<unknown> }> => {
      const socket = connect(server.port)
      socket.on('error', () => undefined)
      const over = once(socket, 'close')
      await once(socket, 'connect')
      socket.write(sent)
      return { socket, over }
    }
    const left = (reply: Reply): Promise<void> => new Promise((resolve) => reply.onAbort(resolve))

    await t.test('get an answer that comes later, and then the end', async (t) => {
      const conversation = converse(server.port, get('/later'))
      const reply = await next()
      await pause(50)
      t.equal(reply.aborted, false)
      reply.end({ status: 200, block: '' }, 'worth it')
      t.match((await conversation).text, /\r\nworth it$/)
    })
    await t.test('get all of a large answer whose bytes come later', async (t) => {
      const conversation = converse(server.port, get('/later'))
      const reply = await next()
      const { content, arrive } = arriving()
      const sent = reply.stream({ status: 200, block: '' }, [{ start: 0, end: large.length }], content)
      await pause(50)
      arrive()
      t.strictSame(await sent, { outcome: 'whole', bytes: large.length })
      const { text } = await conversation
      t.equal(text.length - text.indexOf('\r\n\r\n') - 4, large.length)
    })
    await t.test('get the answers to all that they sent, in order', async (t) => {
      const paths = Array.from({ length: 500 }, (_, at) => `/${at}`)
      const conversation = converse(server.port, get('/later') + paths.map(get).join(''))
      const reply = await next()
      reply.end({ status: 200, block: '' }, '/later')
      const { text } = await conversation
      t.equal(text.match(statusLine)?.length, 501)
      t.strictSame(
        [...text.matchAll(/\r\n\r\n(\/(?:later|\d+))/g)].map(([, path]) => path),
        ['/later', ...paths],
      )
    })
    await t.test('get the answer to a body that is whole', async (t) => {
      const post = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc'
      t.match((await converse(server.port, post)).text, /\r\nabc$/)
      const chunks = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'
      t.match((await converse(server.port, chunks)).text, /\r\nabc$/)
      const behind = (await converse(server.port, get('/a') + post)).text
      t.match(behind, /\r\n\/a[\s\S]*\r\nabc$/)
    })
    await t.test('are told what their body misses', async (t) => {
      const post = (lines: string, body: string): Promise<{ readonly text: string }> =>
        converse(server.port, `POST / HTTP/1.1\r\nHost: x\r\n${lines}\r\n\r\n${body}`)
      const refused = (word: string): RegExp =>
        new RegExp(`^HTTP/1.1 400 Bad Request\r\n[\\s\\S]*\r\n\r\n${word}$`)
      t.match(
        (await post('Content-Length: 4', 'abc')).text,
        refused('the body ended early, missing bytes: 1'),
      )
      const most = 'Content-Length: 903'
      t.match((await post(most, 'abc')).text, refused('the body ended early, missing bytes: 900'))
      t.match((await post('Content-Length: 4', '')).text, refused('the body ended early, missing bytes: 4'))
      const chunk = '3\r\nabc\r\n'
      const chunked = await post('Transfer-Encoding: chunked', chunk)
      t.match(chunked.text, refused('the body ended before its last chunk'))
    })
    await t.test('within a body behind another request: its handler ends, too', async (t) => {
      const post = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n'
      t.match(
        (await converse(server.port, get('/a') + post)).text,
        /\r\n\/aHTTP\/1\.1 400 [\s\S]*\r\n\r\nthe body ended early, missing bytes: 100$/,
      )
      await eventually('no request is open', () => server.openRequests === 0)
    })
    await t.test('get nothing for an incomplete head', async (t) => {
      t.equal((await converse(server.port, 'GET /a HTTP/1.1\r\nHost')).text, '')
      t.match((await converse(server.port, `${get('/a')}GET /b`)).text, /^HTTP\/1\.1 200 OK[\s\S]*\r\n\/a$/)
    })
    await t.test('and have left are noticed when bytes are sent to them', async (t) => {
      const { socket } = await asking(get('/later'))
      const reply = await next()
      const { content, arrive } = arriving()
      const sent = reply.stream({ status: 200, block: '' }, [{ start: 0, end: large.length }], content)
      socket.destroy()
      arrive()
      const { outcome } = await sent
      t.match(outcome, /aborted/)
    })
    await t.test('and take no bytes are dropped after the stall time', async (t) => {
      const { socket } = await asking(get('/later'))
      const reply = await next()
      const gone = left(reply)
      socket.end()
      await pause(50)
      clock.turn(4000)
      t.equal(reply.aborted, false)
      // Again and again: its end may not have been seen yet.
      while (!reply.aborted) {
        clock.turn(3000)
        await pause(20)
      }
      await gone
      t.equal(reply.aborted, true)
    })
    // Node tells nothing of a socket that it neither reads nor writes: with the fallback the time above passes.
    if (by === 'addon') {
      await t.test('and reset the connection are noticed at once', async () => {
        const { socket } = await asking(get('/later'))
        const reply = await next()
        const gone = left(reply)
        socket.end()
        await pause(50)
        socket.resetAndDestroy()
        await gone
      })
    }
    await t.test('leave no flow behind', async (t) => {
      while (server.openRequests > 0) await pause(10)
      t.equal(server.openRequests, 0)
    })
  })
}
