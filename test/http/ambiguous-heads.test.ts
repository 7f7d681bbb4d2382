import t from 'tap'
import { isRefusal } from '../../src/format/refusal.js'
import type { Server } from '../../src/http/listen.js'
import { converse } from './raw.js'
import { listening, ways } from './ways.js'

/** Requests that reached the handler, as `METHOD path body`. */
const seen: string[] = []

function telling(by: 'addon' | 'fallback'): Promise<Server> {
  return listening(by, (request, reply) => {
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
  })
}

const get = 'GET /a HTTP/1.1\r\nHost: x\r\n'
const post = 'POST /a HTTP/1.1\r\nHost: x\r\n'
const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'

interface Row {
  readonly name: string
  readonly sent: string
  /** Statuses of the answers, in order. Then the connection ends. */
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
  {
    name: 'an extension and a trailer',
    sent: `${post}Transfer-Encoding: chunked\r\n\r\n3;a="b c"\r\nabc\r\n0\r\nA: b\r\n\r\n`,
    answers: [200],
    reached: ['POST /a abc'],
  },
  ...['CHUNKED', 'Chunked'].map((coding) => ({
    name: `chunks that are called ${coding}`,
    sent: `${post}Transfer-Encoding: ${coding}\r\n\r\n3\r\nabc\r\n0\r\n\r\n${smuggled}`,
    answers: [200],
    reached: ['POST /a abc'],
  })),
  { name: 'an empty line in front', sent: `\r\n${get}\r\n`, answers: [200], reached: ['GET /a'] },
  { name: 'HTTP/1.0', sent: 'GET /a HTTP/1.0\r\nHost: x\r\n\r\n', answers: [200], reached: ['GET /a'] },
  { name: 'HTTP/1.0 without Host', sent: 'GET /a HTTP/1.0\r\n\r\n', answers: [200], reached: ['GET /a'] },
  {
    name: 'whitespace around a value',
    sent: `GET /a HTTP/1.1\r\nHost: \t x \t\r\n\r\n`,
    answers: [200],
    reached: ['GET /a'],
  },
  {
    name: 'OPTIONS for a whole server',
    sent: 'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n',
    answers: [200],
    reached: ['OPTIONS / '],
  },
  { name: 'an empty body', sent: `${post}Content-Length: 0\r\n\r\n`, answers: [200], reached: ['POST /a '] },
]

/** Answered 400, closed. */
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
  ['chunked with a letter beyond ASCII', `${post}Transfer-Encoding: chun\xabed\r\n\r\n0\r\n\r\n${smuggled}`],
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
]

/** Answered 431, closed (RFC 6585 section 5). */
const tooLarge: [name: string, sent: string][] = [
  ['a header line that is too large', `${get}A: ${'b'.repeat(20_000)}\r\n\r\n`],
  ['more lines than anybody sends', `${get}${'A: b\r\n'.repeat(150)}\r\n${smuggled}`],
]

const otherVersions: [name: string, sent: string][] = [
  ['HTTP/1.2', 'GET /a HTTP/1.2\r\nHost: x\r\n\r\n'],
  ['HTTP/2.0', 'GET /a HTTP/2.0\r\nHost: x\r\n\r\n'],
  ['HTTP/0.9', 'GET /a HTTP/0.9\r\nHost: x\r\n\r\n'],
]

