import { createHash, randomBytes } from 'node:crypto'
import { existsSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import type { Admission } from '../../src/admission/admission-port.js'
import { vocabularies } from '../../src/attest/vocabulary.js'
import { tagOf } from '../../src/format/tag.js'
import { verifiedByFirst, verifiedBySecond } from '../attest/verifiers.js'
import { eventually } from '../eventually.js'
import { someId } from '../source/rig.js'
import { type Answered, contentOnly, freshened, names, type Stage, stage } from './rig.js'

const digestText = (body: Buffer): string => createHash('sha256').update(body).digest('base64url')
const digestField = (body: Buffer): string =>
  `sha-256=:${createHash('sha256').update(body).digest('base64')}:`

/** Longer than the stage's mapped files are believed to be what they were. */
const disbelieveMs = 100

/** Both libraries, over what a client received. */
async function verified(on: Stage, path: string, method: string, answered: Answered): Promise<boolean> {
  const exchange = { method, url: `${on.url}${path}`, ...answered }
  const first = await verifiedByFirst(exchange).catch(() => false)
  return first && (await verifiedBySecond(exchange))
}

const rootId = someId()
const parentId = someId()
const about = {
  contentType: 'text/html; charset=utf-8',
  contentEncoding: 'identity',
  height: 100,
  place: {
    rootId,
    parentId,
    path: [rootId, parentId],
    rootItemOffset: 2300,
    parentItemOffset: 300,
    itemSize: 1000,
    headerSize: 150,
  },
  header: {
    signatureType: 1,
    signature: randomBytes(512),
    owner: randomBytes(512),
    ownerAddress: someId(),
    target: Buffer.alloc(0),
    anchor: Buffer.alloc(0),
    tags: [tagOf('App', 'one'), tagOf('App', 'two'), tagOf('Title', 'caf\u00e9\r\nX-Bad: 1')],
  },
} as const

for (const words of Object.values(vocabularies)) {
  t.test(`cached content carries every header in the ${words.name} words, signed`, async (t) => {
    const on = await stage({ vocabulary: words.name })
    t.teardown(() => on.close())
    const id = someId()
    const body = Buffer.from('hello, permanent world')
    await on.keep(id, body, about)
    for (const path of [`/${id}`, `/${id}/`, `/raw/${id}`, `/RAW/${id}/`, `/local/farcaster/frame/${id}`]) {
      const answered = await on.ask(path)
      t.equal(answered.status, 200, path)
      t.same(answered.body, body)
      t.same(names(answered), [
        'Access-Control-Allow-Origin',
        'Access-Control-Expose-Headers',
        'X-Request-Id',
        'Accept-Ranges',
        'Cache-Control',
        'X-Cache',
        'Content-Type',
        'Content-Encoding',
        `${words.gateway}Data-Id`,
        ...['Stable', 'Verified', 'Trusted', 'Digest'].map((suffix) => `${words.gateway}${suffix}`),
        'Content-Digest',
        'ETag',
        ...['Root-Transaction-Id', 'Root-Data-Item-Offset', 'Root-Data-Offset', 'Root-Item-Offset'].map(
          (suffix) => `${words.gateway}${suffix}`,
        ),
        ...['Root-Item-Size', 'Root-Path', 'Data-Item-Root-Parent-Offset', 'Data-Item-Offset'].map(
          (suffix) => `${words.gateway}${suffix}`,
        ),
        ...['Data-Item-Size', 'Data-Item-Data-Offset'].map((suffix) => `${words.gateway}${suffix}`),
        ...['Signature', 'Owner', 'Owner-Address', 'Signature-Type', 'Tag-Count', 'Tag-App', 'Tag-App'].map(
          (suffix) => `${words.chain}${suffix}`,
        ),
        `${words.chain}Tag-Title`,
        'Signature-Input',
        'Signature',
        'Content-Security-Policy',
        'Vary',
        `${words.gateway}Hops`,
      ])
      const gateway = words.gateway.toLowerCase()
      t.match(answered.headers, {
        'x-cache': 'HIT',
        'content-type': about.contentType,
        'content-length': String(body.length),
        'cache-control': 'public, max-age=43200',
        'content-digest': digestField(body),
        etag: `"${digestText(body)}"`,
        [`${gateway}verified`]: 'true',
        [`${gateway}stable`]: 'false',
        [`${gateway}trusted`]: 'true',
        [`${gateway}data-id`]: id,
        [`${gateway}hops`]: '0',
        [`${gateway}data-item-data-offset`]: words.name === 'neutral' ? '150' : '450',
        [`${words.chain.toLowerCase()}tag-app`]: 'one, two',
        [`${words.chain.toLowerCase()}tag-title`]: 'cafX-Bad: 1',
      })
      t.equal(await verified(on, path, 'GET', answered), true, `${path} verifies`)
      t.equal(
        await verified(on, `/raw/${someId()}`, 'GET', answered),
        false,
        'not as the answer to another path',
      )
    }
    t.same(on.requested, [], 'no other gateway was asked')
  })
}

t.test('HEAD says what GET says, without the body', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  await on.keep(id, randomBytes(5000), about)
  for (const headers of [{}, { range: 'bytes=10-19' }, { range: 'bytes=1-2,4-5' }]) {
    const get = await on.ask(`/raw/${id}`, { headers })
    const head = await on.ask(`/raw/${id}`, { headers, method: 'HEAD' })
    t.equal(head.status, get.status)
    t.equal(head.body.length, 0)
    t.same(names(head), names(get))
    t.equal(head.headers['content-length'], get.headers['content-length'])
    t.equal(await verified(on, `/raw/${id}`, 'HEAD', head), true)
  }
})

