/**
 * What caches in front may keep, over all paths of the three services: every answer says so, none that is public depends on a
 * request header that it does not name, and HEAD and 304 leave what is kept as it was.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { Agent, request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import type { Id } from '../../src/format/id.js'
import { sandboxLabel } from '../../src/names/sandbox-host.js'
import { verifiedByFirst } from '../attest/verifiers.js'
import { run } from '../flow/running.js'
import { type Answered, freshened } from '../gateway/rig.js'

const adminKey = 'a-key-for-this-test-only'
const unknownId = 'A'.repeat(43)

/**
 * Headers that steps read, with values that may lead to another answer. Those of a group are sent together, and each alone only
 * where that changed the answer.
 */
const groups: readonly Readonly<Record<string, readonly string[]>>[] = [
  { accept: ['text/html,*/*;q=0.8', 'application/graphql-response+json', 'image/png'] },
  { 'sec-fetch-mode': ['navigate', 'cors'] },
  { 'service-worker': ['script'] },
  { referer: ['own', 'http://elsewhere.example/'] },
  {
    'user-agent': ['Mozilla/5.0', ''],
    'x-forwarded-for': ['192.0.2.7'],
    'x-real-ip': ['192.0.2.7'],
    'x-request-id': ['x'],
    'accept-encoding': ['gzip'],
    'access-control-request-headers': ['x-a'],
    cookie: ['a=b'],
    forwarded: ['for=192.0.2.7;host=evil.example'],
    origin: ['http://evil.example'],
    'x-forwarded-host': ['evil.example'],
    'x-forwarded-proto': ['https'],
    'x-original-url': ['/evil'],
  },
  // Hints of other gateways, which no step reads by a name that is one word (gateway/hints.ts).
  {
    'x-gateway-hops': ['2', '9'],
    'x-gateway-via': ['gateway.example'],
    'x-gateway-origin': ['gateway.example'],
    'x-gateway-root-transaction-id': [unknownId],
    'x-gateway-root-path': [unknownId],
    'x-ar-io-hops': ['9'],
    'ao-peer-port': ['1'],
  },
  {
    authorization: ['Bearer x'],
    'content-digest': ['sha-256=:AAAA:'],
    'content-type': ['text/plain'],
    'payment-signature': ['e30='],
    'stripe-signature': ['t=1'],
    'x-data-item-tags': ['[]'],
    'x-nonce': ['x'],
    'x-owner-signature': ['x'],
    'x-paid-by': [unknownId],
    'x-payment': ['e30='],
    'x-public-key': ['x'],
    'x-signature': ['x'],
    'x-signature-type': ['2'],
  },
]

/**
 * The cache itself keeps answers apart by them: it stores by address and host, and answers conditions and ranges out of what it
 * has (RFC 9110 sections 13 and 14). The others belong to bodies, which come with no GET.
 */
const ofCaches = [
  'host',
  'if-match',
  'if-none-match',
  'if-range',
  'range',
  'content-length',
  'transfer-encoding',
  'upload-complete',
  'upload-incomplete',
  'upload-length',
  'upload-offset',
]
/** What is read of the answers of others. */
const ofAnswers = ['signature', 'signature-input']

/** What may be kept of the upload and the payment service: what is the same for everybody, and never what a wallet has. */
const publicPaths = {
  upload: [/^(\/v1)?\/?(info|openapi\.json|api-docs)?$/, /^(\/v1)?\/page\/[^/]+$/],
  payment: [
    /^(\/v1)?\/?(info|openapi\.json|api-docs)?$/,
    /^\/v1\/price\/(bytes\/)?\d+$/,
    /^\/v1\/(rates(\/[a-z]+)?|currencies|countries)$/,
  ],
}

/** Differ from one answer to the next, for whoever asks: none says what is answered. */
const ownLines = /^(date|signature|signature-input|x-request-id|x-cache|connection|keep-alive)$/i

interface Place {
  readonly base: string
  readonly host: string
  readonly path: string
}
type Ask = (place: Place, headers?: Record<string, string>, method?: string) => Promise<Answered>

/** Names that the sources give to `header(...)`. */
function namesInSources(): string[] {
  const folder = fileURLToPath(new URL('../../../src', import.meta.url))
  const found = new Set<string>()
  for (const entry of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!entry.endsWith('.ts') || /^(client|devnet|cli)\//.test(entry)) continue
    for (const [, name = ''] of readFileSync(join(folder, entry), 'utf8').matchAll(
      /\bheader\('([a-z0-9-]+)'\)/g,
    ))
      found.add(name)
  }
  return [...found]
}