/** What is malformed, with another request behind it. */
const malformed: [name: string, sent: string][] = [
  ['a version in small letters', 'GET /a http/1.1\r\nHost: x\r\n\r\n'],
  ['a version of two digits', 'GET /a HTTP/1.11\r\nHost: x\r\n\r\n'],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['the beginning of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['two empty lines in front', `\r\n\r\n${get}\r\n`],
  ['a fragment', 'GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['an empty name', `${get}: c\r\nContent-Length: 5\r\n\r\nabcde`],
  ['a name of spaces', `${get}  : c\r\n\r\n`],
  ['chunks in HTTP/1.0', 'POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['no version', 'GET /a\r\nHost: x\r\n\r\n'],
  ['bare LF instead of CRLF', 'GET /a HTTP/1.1\nHost: x\n\n'],
  ['a NUL in the path', 'GET /a\0b HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a tab in the path', 'GET /a\tb HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a space in the path', 'GET /a b HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['two spaces behind the method', 'GET  /a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['two spaces before the version', 'GET /a  HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a target that is no path', 'GET a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['an asterisk as the target of another method', 'GET * HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['an asterisk with more behind it', 'OPTIONS *a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['another scheme', 'GET ftp://x/a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a scheme that only begins well', 'GET httpss://x/a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a scheme with one slash', 'GET http:/x/a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a scheme of control characters', 'GET http\x1a\x0f\x0fx/a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a scheme without a host', 'GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a scheme with a port alone', 'GET http://:80/a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a target with a user', 'GET http://u@x/a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a target with a NUL behind its host', 'GET http://x\0/a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a host in the target and no Host line', 'GET http://x/a HTTP/1.1\r\n\r\n'],
  ['a host in the target of HTTP/1.0 and no Host line', 'GET http://x/a HTTP/1.0\r\n\r\n'],
  ['a host in the target and a Host line that names none', 'GET http://x/a HTTP/1.1\r\nHost: a/b\r\n\r\n'],
  ['CONNECT', 'CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n'],
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
]

const table: Row[] = [
  ...accepted,
  ...refused.map(([name, sent]) => ({ name, sent, answers: [400] })),
  ...tooLarge.map(([name, sent]) => ({ name, sent, answers: [431] })),
  ...otherVersions.map(([name, sent]) => ({ name, sent, answers: [505] })),
  ...malformed.map(([name, sent]) => ({ name, sent: `${sent}${smuggled}`, answers: [400] })),
]

const badChunks: [name: string, body: string][] = [
  ['a size that is no number', 'zz\r\nabc\r\n0\r\n\r\n'],
  ['no size', '\r\nabc\r\n0\r\n\r\n'],
  ['a signed size', '+3\r\nabc\r\n0\r\n\r\n'],
  ['a size with a prefix', '0x3\r\nabc\r\n0\r\n\r\n'],
  ['a size behind a space', ' 3\r\nabc\r\n0\r\n\r\n'],
  ['a size before a space', '3 \r\nabc\r\n0\r\n\r\n'],
  ['a size beyond all numbers', 'ffffffffffffffffff\r\nabc\r\n0\r\n\r\n'],
  ['bare LFs', '3\nabc\n0\n\n'],
  ['a bare LF in an extension', '3;a\nb\r\nabc\r\n0\r\n\r\n'],
  ['a NUL in an extension', '3;a\0\r\nabc\r\n0\r\n\r\n'],
  ['more data than its size', '3\r\nabcd\r\n0\r\n\r\n'],
  ['a trailer without a colon', '0\r\nabc\r\n\r\n'],
  ['a folded trailer', '0\r\nA: b\r\n c\r\n\r\n'],
  ['extensions without end', `3;${'a'.repeat(20_000)}\r\nabc\r\n0\r\n\r\n`],
]

for (const by of ways) {
  t.test(`the listener of the ${by}`, async (t) => {
    const server = await telling(by)
    for (const row of table) {
      const verdict = row.reached === undefined ? 'reaches no route' : 'is answered'
      await t.test(`${row.name} ${verdict}`, async (t) => {
        seen.length = 0
        const { statuses, text } = await converse(server.port, row.sent)
        t.strictSame(statuses, row.answers)
        t.strictSame(seen, row.reached ?? [])
        // A cache in front must not give what one client's bad request got to others.
        if (row.reached === undefined) t.match(text, /^Cache-Control: no-store\r\n.*^Connection: close/ms)
      })
    }
    for (const [name, body] of badChunks) {
      await t.test(`chunks with ${name} are answered 400 and nothing behind them is read`, async (t) => {
        seen.length = 0
        const sent = `${post}Transfer-Encoding: chunked\r\n\r\n${body}${smuggled}`
        const { statuses } = await converse(server.port, sent)
        t.strictSame(statuses, [400])
        t.notOk(seen.some((line) => line.includes('/smuggled')))
      })
    }
    await t.test('behind a whole body in chunks no further request is read', async (t) => {
      seen.length = 0
      await converse(server.port, `${post}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`)
      t.notOk(seen.some((line) => line.includes('/smuggled')))
    })
    await t.test('a malformed head is refused before it is complete', async (t) => {
      const { statuses } = await converse(server.port, 'GET /a HTTP/1.1\nHost', true)
      t.strictSame(statuses, [400])
    })
    await t.test('a refusal arrives whatever the client sends after the request', async (t) => {
      const { statuses } = await converse(server.port, `G@T /\r\n\r\n${'x'.repeat(3_000_000)}`)
      t.strictSame(statuses, [400])
    })
  })
}
