import t from 'tap'
import { isRefusal } from '../../src/format/refusal.js'
import { serve } from '../../src/http/listen.js'
import { converse } from './raw.js'

/** Requests that reached the handler, as `METHOD path body`. */
const seen: string[] = []
const server = serve(
  (request, reply) => {
    const line = `${request.method} ${request.path}`
    if (request.method === 'GET') {
      seen.push(line)
      reply.end({ status: 200, block: 'Content-Type: text/plain' }, line)
      return
    }
    void request.body(1000).then((body) => {
      const text = isRefusal(body) ? body.refused : Buffer.from(body).toString('latin1')
      seen.push(`${line} ${text}`)
      reply.end({ status: 200, block: 'Content-Type: text/plain' }, text)
    })
  },
  { host: '127.0.0.1', port: 0, stallMs: 5000, flowsMax: 100, onThrow: (error) => t.fail(String(error)) },
)
t.teardown(() => server.close(0))

const get = 'GET /a HTTP/1.1\r\nHost: x\r\n'
const post = 'POST /a HTTP/1.1\r\nHost: x\r\n'
const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'

interface Row {
  readonly name: string
  readonly sent: string
  /** Statuses of the answers, in order. None: the head never becomes a request, and the connection ends. */
  readonly answers: readonly number[]
  /** What the handler saw. */
  readonly reached?: readonly string[]
}

const accepted: Row[] = [
  { name: 'a plain request', sent: `${get}\r\n`, answers: [200], reached: ['GET /a'] },
  {
    name: 'two requests in one packet',
    sent: `${get}\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n`,
    answers: [200, 200],
    reached: ['GET /a', 'GET /b'],
  },
  {
    name: 'a body of a declared length',
    sent: `${post}Content-Length: 3\r\n\r\nabc`,
    answers: [200],
    reached: ['POST /a abc'],
  },
  {
    name: 'a body in chunks',
    sent: `${post}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`,
    answers: [200],
    reached: ['POST /a abcde'],
  },
  {
    name: 'a length with zeros in front',
    sent: `${post}Content-Length: 003\r\n\r\nabc`,
    answers: [200],
    reached: ['POST /a abc'],
  },
  { name: 'an empty body', sent: `${post}Content-Length: 0\r\n\r\n`, answers: [200], reached: ['POST /a '] },
]

