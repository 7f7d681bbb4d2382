import { unlinkSync } from 'node:fs'
import { pino } from 'pino'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { AddressThrottle } from '../../src/admission/address-throttle.js'
import { Gate } from '../../src/admission/gate.js'
import { encodeBase64url } from '../../src/format/base64url.js'
import { type Id, idBytes } from '../../src/format/id.js'
import { plainLines } from '../../src/gateway/plain-lines.js'
import { MappedFiles } from '../../src/store/mapped.js'
import { memoryHouse } from '../admission/house.js'
import { clientAt } from '../conformance/buckets.js'
import { eventually } from '../eventually.js'
import { fc } from '../property.js'
import { sha256, someId } from '../source/rig.js'
import {
  cachingRig,
  changes,
  comparable,
  exchange,
  isFromCache,
  type Rig,
  skip,
  warm,
} from './response-cache-rig.js'
import { askAt, stage } from './rig.js'

/**
 * What the server repeats by itself must be what the steps would have answered, and must end with the first change of anything
 * that the answer rests on.
 */

t.test('answers are cached as they were, each with an id of its own', { skip }, async (t) => {
  const rig = await cachingRig()
  const { edge } = rig
  const id = await rig.put(Buffer.from('content '.repeat(700)))
  for (const path of [`/${id}`, `/raw/${id}`]) {
    for (const method of ['GET', 'HEAD']) {
      const first = await askAt(edge.stepwiseUrl, path, method)
      await warm(rig, path, { method })
      const tag = first.headers.etag ?? ''
      const ids = new Set<string>()
      for (let round = 0; round < 600; round += 1) {
        const again = await edge.ask(path, { method })
        if (round < 3) t.equal(comparable(again), comparable(first))
        if (comparable(again) !== comparable(first)) t.fail('another answer')
        t.match(again.headers['x-request-id'], /^[\w-]{22}$/) || t.fail()
        ids.add(again.headers['x-request-id'] ?? '')
      }
      t.equal(ids.size, 600)
      const wish = { method, headers: { 'if-none-match': tag } }
      await warm(rig, path, wish)
      const unchanged = await edge.ask(path, wish)
      t.equal(unchanged.status, 304)
      t.equal(comparable(unchanged), comparable(await askAt(edge.stepwiseUrl, path, method, wish.headers)))
      const other = { method, headers: { 'if-none-match': '"other"' } }
      t.equal(comparable(await edge.ask(path, other)), comparable(first))
    }
  }
  t.ok(rig.fromCache() > 2400)
  await rig.close()
})

t.test('a block counts from the next request on', { skip }, async (t) => {
  const rig = await cachingRig()
  const body = Buffer.from('blocked '.repeat(100))
  const [one, other, third] = [await rig.put(body), await rig.put(body), await rig.put(Buffer.from('third'))]
  const byId = await changes(t, rig, `/${one}`, () => rig.block('id', idBytes(one as Id)))
  t.equal(byId.status, 451)
  t.equal((await rig.edge.ask(`/${other}`)).status, 200)
  const byHash = await changes(t, rig, `/raw/${other}`, () => rig.block('hash', sha256(body)))
  t.equal(byHash.status, 451)
  await warm(rig, `/${third}`)
  t.equal((await rig.edge.ask(`/${third}`)).status, 200, 'others are cached again')
  await rig.close()
})

t.test('what the catalog learns is shown at once', { skip }, async (t) => {
  const rig = await cachingRig()
  const body = Buffer.from('typed '.repeat(100))
  const id = await rig.put(body)
  const answer = await changes(t, rig, `/${id}`, async () => {
    const known = { id, size: body.length, digest: sha256(body), verified: true, trusted: true }
    await rig.edge.rig.keeper.ask({ kind: 'learn', attributes: [{ ...known, contentType: 'text/html' }] })
  })
  t.equal(answer.headers['content-type'], 'text/html')
  await rig.close()
})

t.test('content becomes stable with the tip, and is not any more after a fork', { skip }, async (t) => {
  const rig = await cachingRig()
  rig.edge.tip.move(100)
  const id = await rig.put(Buffer.from('block '.repeat(100)), { height: 90 })
  t.equal((await rig.edge.ask(`/${id}`)).headers['x-gateway-stable'], 'false')
  await warm(rig, `/${id}`)
  rig.edge.tip.move(107)
  t.ok(await isFromCache(rig, () => rig.edge.ask(`/${id}`)), 'a tip that changes nothing is no reason to ask')
  const stable = await changes(t, rig, `/${id}`, () => rig.edge.tip.move(108))
  t.equal(stable.headers['x-gateway-stable'], 'true')
  const forked = await changes(t, rig, `/${id}`, () => rig.edge.tip.move(107))
  t.equal(forked.headers['x-gateway-stable'], 'false')
  await rig.close()
})

