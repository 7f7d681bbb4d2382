/** A thread that does not run for a while, and clients that are told something while they still send. */
import t, { type Test } from 'tap'
import { pause } from '../../src/actor/clock.js'
import { isRefusal } from '../../src/format/refusal.js'
import type { Server } from '../../src/http/listen.js'
import { eventually } from '../eventually.js'
import { HandClock } from './hand-clock.js'
import { Outside } from './outside.js'
import { listening, ways } from './ways.js'

const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
const post = (bytes: number, path = '/'): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n`
/** How long the server waits for a first request, between two, and for the rest of a body. */
const [headMs, idleMs, stallMs] = [10_000, 75_000, 5000]
const answered = /HTTP\/1\.1 200 /g

for (const by of ways) {
  t.test(`the ${by}`, async (t) => {
    const clock = new HandClock()
    const begin = (): Promise<Server> =>
      listening(
        by,
        (request, reply) => {
          if (request.path === '/refused') reply.end({ status: 503, block: '' }, 'no room')
          else if (request.method === 'GET') reply.end({ status: 200, block: '' }, 'here')
          else
            void request
              .body(1e6)
              .then((body) =>
                reply.end({ status: 200, block: '' }, isRefusal(body) ? body.refused : 'all came'),
              )
        },
        { clock },
      )
    const server = await begin()
    const outside = await Outside.clients(t, server.port)
    const counted = (name: string): number => outside.heard(name).text.match(answered)?.length ?? 0
    /** Connections in all states in which a client is waited for, each by its deadline less half a second. */
    const almostLate = async (prefix: string): Promise<void> => {
      outside.send(`${prefix} kept`, get)
      await eventually('the connection is kept', () => counted(`${prefix} kept`) === 1)
      clock.turn(idleMs - headMs)
      outside.send(`${prefix} fresh`, '')
      outside.send(`${prefix} head`, get.slice(0, 9))
      await pause(20)
      clock.turn(headMs - stallMs)
      outside.send(`${prefix} body`, `${post(6)}abc`)
      await eventually('one request is under way', () => server.openRequests === 1)
      clock.turn(stallMs - 500)
      await pause(20)
    }
    const sendAll = (prefix: string): void => {
      outside.send(`${prefix} kept`, get)
      outside.send(`${prefix} fresh`, get)
      outside.send(`${prefix} head`, get.slice(9))
      outside.send(`${prefix} body`, 'def')
    }
    const isAnswered = async (t: Test, prefix: string): Promise<void> => {
      const names = ['kept', 'fresh', 'head', 'body'].map((name) => `${prefix} ${name}`)
      const isOver = (name: string): boolean =>
        outside.heard(name).end !== 'open' || counted(name) === (name.endsWith('kept') ? 2 : 1)
      await eventually('every connection is over', () => names.every(isOver))
      for (const name of names) {
        const { text, end } = outside.heard(name)
        t.equal(end, 'open', name)
        t.match(text, name.endsWith('body') ? /all came$/ : /here$/, name)
      }
    }

    await t.test('uses what waits in a socket before it judges who is late', async (t) => {
      await almostLate('waiting')
      sendAll('waiting')
      // The timers of this thread come before the sockets, as after each long turn of its loop.
      clock.turn(2000)
      await isAnswered(t, 'waiting')
    })
    await t.test('takes no time for its clients in which it did not run', async (t) => {
      await almostLate('stopped')
      clock.jump(300)
      await pause(20)
      sendAll('stopped')
      clock.jump(3_600_000)
      await isAnswered(t, 'stopped')
      outside.send('both stopped', '')
      await pause(20)
      clock.jump(3_600_000)
      await pause(20)
      outside.send('both stopped', get)
      await eventually('both have stopped', () => counted('both stopped') === 1)
    })
    await t.test('ends an idle connection in good order, whatever is sent at that moment', async (t) => {
      outside.send('idle', get)
      await eventually('one connection is idle', () => counted('idle') === 1)
      while (outside.heard('idle').end === 'open') {
        clock.turn(2000)
        await pause(5)
      }
      outside.send('idle', get)
      outside.send('idle', get)
      await pause(20)
      outside.send('idle', get, true)
      await pause(20)
      t.equal(outside.heard('idle').end, 'ended')
    })
    await t.test('lets an early answer reach who still sends, for as long as bytes come', async (t) => {
      const piece = 'x'.repeat(2 ** 16)
      outside.send('sender', post(2 ** 30, '/refused') + piece)
      // The answer, and the end behind it.
      await eventually('the sender has its end', () => outside.heard('sender').end === 'ended')
      for (let seconds = 0; seconds < 20; seconds += 1) {
        outside.send('sender', piece)
        await pause(5)
        clock.turn(1000)
      }
      outside.send('sender', piece)
      await pause(20)
      t.match(outside.heard('sender'), { text: /^HTTP\/1\.1 503 [\s\S]*no room$/, end: 'ended' })
      for (let seconds = 0; outside.heard('sender').end === 'ended'; seconds += 1) {
        outside.send('sender', piece)
        await pause(5)
        clock.turn(1000)
        t.ok(seconds < 30, 'but not for ever')
      }
    })
    await t.test('that closes answers what had come by then', async (t) => {
      outside.send('last', get)
      await eventually('the last answer is counted', () => counted('last') === 1)
      outside.send('last', get)
      outside.send('not accepted yet', get)
      await server.close(1000)
      await eventually('both connections are over', () =>
        ['last', 'not accepted yet'].every((name) => outside.heard(name).end !== 'open'),
      )
      t.match(outside.heard('last'), { text: /here[\s\S]*Connection: close[\s\S]*here$/, end: 'ended' })
      t.match(outside.heard('not accepted yet'), { text: /Connection: close[\s\S]*here$/, end: 'ended' })
    })
  })
}