t.test(
  'parts and 304 name the digest of the whole, and their signature covers their own status',
  async (t) => {
    const on = await stage()
    t.teardown(() => on.close())
    const id = someId()
    const body = randomBytes(100_000)
    await on.keep(id, body, about)
    const path = `/${id}`
    const part = await on.ask(path, { headers: { range: 'bytes=500-70499' } })
    t.equal(part.status, 206)
    t.same(part.body, body.subarray(500, 70_500))
    t.match(part.headers, {
      'content-range': 'bytes 500-70499/100000',
      'repr-digest': digestField(body),
      etag: `"${digestText(body)}"`,
      'content-type': about.contentType,
    })
    t.notOk('content-digest' in part.headers)
    t.equal(await verified(on, path, 'GET', part), true)

    const parts = await on.ask(path, { headers: { range: 'bytes=0-9,99990-' } })
    t.equal(parts.status, 206)
    t.match(parts.headers['content-type'], /^multipart\/byteranges; boundary=-{26}[0-9a-f]{24}$/)
    t.equal(parts.body.length, Number(parts.headers['content-length']))
    t.ok(parts.body.includes(body.subarray(99_990)))
    t.equal(await verified(on, path, 'GET', parts), true)

    const etag = part.headers.etag ?? ''
    const unchanged = await on.ask(path, { headers: { 'if-none-match': `"x", W/${etag}` } })
    t.equal(unchanged.status, 304)
    t.equal(unchanged.body.length, 0)
    t.match(unchanged.headers, { etag, 'cache-control': /max-age/, vary: 'Service-Worker' })
    for (const name of [
      'content-type',
      'content-length',
      'content-digest',
      'content-encoding',
      'content-range',
      'repr-digest',
      'signature',
      'signature-input',
    ]) {
      t.notOk(name in unchanged.headers, name)
    }
    const kept = freshened(await on.ask(path), unchanged)
    t.equal(await verified(on, path, 'GET', kept), true, 'what a cache keeps still verifies')
  },
)

