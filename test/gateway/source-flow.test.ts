import { createHash, randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import t from 'tap'
import type { Transfers } from '../../src/gateway/gateway-parts.js'
import type { OpenedContent } from '../../src/source/reading/transfer-client.js'
import { eventually } from '../eventually.js'
import { someId } from '../source/rig.js'
import { contentOnly, stage } from './rig.js'

const digestField = (body: Buffer): string =>
  `sha-256=:${createHash('sha256').update(body).digest('base64')}:`

t.test('small uncached content comes with its digest, and from the store the next time', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  const body = randomBytes(700)
  on.has.set(id, { body, contentType: 'image/png' })
  const miss = await on.ask(`/${id}`)
  t.same(miss.body, body)
  t.match(miss, {
    status: 200,
    headers: {
      'x-cache': 'MISS',
      'content-type': 'image/png',
      'content-length': '700',
      'content-digest': digestField(body),
      'x-gateway-verified': 'false',
      'x-gateway-stable': 'false',
      'x-gateway-trusted': 'true',
      'x-gateway-hops': '1',
    },
  })
  t.match(miss.headers.signature, /^sig1=:/)
  const hit = await eventually('a hit', async () => {
    const next = await on.ask(`/${id}`)
    return next.headers['x-cache'] === 'HIT' ? next : undefined
  })
  t.same(hit.body, body)
  t.equal(hit.headers['content-digest'], digestField(body))
  t.equal(on.requested.length, 1)
})

t.test('the hops of an answer are its own, whatever number its request has', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  on.has.set(id, { body: randomBytes(700) })
  const hopsOf = async (): Promise<unknown> =>
    (await on.ask(`/${id}`, { headers: { 'x-gateway-hops': '2' } })).headers['x-gateway-hops']
  t.equal(await hopsOf(), '1', 'of another gateway')
  await eventually('a hit', async () =>
    (await on.ask(`/${id}`)).headers['x-cache'] === 'HIT' ? true : undefined,
  )
  t.equal(await hopsOf(), '0', 'of the store')
})

t.test(
  'no cache in front keeps an absence that the words of one client may have brought about',
  async (t) => {
    const on = await stage()
    t.teardown(() => on.close())
    const cachingOf = async (headers: Record<string, string>): Promise<string | undefined> => {
      const { status, headers: answered } = await on.ask(`/raw/${someId()}`, { headers })
      t.equal(status, 404)
      return answered['cache-control']
    }
    t.equal(await cachingOf({}), 'public, max-age=60, must-revalidate')
    for (const headers of [
      { 'x-gateway-hops': '99' },
      { 'x-gateway-via': 'a.example' },
      { 'x-ar-io-origin': 'a.example' },
      { 'x-gateway-root-transaction-id': someId() },
    ])
      t.equal(await cachingOf(headers as Record<string, string>), 'no-store', JSON.stringify(headers))
  },
)

t.test('large uncached content streams without a digest', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  const body = randomBytes(3_000_000)
  on.has.set(id, { body })
  const miss = await on.ask(`/${id}`)
  t.ok(miss.body.equals(body))
  t.match(miss.headers, { 'x-cache': 'MISS', 'content-length': '3000000' })
  for (const name of ['content-digest', 'etag', 'x-gateway-digest']) t.notOk(name in miss.headers, name)
  const hit = await eventually('a hit', async () => {
    const next = await on.ask(`/${id}`)
    return next.headers['x-cache'] === 'HIT' ? next : undefined
  })
  t.ok(hit.body.equals(body))
  t.equal(hit.headers['content-digest'], digestField(body))
})

t.test('while bytes still arrive only a verified digest is stated', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const body = randomBytes(3_000_000)
  const digest = createHash('sha256').update(body).digest()
  for (const verified of [true, false]) {
    const id = someId()
    on.has.set(id, { body: Buffer.from(body), holdAt: 2_000_000 })
    const attributes = { id, size: body.length, digest, contentType: 'a/b', verified, trusted: true }
    await on.rig.keeper.ask({ kind: 'learn', attributes: [attributes] })
    const leaving = new AbortController()
    const { headers } = await fetch(`${on.url}/${id}`, { signal: leaving.signal })
    t.equal(headers.get('x-cache'), 'MISS')
    t.equal(headers.get('x-gateway-verified'), 'false')
    t.equal(headers.get('content-digest'), null)
    t.equal(headers.get('etag'), verified ? `"${digest.toString('base64url')}"` : null)
    leaving.abort()
  }
  await eventually('no transfer is under way', () => on.meters.total('flows_in_flight') === 0)
})