/** Seen by our own rules: answered 400, closed. */
const refused: [name: string, sent: string][] = [
  ['two different Content-Length lines', `${post}Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde`],
  ['two equal Content-Length lines', `${post}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc`],
  ['a list in Content-Length', `${post}Content-Length: 3, 3\r\n\r\nabc`],
  ['a sign in Content-Length', `${post}Content-Length: +3\r\n\r\nabc`],
  ['a negative Content-Length', `${post}Content-Length: -3\r\n\r\nabc`],
  ['a space within Content-Length', `${post}Content-Length: 3 3\r\n\r\nabc`],
  ['a hexadecimal Content-Length', `${post}Content-Length: 0x3\r\n\r\nabc`],
  ['a Content-Length beyond all numbers', `${post}Content-Length: 99999999999999999999\r\n\r\nabc`],
  ['an empty Content-Length', `${post}Content-Length: \r\n\r\n${smuggled}`],
  ['two Host lines', `${get}Host: y\r\n\r\n`],
  ['no Host line', 'GET /a HTTP/1.1\r\nAccept: a\r\n\r\n'],
  ['a Host line that names no host', 'GET /a HTTP/1.1\r\nHost: x y\r\n\r\n'],
  ['a Host line with a path', 'GET /a HTTP/1.1\r\nHost: x/y\r\n\r\n'],
  [
    'Content-Length with chunks',
    `${post}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  [
    'chunks with Content-Length',
    `${post}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  ['another coding before chunked', `${post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${smuggled}`],
  ['a coding that only looks like chunked', `${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`],
  ['chunked in capitals', `${post}Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n${smuggled}`],
  ['the coding identity', `${post}Transfer-Encoding: identity\r\n\r\n${smuggled}`],
  ['an empty coding', `${post}Transfer-Encoding: \r\n\r\n${smuggled}`],
  [
    'two Transfer-Encoding lines',
    `${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`,
  ],
  ['chunks behind a GET', `${get}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`],
  ['a raw byte above 0x7E in the path', 'GET /\xe9 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a raw byte above 0x7E in the query', 'GET /a?\xe9 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a DEL in the path', 'GET /a\x7f HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a method in small letters', 'get /a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a method with other characters', 'G@T /a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a header line that is too large', `${get}A: ${'b'.repeat(20_000)}\r\n\r\n`],
]

/** Heads that the server's parser takes for another version of HTTP. */
const otherVersions: [name: string, sent: string][] = [
  ['HTTP/1.0', 'GET /a HTTP/1.0\r\nHost: x\r\n\r\n'],
  ['HTTP/1.2', 'GET /a HTTP/1.2\r\nHost: x\r\n\r\n'],
  ['no version', 'GET /a\r\nHost: x\r\n\r\n'],
  ['bare LF instead of CRLF', 'GET /a HTTP/1.1\nHost: x\n\n'],
  ['a NUL in the path', 'GET /a\0b HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a tab in the path', 'GET /a\tb HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a space in the path', 'GET /a b HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['two spaces behind the method', 'GET  /a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['two spaces before the version', 'GET /a  HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a target that is no path', 'GET http://x/a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['CONNECT', 'CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n'],
]

/** Heads that the server's parser never finishes: nothing behind them on the connection is read as a request. */
const unfinished: [name: string, sent: string][] = [
  ['a bare LF between header lines', `${get}A: b\nContent-Length: 5\r\n\r\nabcde`],
  ['a bare LF before the end', `GET /a HTTP/1.1\r\nHost: x\n\r\n`],
  ['a bare CR in a value', `${get}A: b\rc\r\n\r\n`],
  ['a NUL in a value', `${get}A: b\0c\r\n\r\n`],
  ['a NUL in a name', `${get}A\0b: c\r\n\r\n`],
  ['another control in a value', `${get}A: b\x01c\r\n\r\n`],
  ['obsolete folding', `${get}A: b\r\n c\r\n\r\n`],
  ['folding with a tab', `${get}A: b\r\n\tContent-Length: 5\r\n\r\nabcde`],
  ['a first line that is folded', 'GET /a HTTP/1.1\r\n Host: x\r\n\r\n'],
  ['a space before the colon', `${post}Content-Length : 3\r\n\r\nabc`],
  ['a space before the colon of a coding', `${post}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`],
  ['a vertical tab before the coding', `${post}Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n`],
  ['a line without a colon', `${get}Abc\r\n\r\n`],
  ['a name with other characters', `${get}A(b: c\r\n\r\n`],
  ['a name beyond ASCII', `${get}A\xe9: c\r\n\r\n`],
  ['more lines than anybody sends', `${get}${'A: b\r\n'.repeat(150)}\r\n`],
]

const table: Row[] = [
  ...accepted,
  ...refused.map(([name, sent]) => ({ name, sent, answers: [400] })),
  ...otherVersions.map(([name, sent]) => ({ name, sent, answers: [505] })),
  ...unfinished.map(([name, sent]) => ({ name, sent: `${sent}${smuggled}`, answers: [] })),
]

for (const row of table) {
  const verdict = row.reached === undefined ? 'reaches no route' : 'is answered'
  t.test(`${row.name} ${verdict}`, async (t) => {
    seen.length = 0
    const { statuses } = await converse(server.port, row.sent)
    // Where more comes behind what is refused, the connection may end before the answer is out.
    const cut = statuses.length === 0 && row.reached === undefined && row.sent.endsWith(smuggled)
    if (!cut) t.strictSame(statuses, row.answers)
    t.strictSame(seen, row.reached ?? [])
  })
}

const badChunks: [name: string, body: string][] = [
  ['a size that is no number', 'zz\r\nabc\r\n0\r\n\r\n'],
  ['a signed size', '+3\r\nabc\r\n0\r\n\r\n'],
  ['a size with a prefix', '0x3\r\nabc\r\n0\r\n\r\n'],
  ['a size beyond all numbers', 'ffffffffffffffffff\r\nabc\r\n0\r\n\r\n'],
]
for (const [name, body] of badChunks) {
  t.test(`chunks with ${name} are answered 400 and nothing behind them is read`, async (t) => {
    seen.length = 0
    const { statuses } = await converse(
      server.port,
      `${post}Transfer-Encoding: chunked\r\n\r\n${body}${smuggled}`,
    )
    t.strictSame(statuses, [400])
    t.notOk(seen.some((line) => line.includes('/smuggled')))
  })
}

for (const [name, body] of [
  ['a whole body in chunks', '3\r\nabc\r\n0\r\n\r\n'],
  ['chunks with bare LFs', '3\nabc\n0\n\n'],
  ['chunks with an extension', '3;a=b\r\nabc\r\n0\r\n\r\n'],
  ['chunks with a trailer', '0\r\nA: b\r\n\r\n'],
]) {
  t.test(`behind ${name} no further request is read`, async (t) => {
    seen.length = 0
    await converse(server.port, `${post}Transfer-Encoding: chunked\r\n\r\n${body}${smuggled}`)
    t.notOk(seen.some((line) => line.includes('/smuggled')))
  })
}