t.test('refused answers are plain and unsigned', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  await on.keep(id, randomBytes(100), about)
  const unknown = someId()
  const crooked = `${'A'.repeat(42)}B`
  const table: [string, string, Record<string, string>, number, string, Record<string, string>][] = [
    [
      'GET',
      `/raw/${unknown}`,
      {},
      404,
      'Not found',
      { 'cache-control': 'public, max-age=60, must-revalidate' },
    ],
    ['GET', `/${unknown}/some/path`, {}, 404, 'Not found', {}],
    ['GET', `/${crooked}`, {}, 400, `Invalid ID: ${crooked}`, {}],
    ['GET', `/raw/${crooked}/`, {}, 400, `Invalid ID: ${crooked}`, {}],
    ['GET', `/${id}`, { range: 'bytes' }, 400, "Malformed 'range' header", {}],
    [
      'GET',
      `/${id}`,
      { range: 'bytes=100-' },
      416,
      'Range not satisfiable',
      { 'content-range': 'bytes */100' },
    ],
    ['GET', `/${id}`, { 'if-match': '"x"' }, 412, 'Precondition failed', {}],
    ['GET', '/nowhere', {}, 404, 'Not found', {}],
    ['GET', `/raw/${id}/deeper`, {}, 404, 'Not found', {}],
    ['GET', '/raw/../../../etc/passwd', {}, 404, 'Not found', {}],
    ['GET', `/raw/${id.slice(1)}`, {}, 404, 'Not found', {}],
    ['DELETE', `/${id}`, {}, 405, 'Method not allowed', { allow: 'GET, HEAD, OPTIONS' }],
    ['POST', `/raw/${id}`, {}, 405, 'Method not allowed', { allow: 'GET, HEAD, OPTIONS' }],
  ]
  for (const [method, path, headers, status, text, expected] of table) {
    const answered = await on.ask(path, { method, headers })
    t.equal(answered.status, status, `${method} ${path}`)
    t.equal(answered.body.toString(), text)
    t.match(answered.headers, { ...expected, 'access-control-allow-origin': '*' })
    const headerNames = Object.keys(answered.headers)
    t.notOk(
      headerNames.some((name) => name.startsWith('signature') || name.startsWith('x-gateway')),
      `${path} says nothing`,
    )
  }
})

t.test('a request keeps its id; browsers may ask from anywhere', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const path = `/${someId()}`
  const echoed = await on.ask(path, { headers: { 'x-request-id': ' trace:1.2_3-4 ' } })
  t.equal(echoed.headers['x-request-id'], 'trace:1.2_3-4')
  const made = await on.ask(path, { headers: { 'x-request-id': 'not allowed!' } })
  t.match(made.headers['x-request-id'], /^[A-Za-z0-9_-]{22}$/)
  t.not((await on.ask(path)).headers['x-request-id'], made.headers['x-request-id'])
  const headers = { 'access-control-request-headers': 'x-one, range', 'access-control-request-method': 'GET' }
  const preflight = await on.ask(path, { method: 'OPTIONS', headers })
  t.equal(preflight.status, 204)
  t.match(preflight.headers, {
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'GET,HEAD,PUT,PATCH,POST,DELETE',
    'access-control-allow-headers': 'x-one, range',
  })
})

t.test('a frame may be asked for by POST', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  const body = Buffer.from('a frame')
  await on.keep(id, body)
  const answered = await on.ask(`/local/farcaster/frame/${id}`, {
    method: 'POST',
    headers: { range: 'bytes=0-1' },
  })
  t.equal(answered.status, 200)
  t.same(answered.body, body)
})

t.test('content becomes stable as the tip moves away from it', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  await on.keep(id, Buffer.from('x'), { height: 100 })
  const stable = async (): Promise<(string | undefined)[]> => {
    const { headers } = await on.ask(`/${id}`)
    return [headers['x-gateway-stable'], headers['cache-control']]
  }
  t.same(await stable(), ['false', 'public, max-age=43200'], 'while the tip is unknown')
  on.tip.move(117)
  t.same(await stable(), ['false', 'public, max-age=43200'])
  on.tip.move(118)
  t.same(await stable(), ['true', 'public, max-age=2592000, immutable'])
  on.tip.move(110)
  t.same(await stable(), ['false', 'public, max-age=43200'], 'after a deep fork')
})

t.test('changes of the catalog are seen at the next request', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  const body = Buffer.from('learned')
  await on.keep(id, body, { verified: false, trusted: false })
  t.match((await on.ask(`/${id}`)).headers, {
    'x-gateway-verified': 'false',
    'content-type': 'application/octet-stream',
    'cache-control': 'public, max-age=7200',
  })
  await on.keep(id, body, { verified: true, contentType: 'text/plain' })
  t.match((await on.ask(`/${id}`)).headers, { 'x-gateway-verified': 'true', 'content-type': 'text/plain' })
})

t.test('empty content is whole, cached and has a digest', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  await on.keep(id, Buffer.alloc(0), { contentType: 'text/plain' })
  const answered = await on.ask(`/${id}`)
  t.match(answered, {
    status: 200,
    headers: { 'content-length': '0', 'content-digest': digestField(Buffer.alloc(0)) },
  })
  t.equal((await on.ask(`/${id}`, { headers: { range: 'bytes=0-' } })).status, 416)
})

