import { once } from 'node:events'
import { request as ask, type IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import t from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { fc, random } from '../property.js'
import { run } from './running.js'

/** Uploads that go on where they were: draft-ietf-httpbis-resumable-upload-12. */
const signer = ed25519Signer(Buffer.alloc(32, 7))
const settings = {
  SERVICES: 'gateway,upload',
  DEVNET_SEED: 'false',
  UPLOAD_FREE_ITEM_BYTES: '20000000',
  UPLOAD_FREE_WALLET_BYTES: '900000000',
  UPLOAD_PARTS_MAX_BYTES: '160000000',
}
const folder = t.testdir()
let program = await run(t, folder, settings)
const partial = { 'content-type': 'application/partial-upload' }

interface Answered {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** Interim answers. */
  readonly before: readonly { readonly status: number; readonly headers: IncomingHttpHeaders }[]
}

/** One request over a connection of its own. `body`: an iterable comes in chunks, anything else with its length. */
async function tell(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: Uint8Array | Iterable<Uint8Array>,
): Promise<Answered> {
  const before: { status: number; headers: IncomingHttpHeaders }[] = []
  const isWhole = body === undefined || body instanceof Uint8Array
  const sized: Record<string, string> =
    isWhole && (body !== undefined || method === 'POST' || method === 'PATCH')
      ? { 'content-length': String(body?.length ?? 0) }
      : {}
  const request = ask(program.urls.upload + path, { method, agent: false, headers: { ...sized, ...headers } })
  request.on('information', ({ statusCode, headers }) => before.push({ status: statusCode, headers }))
  const answered = once(request, 'response')
  // Who is refused early may not be read to the end.
  request.on('error', () => undefined)
  if (body !== undefined && !isWhole) for (const piece of body) request.write(piece)
  request.end(isWhole ? body : undefined)
  const [response] = (await answered) as [import('node:http').IncomingMessage]
  const pieces: Buffer[] = []
  for await (const piece of response) pieces.push(piece as Buffer)
  const { statusCode: status = 0 } = response
  return { status, headers: response.headers, text: Buffer.concat(pieces).toString(), before }
}

function itemOf(text: string, bytes = 100_000): Buffer {
  return Buffer.from(signItem(signer, {}, Buffer.alloc(bytes, `${text} ${random()} `)))
}

async function begin(headers: Readonly<Record<string, string>> = {}, body?: Uint8Array): Promise<string> {
  const answer = await tell('POST', '/upload', { 'upload-complete': '?0', ...headers }, body)
  t.equal(answer.status, 201)
  return String(answer.headers.location)
}

function append(
  path: string,
  offset: number,
  isLast: boolean,
  body: Uint8Array | Iterable<Uint8Array>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answered> {
  const fields = { 'upload-offset': String(offset), 'upload-complete': isLast ? '?1' : '?0' }
  return tell('PATCH', path, { ...partial, ...fields, ...headers }, body)
}

async function offsetOf(path: string): Promise<number> {
  const answer = await tell('HEAD', path)
  t.equal(answer.status, 204)
  return Number(answer.headers['upload-offset'])
}

async function isServed(answer: Answered, item: Buffer): Promise<void> {
  t.equal(answer.status, 200, answer.text.slice(0, 60))
  const { id } = JSON.parse(answer.text) as { id: string }
  const served = Buffer.from(await (await fetch(`${program.urls.gateway}/raw/${id}`)).arrayBuffer())
  t.ok(served.length > 0 && item.subarray(-served.length).equals(served), 'byte for byte')
}

t.test('what can be had is told before anything is sent', async (t) => {
  const answer = await tell('OPTIONS', '/upload')
  t.equal(answer.status, 204)
  t.equal(answer.headers['accept-patch'], 'application/partial-upload')
  t.match(answer.headers['upload-limit'], /^max-size=\d+, max-age=86400$/)
})

t.test('a whole item in one request has its receipt, and could have gone on', async (t) => {
  const item = itemOf('whole')
  for (const path of ['/upload', '/v1/upload']) {
    const answer = await tell(
      'POST',
      path,
      { 'upload-complete': '?1', 'upload-draft-interop-version': '9' },
      item,
    )
    await isServed(answer, item)
    t.equal(answer.headers['upload-complete'], '?1')
    const [first] = answer.before
    t.equal(first?.status, 104)
    t.match(first?.headers, { 'upload-draft-interop-version': '9', location: `${path}/` })
    t.match(first?.headers['upload-limit'], /max-size=/)
    t.equal(answer.headers.location, first?.headers.location)
  }
  const plain = await tell('POST', '/upload', { 'content-type': 'application/octet-stream' }, item)
  t.equal(plain.status, 202, 'without the field it is a usual upload')
  t.same(plain.before, [])
  const stranger = await tell(
    'POST',
    '/upload',
    { 'upload-complete': '?1', 'upload-draft-interop-version': '99' },
    item,
  )
  t.equal(stranger.status, 200)
  t.same(stranger.before, [], 'who speaks another version is told nothing in between')
})

t.test('an item in several requests', async (t) => {
  const item = itemOf('several')
  const path = await begin({ 'upload-length': String(item.length) }, item.subarray(0, 1000))
  t.match((await tell('HEAD', path)).headers, {
    'upload-offset': '1000',
    'upload-complete': '?0',
    'upload-length': String(item.length),
    'cache-control': 'no-store',
  })
  const second = await append(path, 1000, false, item.subarray(1000, 5000))
  t.equal(second.status, 204)
  t.match(second.headers, { 'upload-offset': '5000', 'upload-complete': '?0' })
  t.equal(second.headers['content-length'], undefined)
  const chunked = await append(path, 5000, false, [item.subarray(5000, 5001), item.subarray(5001, 9000)])
  t.equal(chunked.status, 204)
  t.match(JSON.parse((await tell('GET', path)).text), { state: 'open', offset: 9000, length: item.length })
  const last = await append(path, 9000, true, item.subarray(9000))
  await isServed(last, item)
  t.equal(last.headers['upload-complete'], '?1')
  t.match((await tell('HEAD', path)).headers, {
    'upload-offset': String(item.length),
    'upload-complete': '?1',
  })
  const { receipt, state } = JSON.parse((await tell('GET', path)).text) as Record<string, unknown>
  t.equal(state, 'finalized')
  t.same(receipt, JSON.parse(last.text))
  for (const [body, kind] of [
    [Buffer.alloc(0), 'completed-upload'],
    [Buffer.from('more'), 'inconsistent-upload-length'],
  ] as const) {
    const refused = await append(path, item.length, true, body)
    t.equal(refused.status, 400)
    t.equal(refused.headers['content-type'], 'application/problem+json')
    t.match(JSON.parse(refused.text), { type: `https://iana.org/assignments/http-problem-types#${kind}` })
    t.equal(refused.headers['upload-complete'], '?1')
  }
})

t.test('an empty last request completes', async () => {
  const item = itemOf('empty end')
  const path = await begin({}, item)
  await isServed(await append(path, item.length, true, new Uint8Array(0)), item)
})

t.test('what contradicts what is known is refused, and changes nothing', async (t) => {
  const item = itemOf('refused')
  const path = await begin({ 'upload-length': '100' }, item.subarray(0, 10))
  const wrong = await append(path, 11, false, item.subarray(11, 20))
  t.equal(wrong.status, 409)
  t.equal(wrong.headers['upload-offset'], '10')
  t.match(JSON.parse(wrong.text), { 'expected-offset': 10, 'provided-offset': 11 })
  const cases: readonly (readonly [number, Record<string, string>, Uint8Array])[] = [
    [415, { 'content-type': 'application/octet-stream' }, Buffer.from('x')],
    [400, { 'upload-offset': 'ten' }, Buffer.from('x')],
    [400, { 'upload-complete': 'yes' }, Buffer.from('x')],
    [400, { 'upload-complete': '?1' }, Buffer.from('x')],
    [400, { 'upload-length': '99' }, Buffer.from('x')],
    [400, {}, Buffer.alloc(91)],
  ]
  for (const [status, headers, body] of cases) {
    const answer = await append(path, 10, false, body, headers)
    t.equal(answer.status, status, JSON.stringify(headers))
    t.equal(await offsetOf(path), 10)
  }
  const typed = await tell('POST', '/upload', { 'upload-complete': '?1', 'content-type': 'text/plain' }, item)
  t.equal(typed.status, 400)
  const huge = await tell('POST', '/upload', { 'upload-complete': '?0', 'upload-length': '99999999999999' })
  t.equal(huge.status, 413)
  t.match(huge.headers['upload-limit'], /max-size=\d/)
  const twice = await tell('POST', '/upload', { 'upload-complete': '?1', 'upload-length': '5' }, item)
  t.equal(twice.status, 400)
  for (const method of ['HEAD', 'GET', 'DELETE'])
    t.equal((await tell(method, '/upload/00000000-0000-4000-8000-000000000000')).status, 404)
  t.equal((await append('/upload/x', 0, true, item)).status, 404)
  // More than was announced, which only the bytes themselves show: the upload is over.
  const over = await append(path, 10, false, [Buffer.alloc(50), Buffer.alloc(50)])
  t.equal(over.status, 400)
  t.match(JSON.parse(over.text).type, /inconsistent-upload-length$/)
  t.equal((await tell('HEAD', path)).status, 404)
})

t.test('bytes that are no item, and items that nobody pays, are told so in the end', async (t) => {
  const noItem = await tell('POST', '/upload', { 'upload-complete': '?1' }, Buffer.alloc(100, 0xff))
  t.equal(noItem.status, 400)
  t.match(noItem.text, /^Data item parsing error!/)
  t.equal(noItem.headers['upload-complete'], '?1')
  const item = itemOf('large', 21_000_000)
  const path = await begin({}, item)
  for (const _ of [1, 2]) {
    const unpaid = await append(path, item.length, true, new Uint8Array(0))
    t.equal(unpaid.status, 402)
    t.equal(unpaid.headers['upload-complete'], '?1')
  }
  t.equal((await tell('DELETE', path)).status, 204)
  t.equal((await tell('HEAD', path)).status, 404)
})

/** Sends the head of a PATCH, and when the service has taken that up some bytes of its body, over a socket that stays open. */
async function hang(path: string, offset: number, announced: number, bytes: Uint8Array) {
  const { hostname, port } = new URL(program.urls.upload ?? '')
  const socket = connect(Number(port), hostname)
  let heard = ''
  socket.on('data', (piece) => {
    heard += piece.toString()
  })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(
    `PATCH ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/partial-upload\r\nUpload-Offset: ${offset}\r\n` +
      `Upload-Complete: ?1\r\nContent-Length: ${announced}\r\nExpect: 100-continue\r\n\r\n`,
  )
  await eventually('the interim answer', () => heard.includes('100 Continue'))
  socket.write(bytes)
  return { socket, heard: () => heard }
}

t.test('who is cut off goes on from what is here', async (t) => {
  const item = itemOf('cut off', 3_000_000)
  const path = await begin()
  const { socket } = await hang(path, 0, item.length, item.subarray(0, 2_000_000))
  await eventually('what came is on disk', async () => {
    const { offset } = JSON.parse((await tell('GET', path)).text) as { offset: number }
    // Nothing is told of bytes that are not on disk for good; what has come is kept when the connection breaks.
    if (!socket.destroyed && socket.bytesWritten > 2_000_000 && socket.writableLength === 0) socket.destroy()
    return offset > 0
  })
  const offset = await offsetOf(path)
  t.ok(offset > 0 && offset <= 2_000_000, `${offset} bytes`)
  await isServed(await append(path, offset, true, item.subarray(offset)), item)
})

t.test('the last request counts: one that hangs is ended by the next', async (t) => {
  const item = itemOf('hangs', 1_000_000)
  const path = await begin()
  const { socket, heard } = await hang(path, 0, item.length, item.subarray(0, 400_000))
  const offset = await offsetOf(path)
  await eventually('the answer 409', () => heard().includes('HTTP/1.1 409'))
  t.match(heard(), /Upload-Offset: \d+/)
  socket.destroy()
  const again = await hang(path, offset, item.length - offset, new Uint8Array(0))
  await isServed(await append(path, offset, true, item.subarray(offset)), item)
  again.socket.destroy()
})

t.test('clients of earlier drafts, as phones and browsers have them', async (t) => {
  for (const version of ['3', '4', '5', '6', '7', '8']) {
    const item = itemOf(`version ${version}`)
    const named = { 'upload-draft-interop-version': version }
    const flag = (isLast: boolean): Record<string, string> =>
      version === '3'
        ? { ...named, 'upload-incomplete': isLast ? '?0' : '?1' }
        : { ...named, 'upload-complete': isLast ? '?1' : '?0' }
    const first = await tell('POST', '/upload', flag(false), item.subarray(0, 500))
    t.equal(first.status, 201)
    t.equal(first.before[0]?.headers['upload-draft-interop-version'], version)
    const path = String(first.headers.location)
    const head = await tell('HEAD', path, named)
    t.equal(
      head.headers[version === '3' ? 'upload-incomplete' : 'upload-complete'],
      version === '3' ? '?1' : '?0',
    )
    const type: Record<string, string> = Number(version) < 6 ? {} : partial
    const last = await tell(
      'PATCH',
      path,
      { ...type, ...flag(true), 'upload-offset': '500' },
      item.subarray(500),
    )
    await isServed(last, item)
  }
})

t.test('one client has a share, and leaves room for others', async (t) => {
  const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address })
  const piece = Buffer.alloc(15_000_000)
  const paths: string[] = []
  for (const _ of [1, 2]) paths.push(await begin(from('203.0.113.7'), piece))
  const refused = await tell('POST', '/upload', { 'upload-complete': '?0', ...from('203.0.113.7') }, piece)
  t.equal(refused.status, 429)
  t.ok(refused.headers['retry-after'])
  paths.push(String(refused.headers.location))
  paths.push(await begin(from('203.0.113.8'), piece))
  for (const path of paths) t.equal((await tell('DELETE', path)).status, 204)
  paths.length = 0
  for (const _ of [1, 2]) paths.push(await begin(from('203.0.113.7'), piece))
  for (const path of paths) t.equal((await tell('DELETE', path)).status, 204)
})