t.test('a range of uncached content is answered as a range', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  const body = randomBytes(2_000_000)
  on.has.set(id, { body })
  const part = await on.ask(`/raw/${id}`, { headers: { range: 'bytes=1999990-' } })
  t.equal(part.status, 206)
  t.same(part.body, body.subarray(1_999_990))
  t.equal(part.headers['content-range'], 'bytes 1999990-1999999/2000000')
})

t.test('a range of content whose size is known opens a window of it', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  const body = randomBytes(3_000_000)
  on.has.set(id, { body, contentType: 'video/mp4' })
  const attributes = { id, size: body.length, contentType: 'video/mp4', verified: false, trusted: false }
  await on.rig.keeper.ask({ kind: 'learn', attributes: [attributes] })
  const parts = await on.ask(`/raw/${id}`, { headers: { range: 'bytes=2000000-2000009,2500000-2500004' } })
  t.equal(parts.status, 206)
  t.ok(parts.body.includes(body.subarray(2_000_000, 2_000_010)))
  t.ok(parts.body.includes(body.subarray(2_500_000, 2_500_005)))
  t.equal(parts.body.length, Number(parts.headers['content-length']))
})

t.test('the far range of content that nothing is known of costs one question for that range', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const body = randomBytes(3_000_000)
  const wishes: readonly [string, string, number, number][] = [
    ['bytes=2900000-2900009', 'bytes=2900000-2900009', 2_900_000, 2_900_010],
    ['bytes=2900000-', 'bytes=2900000-', 2_900_000, 3_000_000],
    ['bytes=2999990-9999999', 'bytes=2999990-9999999', 2_999_990, 3_000_000],
  ]
  for (const [range, requested, start, end] of wishes) {
    const id = someId()
    on.has.set(id, { body, contentType: 'video/mp4' })
    on.ranges.length = 0
    const part = await on.ask(`/raw/${id}`, { headers: { range } })
    t.equal(part.status, 206, range)
    t.ok(part.body.equals(body.subarray(start, end)), range)
    t.equal(part.headers['content-range'], `bytes ${start}-${end - 1}/3000000`)
    t.equal(part.headers['content-type'], 'video/mp4')
    t.same(on.ranges, [requested])
  }
  for (const range of ['bytes=2900000-2900009,5-6', 'bytes=-5', 'bytes=9-5', 'lines=2900000-']) {
    const id = someId()
    on.has.set(id, { body })
    on.ranges.length = 0
    await on.ask(`/raw/${id}`, { headers: { range } })
    t.equal(on.ranges[0], undefined, `${range}: the whole is asked for`)
  }
})

t.test('where the far range cannot be opened the whole decides', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  const body = randomBytes(3_000_000)
  on.has.set(id, { body })
  const outside = await on.ask(`/raw/${id}`, { headers: { range: 'bytes=4000000-' } })
  t.equal(outside.status, 416)
  t.equal(outside.headers['content-range'], 'bytes */3000000')
  const unknown = await on.ask(`/raw/${someId()}`, { headers: { range: 'bytes=4000000-' } })
  t.equal(unknown.status, 404)
})

t.test('a wrong size in the index does not stop the answer', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  const body = randomBytes(500)
  on.has.set(id, { body })
  const digest = randomBytes(32)
  const attributes = { id, size: 4000, digest, contentType: 'a/b', verified: false, trusted: false }
  await on.rig.keeper.ask({ kind: 'learn', attributes: [attributes] })
  const part = await on.ask(`/${id}`, { headers: { range: 'bytes=10-19' } })
  t.ok(part.status === 206 || part.status === 502, `answered ${part.status}`)
  if (part.status === 206) t.same(part.body, body.subarray(10, 20))
})