t.test('HEAD and conditions are answered from the catalog, without opening a source', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  const body = Buffer.from('known but not here')
  const digest = createHash('sha256').update(body).digest()
  const attributes = {
    id,
    size: body.length,
    digest,
    contentType: 'text/plain',
    verified: true,
    trusted: true,
  }
  await on.rig.keeper.ask({ kind: 'learn', attributes: [attributes] })
  const head = await on.ask(`/${id}`, { method: 'HEAD' })
  t.match(head, {
    status: 200,
    headers: {
      'content-length': String(body.length),
      'content-type': 'text/plain',
      'content-digest': digestField(body),
      'x-cache': 'MISS',
      'x-gateway-verified': 'false',
    },
  })
  t.equal(await verified(on, `/${id}`, 'HEAD', head), true)
  const etag = `"${digestText(body)}"`
  t.equal((await on.ask(`/${id}`, { headers: { 'if-none-match': etag } })).status, 304)
  t.equal((await on.ask(`/${id}`, { headers: { range: 'bytes=99-' } })).status, 416)
  t.same(on.requested, [])

  const vague = someId()
  await on.rig.keeper.ask({
    kind: 'learn',
    attributes: [{ id: vague, size: 3, verified: false, trusted: false }],
  })
  on.has.set(vague, { body: Buffer.from('abc'), contentType: 'text/css' })
  t.match(await on.ask(`/${vague}`, { method: 'HEAD' }), {
    status: 200,
    headers: { 'content-type': 'text/css' },
  })
  t.same(on.requested, [`/raw/${vague}`], 'where the type is not known, a source is asked')
})

t.test(
  'a rotten blob is never called verified: it is found, dropped and fetched again in the same request',
  async (t) => {
    const on = await stage()
    t.teardown(() => on.close())
    const id = someId()
    const body = randomBytes(500)
    const path = await on.keep(id, body)
    on.has.set(id, { body })
    t.equal((await on.ask(`/${id}`)).headers['x-gateway-verified'], 'true')
    const rotten = Buffer.from(body)
    rotten[7] = (rotten[7] ?? 0) ^ 1
    // The rot changes the file's time, as any write does.
    writeFileSync(path, rotten)
    utimesSync(path, new Date(), new Date(statSync(path).mtimeMs + 5000))
    await pause(disbelieveMs)
    const answered = await on.ask(`/${id}`)
    t.same(answered.body, body)
    t.match(answered, { status: 200, headers: { 'x-cache': 'MISS', 'x-gateway-verified': 'false' } })
    t.equal(on.requested.length, 1)
    const again = await eventually('a hit', async () => {
      const next = await on.ask(`/${id}`)
      return next.headers['x-cache'] === 'HIT' ? next : undefined
    })
    t.same(again.body, body)
  },
)

t.test('a blob that vanished from disk is fetched again', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  const body = randomBytes(500)
  await on.keep(id, body)
  on.has.set(id, { body })
  await on.ask(`/${id}`)
  await on.rig.store.remove(createHash('sha256').update(body).digest())
  await pause(disbelieveMs)
  const answered = await on.ask(`/${id}`)
  t.same(answered.body, body)
  t.equal(answered.headers['x-cache'], 'MISS')
})

t.test('a large blob is served while it is checked, but not as verified', async (t) => {
  let release: (sound: boolean) => void = () => undefined
  const checked = new Promise<boolean>((resolve) => {
    release = resolve
  })
  const transfers = {
    open: () => Promise.reject(new Error('not asked')),
    check: () => checked,
    ...contentOnly,
  }
  const on = await stage({ options: { checkWaitBytes: 1000 }, parts: { transfers } })
  t.teardown(() => on.close())
  const id = someId()
  const body = randomBytes(1001)
  await on.keep(id, body)
  const early = await on.ask(`/${id}`)
  t.same(early.body, body)
  t.match(early.headers, { 'x-cache': 'HIT', 'x-gateway-verified': 'false', etag: `"${digestText(body)}"` })
  t.notOk('content-digest' in early.headers)
  release(true)
  const late = await on.ask(`/${id}`)
  t.match(late.headers, { 'x-gateway-verified': 'true', 'content-digest': digestField(body) })
})