t.test('content that is removed, or whose segment has left, is not served any more', { skip }, async (t) => {
  const rig = await cachingRig()
  const [one, two] = ['one ', 'two '].map((word) => Buffer.from(word.repeat(100))) as [Buffer, Buffer]
  const ids = [await rig.put(one), await rig.put(two)]
  const removed = await changes(t, rig, `/${ids[0]}`, () => rig.store.remove(sha256(one)))
  t.equal(removed.status, 404)
  await warm(rig, `/${ids[1]}`)
  await rig.put(Buffer.from('another '.repeat(50)))
  t.ok(await isFromCache(rig, () => rig.edge.ask(`/${ids[1]}`)), 'a commit of other payloads changes nothing')
  const segment = rig.reader.find(sha256(two))?.segment ?? 0
  await changes(t, rig, `/${ids[1]}`, () => rig.marks.remove(segment))
  await rig.close()
})

t.test('bodies up to 1 MiB are cached, whole and in ranges', { skip }, async (t) => {
  const files = new MappedFiles({ mappedMaxBytes: 2 ** 30, filesMax: 64, believeMs: 60_000 }, systemClock)
  let path = ''
  const edge = await stage({
    parts: { blobs: { path: () => path, open: (from: string) => files.open(from) } },
  })
  const rig = { edge, fromCache: () => edge.meters.value('answers_repeated_total', {}) } as Rig
  for (const [sizeBytes, isShort] of [
    [262_145, true],
    [2 ** 20, true],
    [2 ** 20 + 1, false],
  ] as const) {
    const id = someId()
    path = await edge.keep(id, Buffer.alloc(sizeBytes, 'a large body'))
    for (const headers of [{}, { range: `bytes=1-${sizeBytes - 1}` }]) {
      const right = comparable(await askAt(edge.stepwiseUrl, `/${id}`, 'GET', headers))
      const ask = async () => t.equal(comparable(await edge.ask(`/${id}`, { headers })), right)
      for (let round = 0; round < 4; round += 1) await ask()
      const isPart = 'range' in headers
      t.equal(await isFromCache(rig, ask), isShort || isPart, `${sizeBytes} ${isPart}`)
    }
  }
  await edge.close()
  files.close()
})

t.test('ranges of large files are cached, until the file is another one', { skip }, async (t) => {
  const files = new MappedFiles({ mappedMaxBytes: 2 ** 30, filesMax: 64, believeMs: 400 }, systemClock)
  let path = ''
  const blobs = { path: () => path, open: (from: string) => files.open(from) }
  const edge = await stage({ parts: { blobs } })
  const rig = { edge, fromCache: () => edge.meters.value('answers_repeated_total', {}) } as Rig
  const body = Buffer.alloc(3_000_000, 'large ')
  const id = someId()
  path = await edge.keep(id, body)
  const pieces = [
    '0-0',
    '5-70000',
    '2097000-2097300',
    '2900000-9999999',
    '1000-400000',
    '-5',
    '3000000-',
    'x',
  ]
  for (const piece of pieces) {
    const wish = { headers: { range: `bytes=${piece}` } }
    const right = comparable(await askAt(edge.stepwiseUrl, `/${id}`, 'GET', wish.headers))
    for (let round = 0; round < 4; round += 1)
      t.equal(comparable(await edge.ask(`/${id}`, wish)), right, piece)
  }
  const wish = { headers: { range: 'bytes=100-199' } }
  await warm(rig, `/${id}`, wish)
  await warm(rig, `/${id}`, { method: 'HEAD' })
  unlinkSync(path)
  await eventually(
    'the content is served no more',
    async () => (await edge.ask(`/${id}`, wish)).status === 404,
  )
  await edge.close()
  files.close()
})