t.test('where a source breaks off the socket is closed early, and nothing is stored', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  on.has.set(id, { body: randomBytes(3_000_000), breakAt: 100_000 })
  const short = await on.ask(`/${id}`)
  t.equal(short.status, 200)
  t.equal(short.complete, false)
  t.ok(short.body.length < 3_000_000)
  t.equal(
    await eventually('the transfer has failed', () => on.meters.total('get_data_stream_errors_total')),
    1,
  )
  on.has.set(id, { body: randomBytes(400) })
  t.equal((await on.ask(`/${id}`)).headers['x-cache'], 'MISS')
})

t.test('fifty first requests at once ask upstream once', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  const body = randomBytes(2_500_000)
  on.has.set(id, { body })
  const answers = await Promise.all(Array.from({ length: 50 }, () => on.ask(`/raw/${id}`)))
  for (const answered of answers) t.ok(answered.body.equals(body))
  t.equal(on.requested.length, 1)
})

/** Asks, and leaves as soon as `ready` says so. */
async function askAndLeave(url: string, ready: () => boolean): Promise<void> {
  const { port, pathname } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.resume()
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await eventually('the transfer is ready', ready)
  // Who only sends no more may still listen.
  socket.resetAndDestroy()
}

t.test('a client that leaves in the middle of the body leaves no flow and no content open', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  on.has.set(id, { body: randomBytes(5_000_000), holdAt: 1_000_000 })
  const started = (): boolean => on.meters.total('contiguous_data_cache_miss_total') === 1
  await askAndLeave(`${on.url}/${id}`, started)
  await eventually('no transfer is under way', () => on.meters.total('flows_in_flight') === 0)
  t.equal(on.meters.total('client_disconnects_total'), 1)
})

t.test('what a source opens for a client that left is closed', async (t) => {
  const body = Buffer.from('too late')
  let [opens, closed] = [0, 0]
  let open: (opened: OpenedContent) => void = () => undefined
  const transfers: Transfers = {
    open: () => {
      opens += 1
      return new Promise((resolve) => {
        open = resolve
      })
    },
    check: async () => true,
    ...contentOnly,
  }
  const on = await stage({ parts: { transfers } })
  t.teardown(() => on.close())
  const id = someId()
  await askAndLeave(`${on.url}/${id}`, () => opens === 1)
  await eventually('the absence is answered', async () => (await on.ask('/nowhere')).status === 404)
  open({
    attributes: { id, size: body.length, verified: false, trusted: true },
    content: {
      sizeBytes: body.length,
      read: (start, end) => body.subarray(start, end),
      ready: async () => true,
      close: () => {
        closed += 1
      },
    },
    span: { start: 0, end: body.length },
    source: 'slow',
    trusted: true,
    manifestFrom: { reader: 1 },
  })
  await eventually('no transfer is under way', () => on.meters.total('flows_in_flight') === 0)
  t.equal(closed, 1)
  t.equal(on.meters.total('client_disconnects_total'), 1)
})

t.test('a gateway that cannot be reached is 502, never 404', async (t) => {
  const on = await stage({ upstreamUrl: 'http://127.0.0.1:9' })
  t.teardown(() => on.close())
  for (const path of [`/raw/${someId()}`, `/${someId()}`, `/${someId()}/x`]) {
    const answered = await on.ask(path)
    t.equal(answered.status, 502)
    t.equal(answered.headers['cache-control'], 'no-store')
  }
})

t.test('a full fetcher is 503 and says when to come again', async (t) => {
  const transfers = {
    open: async () => ({ refused: 'busy', fault: 'self', message: 'full' }) as const,
    check: async () => true,
    ...contentOnly,
  }
  const on = await stage({ parts: { transfers } })
  t.teardown(() => on.close())
  t.match(await on.ask(`/${someId()}`), { status: 503, headers: { 'retry-after': '1' } })
})

t.test('a bug behind the answer is a 500, and the next request is answered', async (t) => {
  const transfers = {
    open: () => Promise.reject(new Error('a bug')),
    check: async () => true,
    ...contentOnly,
  }
  const on = await stage({ parts: { transfers } })
  t.teardown(() => on.close())
  t.equal((await on.ask(`/${someId()}`)).status, 500)
  t.equal((await on.ask(`/${someId()}`, { method: 'HEAD' })).status, 500)
  t.equal(on.meters.total('flows_in_flight'), 0)
})