t.test('whatever is asked in whatever order, what is here never shrinks and stays true', async () => {
  const change = fc.record({
    shift: fc.constantFrom(0, 0, 0, 0, 1, -1, 50),
    size: fc.nat(400),
    flag: fc.constantFrom('?0', '?0', '?0', '?1', '?2', 'yes', ''),
    length: fc.option(fc.constantFrom('1000', '999', '10', '-1', 'x', '1e9')),
    chunked: fc.boolean(),
    typed: fc.constantFrom(true, true, true, false),
    version: fc.constantFrom(undefined, '3', '6', '9', '12', 'v'),
    method: fc.constantFrom('PATCH', 'PATCH', 'PATCH', 'HEAD', 'GET'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 8 }), async (changes) => {
      const path = await begin()
      let offset = 0
      let isGone = false
      for (const { shift, size, flag, length, chunked, typed, version, method } of changes) {
        const headers: Record<string, string> = {
          ...(typed ? partial : {}),
          ...(version === undefined ? {} : { 'upload-draft-interop-version': version }),
          'upload-offset': String(offset + shift),
          'upload-complete': flag,
          ...(length === null ? {} : { 'upload-length': length }),
        }
        const bytes = Buffer.alloc(size, 0xee)
        const body = method === 'PATCH' ? (chunked ? [bytes] : bytes) : undefined
        const answer = await tell(method, path, headers, body)
        if (answer.status >= 500) throw new Error(`${answer.status}: ${answer.text}`)
        const head = await tell('HEAD', path)
        if (isGone && head.status !== 404) throw new Error('what was given up is here')
        if (head.status === 404) isGone = true
        if (isGone) continue
        const now = Number(head.headers['upload-offset'])
        const grown = answer.status < 300 && method === 'PATCH' ? size : 0
        const isEnd = head.headers['upload-complete'] === '?1'
        if (!isEnd && now !== offset + grown && !(chunked && answer.status === 400 && now === offset + size))
          throw new Error(`${offset} and ${grown} became ${now}`)
        if (now < offset) throw new Error('it shrank')
        offset = now
      }
      await tell('DELETE', path)
    }),
    { numRuns: 40 },
  )
})

t.test('a killed service goes on with what it has', async (t) => {
  const item = itemOf('killed', 40_000_000)
  const small = itemOf('small')
  const [large, begun] = [await begin(), await begin({}, small.subarray(0, 700))]
  const { socket } = await hang(large, 0, item.length, item.subarray(0, 39_000_000))
  await eventually('a large part is on disk', async () => {
    const { offset } = JSON.parse((await tell('GET', large)).text) as { offset: number }
    return offset >= 33_554_432
  })
  await program.kill()
  socket.destroy()
  program = await run(t, folder, { ...settings, UPLOAD_FREE_ITEM_BYTES: '50000000' })
  const offset = await offsetOf(large)
  t.ok(offset >= 33_554_432 && offset <= 39_000_000, `${offset} bytes`)
  await isServed(await append(large, offset, true, item.subarray(offset)), item)
  t.equal(await offsetOf(begun), 700)
  await isServed(await append(begun, 700, true, small.subarray(700)), small)
  t.equal(await program.stop(), 0)
})