t.test('a request with any line that is not plain goes through the steps', { skip }, async (t) => {
  const rig = await cachingRig()
  const id = await rig.put(Buffer.from('lines '.repeat(100)))
  await warm(rig, `/${id}`)
  await warm(rig, `/raw/${id}`)
  const asks = async (path: string, headers: Record<string, string>): Promise<boolean> => {
    const right = comparable(await askAt(rig.edge.stepwiseUrl, path, 'GET', headers))
    return isFromCache(rig, async () => {
      t.equal(comparable(await rig.edge.ask(path, { headers })), right, JSON.stringify(headers))
    })
  }
  for (const line of plainLines) {
    const [name = '', values] = line.split('=')
    t.ok(await asks(`/${id}`, { [name]: 'keep-alive' }), name)
    t.equal(await asks(`/raw/${id}`, { [name]: 'navigate' }), values === undefined, name)
    for (const value of values?.split('|') ?? []) t.ok(await asks(`/raw/${id}`, { [name]: value }), name)
  }
  const special = {
    'x-request-id': 'mine',
    'x-gateway-hops': '1',
    'x-ar-io-hops': '2',
    'x-ar-io-via': 'a.example',
    'service-worker': 'script',
    range: 'bytes=-2',
    'if-match': '"x"',
    'if-range': '"x"',
    expect: '100-continue',
    authorization: 'Bearer x',
    'x-unheard-of': '1',
    'content-length': '0',
  }
  for (const [name, value] of Object.entries(special)) t.notOk(await asks(`/${id}`, { [name]: value }), name)
  t.equal(
    (await rig.edge.ask(`/${id}`, { headers: { 'x-request-id': 'mine' } })).headers['x-request-id'],
    'mine',
  )
  await rig.close()
})

t.test('all that is counted of an answer is counted of a cached one', { skip }, async (t) => {
  const rig = await cachingRig()
  const { edge } = rig
  const body = Buffer.from('counted '.repeat(100))
  const id = await rig.put(body)
  await warm(rig, `/${id}`)
  const look = () => ({
    requests: edge.meters.value('http_requests_total', { route: 'data', status: '2xx' }),
    bytes: edge.meters.value('get_data_stream_bytes_total', {}),
    hits: edge.meters.value('contiguous_data_cache_hit_total', {}),
    timed: Number(/duration_seconds_count\{route="data"\} (\d+)/.exec(edge.meters.text())?.[1]),
  })
  const before = look()
  const cached = rig.fromCache()
  for (let round = 0; round < 10; round += 1) await edge.ask(`/${id}`)
  t.same(look(), {
    requests: before.requests + 10,
    bytes: before.bytes + 10 * body.length,
    hits: before.hits + 10,
    timed: before.timed + 10,
  })
  t.ok(rig.fromCache() >= cached + 8)
  const place = rig.reader.find(sha256(body))
  if (place === undefined) throw new Error('no place')
  t.ok(
    rig.marks.isRequested(rig.marks.cellOf(place.segment) ?? -1, place.slot),
    'it is spared when its segment goes',
  )
  t.ok(
    rig.marks.isRequestedAgain(rig.marks.cellOf(place.segment) ?? -1, place.slot),
    'and once more, for it was asked for again and again',
  )
  await rig.close()
})

t.test('under limits each cached answer takes its tokens, until there are none', { skip }, async (t) => {
  const capacity = 100
  const house = await memoryHouse({
    ip: { capacity, refillPerSecond: 0 },
    resource: { capacity: 1000, refillPerSecond: 0 },
  })
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const throttle = new AddressThrottle(systemClock)
  const gate = new Gate({ ...house, exemptNames: [], meters, throttle })
  const rig = await cachingRig(60, { parts: { admission: gate }, limits: gate.lend() })
  const left = async (): Promise<number> =>
    (await house.buckets.ofClient(clientAt(house.clients, '127.0.0.1')))?.tokens ?? capacity
  const id = await rig.put(Buffer.from('charged '.repeat(400)))
  let served = 0
  for (; (await rig.edge.ask(`/${id}`)).status === 200; served += 1)
    t.equal(await left(), capacity - 4 * (served + 1))
  t.equal(served, 25, 'four tokens each')
  t.ok(rig.fromCache() > 15, `${rig.fromCache()} of them were cached`)
  const before = rig.fromCache()
  t.equal((await rig.edge.ask(`/${id}`)).status, 429)
  t.equal(rig.fromCache(), before)
  await house.buckets.credit('127.0.0.1', 'payer:nonce', 8)
  t.equal((await rig.edge.ask(`/${id}`)).status, 200, 'paid tokens are taken by the steps')
  t.equal(rig.fromCache(), before)
  await rig.close()
  await house.close()
})