function asker(t: Test): Ask {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })
  t.teardown(() => agent.destroy())
  return ({ base, host, path }, headers = {}, method = 'GET') =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(base)
      const given = { hostname, port, path, method, headers: { host, ...headers }, agent }
      const exchange = httpRequest(given, (response) => {
        const pieces: Buffer[] = []
        response.on('data', (piece: Buffer) => pieces.push(piece))
        response.on('error', reject)
        response.on('end', () => {
          const { rawHeaders, statusCode = 0, complete } = response
          const fields = rawHeaders.flatMap((name, at) =>
            at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? ''] as const] : [],
          )
          const merged = Object.fromEntries(fields.map(([name, value]) => [name.toLowerCase(), value]))
          resolve({ status: statusCode, headers: merged, fields, body: Buffer.concat(pieces), complete })
        })
      })
      exchange.on('error', reject)
      exchange.end()
    })
}

/** Every path that a service describes, once with its examples and once for each thing that is there. */
async function described(
  base: string,
  things: readonly Record<string, string>[],
): Promise<{ path: string; methods: string[] }[]> {
  const { paths } = (await (await fetch(`${base}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { parameters: { name: string; in: string; example?: string }[] }>>
  }
  return Object.entries(paths).flatMap(([path, operations]) => {
    const methods = Object.keys(operations).map((one) => one.toUpperCase())
    const { parameters = [] } = Object.values(operations)[0] ?? {}
    const query = parameters.filter((one) => one.in === 'query' && one.example)
    const exchange = query.map(({ name, example = '' }) => `${name}=${encodeURIComponent(example)}`).join('&')
    const filled = things.map((thing) =>
      path.replace(
        /\{(\w+)\}/g,
        (_, name: string) => thing[name] ?? parameters.find((one) => one.name === name)?.example ?? 'png',
      ),
    )
    return [...new Set(filled)].map((one) => ({
      path: exchange === '' ? one : `${one}?${exchange}`,
      methods,
    }))
  })
}

/** Whether a cache that many share may keep it. */
function isPublic({ headers }: Answered): boolean {
  return !/\b(no-store|private)\b/.test(headers['cache-control'] ?? '')
}

function visible({ status, fields, body }: Answered): string {
  const lines = fields.filter(([name]) => !ownLines.test(name)).map(([name, value]) => `${name}: ${value}`)
  return `${status}\n${lines.join('\n')}\n\n${body.toString('latin1')}`
}

function names({ headers }: Answered, header: string): boolean {
  return (headers.vary ?? '').toLowerCase().split(/, */).includes(header)
}

function isSame(plain: Answered, other: Answered): boolean {
  // One that is not kept may say so where the other one says how long it may be.
  return visible(plain) === visible(other) || (!isPublic(other) && body(plain) === body(other))
}

function body({ status, body }: Answered): string {
  return `${status} ${body.toString('latin1')}`
}

/**
 * Of the answers with and without headers those that may be kept, where they differ; undefined where they do not, or where the
 * answer changes by itself.
 */
async function differing(
  ask: Ask,
  place: Place,
  headers: Record<string, string>,
  before: Answered,
): Promise<readonly Answered[] | undefined> {
  let plain = before
  for (let tries = 0; ; tries += 1) {
    const other = await ask(place, headers)
    const kept = [plain, other].filter(isPublic)
    if (kept.length === 0 || isSame(plain, other)) return undefined
    if (tries === 3) return kept
    plain = await ask(place)
  }
}

/** That what may be kept is what every client with another value of the header would get. */
async function heeds(t: Test, ask: Ask, place: Place, plain: Answered): Promise<void> {
  const what = `${place.host}${place.path}`
  for (const group of groups) {
    const all = Object.entries(group)
    const first = Object.fromEntries(all.map(([header, [value = '']]) => [header, value]))
    if (all.length > 1 && (await differing(ask, place, first, plain)) === undefined) continue
    const each = all.flatMap(([header, values]) => values.map((value) => [header, value] as const))
    for (const [header, value] of isPublic(plain) ? each : each.slice(0, 1)) {
      const sent = value === 'own' ? `http://${place.host}/` : value
      for (const kept of (await differing(ask, place, { [header]: sent }, plain)) ?? [])
        t.ok(names(kept, header), `${what}: ${kept.status} depends on ${header}: ${value}`)
    }
  }
}

/** That a cache which is told by a 304 that its answer still holds keeps one that verifies. */
async function freshens(t: Test, ask: Ask, place: Place, plain: Answered): Promise<void> {
  const { etag } = plain.headers
  if (plain.status !== 200 || etag === undefined) return
  const what = `${place.host}${place.path}`
  const same = await ask(place, { 'if-none-match': etag })
  t.equal(same.status, 304, what)
  for (const name of ['signature', 'signature-input', 'repr-digest', 'content-digest', 'content-type'])
    t.notOk(name in same.headers, `${what}: a 304 has no ${name}`)
  for (const name of ['cache-control', 'vary', 'etag'])
    t.equal(same.headers[name], plain.headers[name], `${what}: ${name} of a 304`)
  if (plain.headers.signature === undefined) return
  const url = `http://${what}`
  const kept = freshened(plain, same)
  t.ok(await verifiedByFirst({ method: 'GET', url, status: 200, fields: kept.fields }), `${what} verifies`)
}

/** HEAD wherever GET is, with the same head. */
async function heads(t: Test, ask: Ask, place: Place, plain: Answered): Promise<void> {
  const what = `HEAD ${place.host}${place.path}`
  const head = await ask(place, {}, 'HEAD')
  // A GET that begins an upload, of which nobody would know.
  if (place.path.includes('/-1/-1')) {
    t.equal(head.status, 405, what)
    return
  }
  t.equal(head.body.length, 0, what)
  t.equal(head.status, plain.status, what)
  for (const name of ['content-type', 'cache-control', 'vary', 'etag', 'location'])
    t.equal(head.headers[name], plain.headers[name], `${what}: ${name}`)
}

t.test('every header that a step reads is one of those that are tried', async (t) => {
  const known = new Set([...groups.flatMap((group) => Object.keys(group)), ...ofCaches, ...ofAnswers])
  t.strictSame(
    namesInSources().filter((name) => !known.has(name)),
    [],
  )
})

t.test('caches in front give every client what it would get', async (t) => {
  const { urls, examples } = await run(t, t.testdir(), { DEVNET_SEED: 'true', ADMIN_API_KEY: adminKey })
  const ask = asker(t)
  const { gateway = '', upload = '', payment = '' } = urls
  const page = (examples.page ?? '') as Id
  const { port } = new URL(gateway)
  const root = `localhost:${port}`
  const raw = { base: gateway, host: root, path: `/raw/${page}` }
  const { 'x-gateway-digest': digest = '' } = (await ask(raw)).headers
  const things = [{}, { id: page, digest }]

  const places: (Place & { readonly methods: readonly string[] })[] = []
  const read = ['GET', 'HEAD']
  for (const { path, methods } of await described(gateway, things)) {
    places.push({ base: gateway, host: root, path, methods })
    const isContent = path.includes(page) || path.includes(digest)
    if (isContent) places.push({ base: gateway, host: `127.0.0.1:${port}`, path, methods })
    if (isContent) places.push({ base: gateway, host: `${sandboxLabel(page)}.${root}`, path, methods })
  }
  const byHost: Readonly<Record<string, readonly string[]>> = {
    [`site.${root}`]: ['/', '/nothing', '/favicon.ico'],
    [`unknown-name.${root}`]: ['/', '/x.css'],
    [root]: ['/nothing'],
  }
  for (const [host, paths] of Object.entries(byHost))
    for (const path of paths) places.push({ base: gateway, host, path, methods: read })
  for (const base of [upload, payment]) {
    const { host } = new URL(base)
    for (const { path, methods } of await described(base, [{}])) places.push({ base, host, path, methods })
    places.push({ base, host, path: '/nothing', methods: read })
  }

  for (const place of places) {
    const what = `${place.host}${place.path}`
    const plain = await ask(place)
    const caching = plain.headers['cache-control']
    t.ok(caching, `${what}: ${plain.status} says how long it may be kept`)
    if (place.methods.includes('GET')) {
      t.not(plain.status, 405, what)
      await heads(t, ask, place, plain)
    }
    const wrong = await ask(place, {}, 'TRACE')
    t.match(wrong.headers, { 'cache-control': 'no-store' }, `TRACE ${what}: ${wrong.status}`)
    if (place.base !== gateway) {
      const shapes = publicPaths[place.base === upload ? 'upload' : 'payment']
      const isNamed = shapes.some((shape) => shape.test(place.path))
      t.equal(isPublic(plain), isNamed && plain.status < 400, `${what}: ${plain.status} ${caching}`)
    }
    await freshens(t, ask, place, plain)
    await heeds(t, ask, place, plain)
  }
  t.ok(places.length > 150)
})
