import t from 'tap'
import { isRefusal } from '../../src/format/refusal.js'
import type { Server } from '../../src/http/listen.js'
import { converse } from '../http/raw.js'
import { listening, ways } from '../http/ways.js'
import { fc } from '../property.js'

const seeds = [
  'GET /a?b HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n',
  'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcdeGET /b HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n',
  'POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nA: b\r\n\r\n' +
    'GET /b HTTP/1.1\r\nHost: y\r\n\r\n',
  'HEAD / HTTP/1.0\r\n\r\n',
  'GET https://y:80/a?b HTTP/1.1\r\nHost: x\r\n\r\nGET http://z HTTP/1.1\r\nAccept: a\r\nHost: x\r\n\r\n',
]
const marks = [
  '\r',
  '\n',
  '\r\n',
  '\0',
  ' ',
  '\t',
  ':',
  ',',
  ';',
  '\x7f',
  '\xff',
  'Host: z\r\n',
  'http://q',
  '/',
  '?',
  'Content-Length: 0\r\n',
  '0',
]

const change = fc.tuple(fc.nat(), fc.nat(12), fc.option(fc.constantFrom(...marks)))

function mutated(seed: string, changes: readonly [number, number, string | null][]): string {
  return changes.reduce((text, [at, length, mark]) => {
    const place = at % (text.length + 1)
    return mark === null
      ? text.slice(0, place) + text.slice(place + length)
      : text.slice(0, place) + mark + text.slice(place)
  }, seed)
}

function telling(by: 'addon' | 'fallback', seen: string[]): Promise<Server> {
  return listening(by, (request, reply) => {
    void request.body(1000).then((body) => {
      const text = isRefusal(body) ? body.refused : Buffer.from(body).toString('latin1')
      // A request without its body is no request, however much of it was seen.
      if (!isRefusal(body))
        seen.push(`${request.method} ${request.path}?${request.query} ${request.header('host')} ${text}`)
      reply.end({ status: 200, block: '' }, text)
    })
  })
}

t.test(
  'whatever is sent, the native server and its fallback see the same requests',
  { skip: ways.length < 2 },
  async (t) => {
    const seen: string[][] = [[], []]
    const servers = await Promise.all(ways.map((by, index) => telling(by, seen[index] ?? [])))
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...seeds),
        fc.array(change, { maxLength: 4 }),
        async (seed, changes) => {
          const sent = mutated(seed, changes)
          for (const list of seen) list.length = 0
          const heard = await Promise.all(servers.map(({ port }) => converse(port, sent)))
          const [one, two] = heard.map(({ statuses }) => statuses.join())
          if (one !== two || seen[0]?.join() !== seen[1]?.join()) {
            throw new Error(`${one} and ${two}; ${JSON.stringify(seen)}`)
          }
        },
      ),
      { numRuns: 1500 },
    )
    for (const { openRequests } of servers) t.equal(openRequests, 0)
  },
)