t.test('admission gets the planned bytes before, and the sent bytes after', async (t) => {
  const planned: number[] = []
  const sent: number[] = []
  let prechecks = 0
  const grant = { lines: '\r\nX-Receipt: one', returnUnsent: (bytes: number) => sent.push(bytes) }
  const admission: Admission = {
    freeDelayMs: () => 0,
    admit({ bytes, firstTokenTaken }) {
      planned.push(firstTokenTaken === true ? -bytes : bytes)
      const denial = { status: 429, contentType: 'text/plain', lines: '\r\nRetry-After: 7' } as const
      if (bytes > 100) return { ...denial, body: 'too much', reason: 'ip' }
      return bytes === 50 ? Promise.resolve(grant) : grant
    },
    takeFirst() {
      prechecks += 1
      return prechecks === 1 || Promise.resolve(true)
    },
  }
  const on = await stage({ parts: { admission } })
  t.teardown(() => on.close())
  const id = someId()
  await on.keep(id, randomBytes(200))
  const denied = { status: 429, headers: { 'retry-after': '7' } }
  t.match(await on.ask(`/${id}`), { ...denied, body: Buffer.from('too much') })
  const head = await on.ask(`/${id}`, { method: 'HEAD' })
  t.match(head, { status: 200, headers: { 'x-receipt': 'one', 'content-length': '200' } })
  const part = await on.ask(`/${id}`, { headers: { range: 'bytes=0-49' } })
  t.match(part, { status: 206, headers: { 'x-receipt': 'one' } }, 'a promise does as well')
  t.same([planned, sent, prechecks], [[200, 0, 50], [0, 50], 0], 'content that is here needs no precheck')
  t.equal((await on.ask(`/${someId()}`)).status, 404)
  t.equal((await on.ask(`/${someId()}`)).status, 404)
  t.same([planned.length, prechecks], [3, 2], 'content that is not here costs the token of its precheck')
})

t.test('other routes get the common header lines and are counted, and a bug in one is a 500', async (t) => {
  const on = await stage({
    routes: [
      {
        family: 'info',
        path: '/gateway/info',
        methods: ['GET', 'HEAD'],
        about: [{ path: '/gateway/info', summary: 'info', statuses: [200] }],
        handle: (_, reply, lines) => reply.end({ status: 200, block: lines }, 'info'),
      },
      {
        family: 'other',
        path: '/tx/',
        methods: ['GET'],
        about: [{ path: '/tx/{id}', summary: 'a bug', statuses: [500] }],
        async handle() {
          throw new Error('a bug')
        },
      },
    ],
  })
  t.teardown(() => on.close())
  const info = await on.ask('/GATEWAY/info', { headers: { 'x-request-id': 'one' } })
  t.match(info, { status: 200, headers: { 'x-request-id': 'one' }, body: Buffer.from('info') })
  t.equal(info.headers['cache-control'], 'public, max-age=30', 'who says nothing is kept for a short while')
  t.match(await on.ask('/gateway/info', { method: 'PUT' }), {
    status: 405,
    headers: { allow: 'GET, HEAD, OPTIONS' },
  })
  t.match(await on.ask('/tx/anything/below'), { status: 500, body: Buffer.from('Internal server error') })
  t.equal((await on.ask('/tx')).status, 404)
  const text = on.meters.text()
  t.match(text, 'http_requests_total{route="info",status="2xx"} 1')
  t.match(text, 'http_requests_total{route="other",status="5xx"} 1')
  t.equal(on.meters.total('flows_in_flight'), 0)
})

t.test('the keeper is told which blobs were served', async (t) => {
  let tick: () => void = () => undefined
  const messages: unknown[] = []
  const clock = {
    now: () => 1_000_000,
    monotonic: () => 1,
    after: () => ({ cancel: () => undefined }),
    every: (_: number, act: () => void) => {
      tick = act
      return { cancel: () => undefined }
    },
  }
  const keeper = {
    tell: (message: unknown) => messages.push(message) > 0,
    ask: () => Promise.reject(new Error('not asked')),
  }
  const on = await stage({ parts: { clock, keeper } })
  t.teardown(() => on.close())
  const id = someId()
  const body = Buffer.from('touched')
  const path = await on.keep(id, body)
  t.ok(existsSync(path))
  await on.ask(`/${id}`)
  await on.ask(`/${id}`)
  tick()
  tick()
  t.same(messages, [{ kind: 'touched', digests: [createHash('sha256').update(body).digest()] }])
})
