/**
 * How server layers treat requests that two programs could read differently: `node dist/bench/rivals/ambiguous-heads.js`. For
 * each layer and request: refused (400 or 505, and closed), reaches the handler, or left without an answer. A part of
 * test/http/ambiguous-heads.test.ts, which the own server passes whole.
 */
import { connect } from 'node:net'
import { pause } from '../../src/actor/clock.js'
import { say, table } from '../kit/say.js'
import type { Answer } from './handler.js'
import { layers } from './layers.js'

const get = 'GET /a HTTP/1.1\r\nHost: x\r\n'
const post = 'POST /a HTTP/1.1\r\nHost: x\r\n'
const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'

const doubtful: readonly [name: string, sent: string][] = [
  ['two different Content-Length lines', `${post}Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde`],
  ['Content-Length with a sign', `${post}Content-Length: +3\r\n\r\nabc`],
  [
    'Content-Length and chunks',
    `${post}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  ['Transfer-Encoding: xchunked', `${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`],
  ['Transfer-Encoding: identity', `${post}Transfer-Encoding: identity\r\n\r\n${smuggled}`],
  ['a space before the colon of a coding', `${post}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`],
  ['two Host lines', `${get}Host: y\r\n\r\n`],
  ['no Host line', 'GET /a HTTP/1.1\r\nAccept: a\r\n\r\n'],
  ['a Host line with a path', 'GET /a HTTP/1.1\r\nHost: x/y\r\n\r\n'],
  ['a bare LF between lines', `${get}A: b\nContent-Length: 5\r\n\r\nabcde`],
  ['bare LFs alone', 'GET /a HTTP/1.1\nHost: x\n\n'],
  ['a folded line', `${get}A: b\r\n c\r\n\r\n`],
  ['a NUL in a value', `${get}A: b\0c\r\n\r\n`],
  ['a control in the path', 'GET /a\x7f HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a line without a colon', `${get}Abc\r\n\r\n`],
  ['a target that is no path', 'GET a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['HTTP/1.2', 'GET /a HTTP/1.2\r\nHost: x\r\n\r\n'],
  ['a method in small letters', 'get /a HTTP/1.1\r\nHost: x\r\n\r\n'],
]

const waitMs = 300

/** What came back within the wait, and whether the connection was ended. */
async function conversed(port: number, sent: string): Promise<{ text: string; isClosed: boolean }> {
  let text = ''
  let isClosed = false
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('data', (piece: Buffer) => {
    text += piece.toString('latin1')
  })
  socket.on('error', () => socket.destroy())
  socket.on('close', () => {
    isClosed = true
  })
  socket.write(Buffer.from(sent, 'latin1'))
  await pause(waitMs)
  const outcome = { text, isClosed }
  socket.destroy()
  return outcome
}

const answer: Answer = { status: 200, block: 'Content-Type: text/plain', body: Buffer.from('reached') }
let reached: string[] = []
const handler = {
  answer(path: string): Answer {
    reached.push(path)
    return answer
  },
}

async function verdict(port: number, sent: string): Promise<string> {
  reached = []
  const { text, isClosed } = await conversed(port, sent)
  if (reached.includes('/smuggled')) return 'reads a second request'
  if (reached.length > 0) return 'reaches the handler'
  if (/^HTTP\/1\.1 (400|505) /.test(text)) return isClosed ? 'refused' : 'refused, kept open'
  return isClosed ? 'closed without an answer' : 'left without an answer'
}

const names = ['own', 'uws', 'node'] as const
const ports = new Map<string, number>()
for (const name of names) {
  const open = layers[name]
  if (open !== undefined) ports.set(name, await open(handler))
}
const rows: string[][] = []
for (const [name, sent] of doubtful) {
  const cells: string[] = []
  for (const layer of names) cells.push(await verdict(ports.get(layer) ?? 0, sent))
  rows.push([name, ...cells])
}
for (const line of table(['', 'own server', 'uWebSockets', 'node:http'], rows)) say(line)
process.exit(0)