t.test('a bug in offering costs no client his answer, and is told once', { skip }, async (t) => {
  const files = new MappedFiles({ mappedMaxBytes: 2 ** 30, filesMax: 64, believeMs: 400 }, systemClock)
  let path = ''
  const lend = (): never => {
    throw new Error('a bug')
  }
  const open = (from: string) => {
    const file = files.open(from)
    return file && Object.assign(file, { lend })
  }
  const lines: string[] = []
  const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) })
  const edge = await stage({ parts: { blobs: { path: () => path, open }, log } })
  const id = someId()
  path = await edge.keep(id, Buffer.from('offered '.repeat(100)))
  for (let round = 0; round < 5; round += 1) t.equal((await edge.ask(`/${id}`)).status, 200)
  t.ok(edge.meters.value('answers_not_offered_total', {}) >= 4)
  t.match(lines[0], /a bug.*could not be offered/)
  t.equal(lines.length, 1)
  await edge.close()
  files.close()
})

t.test('a signature may be kept for any number of seconds', { skip }, async (t) => {
  for (const seconds of [10, 30, 61]) {
    const rig = await cachingRig(seconds)
    const id = await rig.put(Buffer.from('signed '.repeat(100)))
    for (let round = 0; round < 3; round += 1)
      t.equal((await rig.edge.ask(`/${id}`)).status, 200, `${seconds} seconds`)
    t.ok(await isFromCache(rig, () => rig.edge.ask(`/${id}`)))
    await rig.close()
  }
})

t.test('any requests get what the steps would answer', { skip }, async (t) => {
  const rig = await cachingRig()
  const { url, stepwiseUrl } = rig.edge
  const bodies = [1, 30, 5000, 70_000, 300_000].map((size, at) => Buffer.alloc(size, `${at}.`))
  const ids: string[] = []
  for (const body of bodies) ids.push(await rig.put(body))
  const tags = bodies.map((body) => `"${encodeBase64url(sha256(body))}"`)
  const digits = fc.integer({ min: 0, max: 400_000 })
  const line = fc.oneof(
    fc.constantFrom(...plainLines.map((one) => `${one.replace(/=.*/, '')}: x`)),
    fc.constantFrom('Accept: */*', 'Accept: text/html', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Mode: cors'),
    fc.constantFrom(...tags, '*', 'W/"x"', '"x"').map((tag) => `If-None-Match: ${tag}`),
    fc.tuple(digits, digits).map(([from, to]) => `Range: bytes=${from}-${to}`),
    fc.constantFrom(
      'Range: bytes=0-0',
      'Range: bytes=-5',
      'Range: bytes=3-',
      'Range: bytes=2-1',
      'Range: items=1-2',
    ),
    fc.constantFrom(
      'X-Request-Id: 1',
      'X-AR-IO-Hops: 1',
      'Connection: close',
      'Service-Worker: script',
      'Via: a',
    ),
    fc.constantFrom(
      'If-Match: *',
      'If-Range: "x"',
      'Content-Length: 0',
      'Transfer-Encoding: chunked',
      'X: y',
    ),
  )
  const request = fc.record({
    method: fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'get'),
    path: fc.tuple(
      fc.constantFrom('/', '/', '/', '/raw/', '/tx/', '/RAW/'),
      fc.constantFrom(...ids),
      fc.constantFrom('', '', '', '', '/', '?', '?a=1', '/x', '/data.txt'),
    ),
    version: fc.constantFrom('1.1', '1.1', '1.1', '1.0'),
    host: fc.constantFrom('a', 'a', 'b.example:80'),
    lines: fc.array(line, { maxLength: 3 }),
  })
  const spelled = fc
    .array(request, { minLength: 1, maxLength: 4 })
    .map((requests) =>
      requests
        .map(({ method, path, version, host, lines }) =>
          [`${method} ${path.join('')} HTTP/${version}`, `Host: ${host}`, ...lines, '', ''].join('\r\n'),
        )
        .join(''),
    )
  for (let round = 0; round < 3; round += 1) {
    for (const id of ids) {
      for (const path of [`/${id}`, `/raw/${id}`]) {
        for (const more of ['', `If-None-Match: ${tags[ids.indexOf(id)]}\r\n`, 'Range: bytes=0-0\r\n'])
          for (const method of ['GET', 'HEAD'])
            await exchange(url, `${method} ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`)
      }
    }
  }
  await fc.assert(
    fc.asyncProperty(spelled, async (sent) => {
      const [one, other] = await Promise.all([exchange(url, sent), exchange(stepwiseUrl, sent)])
      if (one !== other)
        throw new Error(`${JSON.stringify(sent)}\n${one.slice(0, 3000)}\n---\n${other.slice(0, 3000)}`)
    }),
    { numRuns: 1500 },
  )
  t.ok(rig.fromCache() > 60, `${rig.fromCache()} were cached`)
  await rig.close()
})
