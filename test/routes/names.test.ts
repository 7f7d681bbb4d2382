import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { vocabularies } from '../../src/attest/vocabulary.js'
import type { Id } from '../../src/format/id.js'
import type { HostOptions } from '../../src/gateway/gateway-parts.js'
import { Guard } from '../../src/gateway/guard.js'
import type { BlockList } from '../../src/moderation/moderation-messages.js'
import { parseName } from '../../src/names/name.js'
import { namesDefaults } from '../../src/names/names-defaults.js'
import type { Name, NameRecord } from '../../src/names/names-port.js'
import { openNames } from '../../src/names/open-names.js'
import { sandboxLabel } from '../../src/names/sandbox-host.js'
import type { Route } from '../../src/serving/route.js'
import { eventually } from '../eventually.js'
import { type Answered, type Stage, stage } from '../gateway/rig.js'
import { cacheOptions } from '../names/cache-options.js'
import { scratch } from '../scratch.js'
import { someId, type Upstream, upstream } from '../source/rig.js'

const page = Buffer.from('<!doctype html><p>page</p>')
const style = Buffer.from('p { color: red }')
const stranger = Buffer.from('<!doctype html><p>nobody has this name</p>')
const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('base64url')

interface Scene {
  readonly on: Stage
  readonly site: Id
  readonly pageId: Id
  readonly has: Map<string, NameRecord>
  /** Status with which the gateway of names answers, by name; instead of what `has` says. */
  readonly statuses: Map<string, number>
  readonly blocked: Set<string>
  readonly resolving: Upstream
  ask(
    host: string,
    path: string,
    wish?: { method?: string; headers?: Record<string, string> },
  ): Promise<Answered>
}

interface Wish {
  readonly hosts?: Partial<HostOptions>
  readonly vocabulary?: 'neutral' | 'ar-io'
  readonly isPrepared?: (name: Name) => boolean
}

const named = (text: string): Name => {
  const name = parseName(text)
  if (name === undefined) throw new Error(text)
  return name
}

/** A route that says where it was reached. */
const echoRoute = (path: string, methods: readonly string[] = ['GET', 'HEAD', 'POST']): Route => ({
  family: 'other',
  path,
  methods,
  about: [{ path, summary: 'says where it was reached', statuses: [200] }],
  handle: (request, reply, lines) => reply.end({ status: 200, block: lines }, `route ${request.path}`),
})

const routes = [
  ...['/', '/info', '/gateway/info', '/gateway/healthcheck', '/graphql', '/chunk/', '/chunk', '/tx'].map(
    (path) => echoRoute(path),
  ),
  ...['/gateway/x402/', '/gateway/rate-limit/', '/gateway/resolver/'].map((path) => echoRoute(path)),
]

/** Names are known to a gateway of its own, queried by HEAD; hosts are `gw.example` and `alt.example`. */
async function scene(
  t: Test,
  { hosts = {}, vocabulary = 'neutral', isPrepared = () => false }: Wish = {},
): Promise<Scene> {
  const has = new Map<string, NameRecord>()
  const statuses = new Map<string, number>()
  const blocked = new Set<string>()
  const resolving = await upstream((request, response) => {
    const name = (request.url ?? '').slice(1)
    const found = has.get(name)
    const status = statuses.get(name) ?? (found === undefined ? 404 : 200)
    if (found !== undefined) {
      response.setHeader('X-ArNS-Resolved-Id', found.id)
      response.setHeader('X-ArNS-TTL-Seconds', found.ttlSeconds)
      response.setHeader('X-ArNS-Undername-Limit', found.undernameLimit ?? 10)
      response.setHeader('X-ArNS-Record-Index', found.recordIndex ?? 0)
      if (found.antId !== undefined) response.setHeader('X-ArNS-ANT-Id', found.antId)
    }
    response.writeHead(status).end()
  })
  const { guard } = namesDefaults
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const open = await openNames(
    {
      registryPath: `${scratch('names')}/names`,
      order: ['local', 'gateway'],
      timeoutMs: 30_000,
      lastTimeoutMs: 30_000,
      guard,
      gateway: { url: `${resolving.url}/__NAME__`, release: 'r' },
      cache: cacheOptions,
    },
    systemClock,
    meters,
    silentLog,
  )
  let questions = 0
  const blocks: BlockList = {
    // Nothing that was clear is remembered.
    get version() {
      questions += 1
      return questions
    },
    isReadable: true,
    mayBlockContent: true,
    mayBlockHashes: false,
    blocksDigest: () => false,
    mayBlockSize: () => false,
    blocksId: (id) => blocked.has(id),
    blocksName: (label) => blocked.has(label),
  }
  const on = await stage({
    vocabulary,
    routes,
    parts: {
      guard: new Guard(blocks, { attributes: () => undefined }, 2_592_000),
      hostNames: {
        names: open.names,
        isPrepared,
        hosts: {
          rootHosts: ['gw.example', 'alt.example'],
          protocol: 'https',
          ownPort: 3000,
          sandboxBareHosts: true,
          apexNames: [],
          apexMaxSeconds: 3600,
          enforceUndernameLimit: true,
          ...hosts,
        },
      },
    },
  })
  t.teardown(async () => {
    await on.close()
    await open.close()
    await resolving.close()
  })
  const [site, pageId, styleId] = [someId(), someId(), someId()]
  await on.keep(pageId, page, { contentType: 'text/html', height: 5 })
  await on.keep(styleId, style, { contentType: 'text/css', height: 5 })
  on.tip.move(1000)
  await manifest(on, site, { 'index.html': pageId, 'a b/style.css': styleId, graphql: styleId })
  has.set('site', { id: site, ttlSeconds: 300 })
  return {
    on,
    site,
    pageId,
    has,
    statuses,
    blocked,
    resolving,
    ask: (host, path, wish = {}) => on.ask(path, { ...wish, headers: { host, ...wish.headers } }),
  }
}

async function manifest(on: Stage, id: Id, paths: Record<string, Id>, more: object = {}): Promise<void> {
  const listed = Object.fromEntries(Object.entries(paths).map(([path, one]) => [path, { id: one }]))
  const text = {
    manifest: 'arweave/paths',
    version: '0.2.0',
    index: { path: 'index.html' },
    paths: listed,
    ...more,
  }
  await on.keep(id, Buffer.from(JSON.stringify(text)), {
    contentType: 'application/x.arweave-manifest+json',
    height: 5,
  })
}

t.test('a name is served with all its headers, signed', async (t) => {
  for (const vocabulary of ['neutral', 'ar-io'] as const) {
    const { on, ask, site, pageId, has } = await scene(t, { vocabulary })
    has.set('docs_site', {
      id: site,
      ttlSeconds: 60,
      recordIndex: 2,
      undernameLimit: 7,
      antId: 'a'.repeat(43),
    })
    const prefix = vocabularies[vocabulary].names.toLowerCase()
    const from = Date.now()
    const answered = await ask('docs_site.gw.example', '/')
    t.match(answered, { status: 200, body: page })
    const wanted: Record<string, string | RegExp> = {
      [`${prefix}name`]: 'docs_site',
      [`${prefix}resolved-id`]: site,
      [`${prefix}ttl-seconds`]: '60',
      [`${prefix}basename`]: 'site',
      [`${prefix}record`]: 'docs',
      [`${prefix}ant-id`]: 'a'.repeat(43),
      [`${prefix}undername-limit`]: '7',
      [`${prefix}record-index`]: '2',
      [`${vocabularies[vocabulary].gateway.toLowerCase()}data-id`]: pageId,
      'cache-control': 'public, max-age=60',
      etag: `"${digestOf(page)}.${site}"`,
    }
    t.match(answered.headers, wanted)
    const at = Number(answered.headers[`${prefix}resolved-at`])
    t.ok(at >= from && at <= Date.now(), 'milliseconds')
    for (const name of Object.keys(wanted).filter((one) => one.startsWith(prefix))) {
      t.ok(answered.headers['signature-input']?.includes(`"${name}"`), `${name} is signed`)
    }
    t.match((await ask('site.gw.example', '/')).headers, {
      [`${prefix}record`]: '@',
      [`${prefix}basename`]: 'site',
    })
    on.meters.text()
  }
})

t.test('no content answers where a certificate authority looks for a proof', async (t) => {
  const { ask, site, on, pageId, has } = await scene(t, { hosts: { apexNames: [named('site')] } })
  const challenge = '.well-known/acme-challenge/0123456789abcdef'
  const other = '.well-known/pki-validation/fileauth.txt'
  await manifest(on, site, { 'index.html': pageId, [challenge]: pageId }, { fallback: { id: pageId } })
  has.set('site', { id: site, ttlSeconds: 300 })
  for (const host of ['site.gw.example', 'gw.example', 'www.gw.example']) {
    t.match(await ask(host, '/.well-known/any'), { status: 200, body: page }, host)
    for (const path of [challenge, other])
      t.equal((await ask(host, `/${path}`)).status, 404, `${host}/${path}`)
  }
})

t.test('every path below a name is a path of its manifest', async (t) => {
  const { ask, site, on } = await scene(t)
  const rows: [path: string, status: number, body: Buffer | string][] = [
    ['/', 200, page],
    ['/?q=1', 200, page],
    ['/index.html', 200, page],
    ['/a%20b/style.css', 200, style],
    ['/graphql', 200, style],
    ['/gateway/info', 404, 'Not found'],
    ['/gateway/healthcheck', 404, 'Not found'],
    ['/chunk/12', 404, 'Not found'],
    ['/info', 404, 'Not found'],
    [`/raw/${site}`, 404, 'Not found'],
    ['/%', 400, 'Bad Request: Invalid URL encoding'],
    ['/gateway/x402/test', 200, 'route /gateway/x402/test'],
    ['/gateway/rate-limit/ip/1.2.3.4', 200, 'route /gateway/rate-limit/ip/1.2.3.4'],
  ]
  for (const [path, status, body] of rows) {
    const answered = await ask('site.gw.example', path)
    t.equal(answered.status, status, path)
    t.equal(answered.body.toString(), body.toString(), path)
    if (status === 404)
      t.equal(answered.headers['x-ns-resolved-id'], site, 'the name was resolved all the same')
  }
  t.match(await ask('site.gw.example', '/graphql', { method: 'POST' }), { status: 405 })
  t.match(await ask('SITE.GW.Example:3000', '/'), { status: 200 })
  t.match(await ask('x.site.gw.example', '/gateway/info'), { status: 302 }, 'only the leftmost label counts')
  t.match(await ask('gw.example', '/gateway/info'), { body: Buffer.from('route /gateway/info') })
  t.match(await ask('www.gw.example', '/'), { body: Buffer.from('route /') })
  const lone = someId()
  await on.keep(lone, style, { contentType: 'text/css', height: 5 })
  t.same((await ask('gw.example', `/raw/${lone}`)).body, style)
})

t.test('a 304 means the same bytes and the same resolution', async (t) => {
  const { ask, has, site, pageId } = await scene(t)
  const tag = `"${digestOf(page)}.${site}"`
  const plain = `"${digestOf(page)}"`
  const status = async (headers: Record<string, string>, path = '/'): Promise<number> =>
    (await ask('site.gw.example', path, { headers })).status
  t.equal(await status({ 'if-none-match': tag }), 304)
  t.equal(await status({ 'if-none-match': `"x", W/${tag}` }), 304)
  t.equal(await status({ 'if-none-match': '*' }), 304)
  t.equal(await status({ 'if-none-match': plain }), 200)
  t.equal(await status({ 'if-match': tag }), 200)
  t.equal(await status({ 'if-match': plain }), 412)
  t.equal(await status({ range: 'bytes=0-3', 'if-range': tag }), 206)
  t.equal(await status({ range: 'bytes=0-3', 'if-range': plain }), 200)
  const unchanged = await ask('site.gw.example', '/', { headers: { 'if-none-match': tag } })
  t.match(unchanged.headers, { etag: tag, 'cache-control': 'public, max-age=300' })
  t.notOk(
    'x-ns-resolved-id' in unchanged.headers,
    'what caches keep is covered by the signature that they keep',
  )
  has.set('same', { id: pageId, ttlSeconds: 300 })
  const direct = await ask('same.gw.example', '/', { headers: { 'if-none-match': tag } })
  t.match(direct, { status: 200, headers: { etag: `"${digestOf(page)}.${pageId}"` } })
  const label = sandboxLabel(pageId)
  t.equal(
    (await ask(`${label}.gw.example`, `/${pageId}`)).headers.etag,
    plain,
    'by id the tag is the digest alone',
  )
  t.equal((await ask('gw.example', `/raw/${pageId}`)).headers.etag, plain)
  const part = await ask('site.gw.example', '/', { headers: { range: 'bytes=2-5' } })
  t.match(part, { status: 206, body: page.subarray(2, 6), headers: { 'x-ns-name': 'site', etag: tag } })
  const head = await ask('site.gw.example', '/', { method: 'HEAD' })
  t.match(head, {
    status: 200,
    body: Buffer.alloc(0),
    headers: { 'content-length': String(page.length), etag: tag },
  })
})

t.test('content from a source has the same headers under a name as stored content', async (t) => {
  const { on, ask, has } = await scene(t)
  const id = someId()
  on.has.set(id, { body: style, contentType: 'text/css' })
  has.set('fresh', { id, ttlSeconds: 77 })
  const wanted = {
    'cache-control': 'public, max-age=77',
    etag: `"${digestOf(style)}.${id}"`,
    'x-ns-name': 'fresh',
  }
  const brought = await ask('fresh.gw.example', '/any/path')
  t.match(brought, { status: 200, body: style, headers: { 'x-cache': 'MISS', ...wanted } })
  const kept = await eventually('a hit', async () => {
    const again = await ask('fresh.gw.example', '/any/path')
    return again.headers['x-cache'] === 'HIT' && again
  })
  t.match(kept, { status: 200, body: style, headers: wanted })
  has.set('gone', { id: someId(), ttlSeconds: 77 })
  t.match(await ask('gone.gw.example', '/'), { status: 404, headers: { 'x-ns-name': 'gone' } })
})

t.test('undernames beyond the limit are answered 402', async (t) => {
  const { ask, has, site } = await scene(t)
  has.set('ten_site', { id: site, ttlSeconds: 300, recordIndex: 10, undernameLimit: 10 })
  has.set('more_site', { id: site, ttlSeconds: 300, recordIndex: 11, undernameLimit: 10 })
  t.match(await ask('ten_site.gw.example', '/'), { status: 200 })
  const over = await ask('more_site.gw.example', '/')
  t.match(over, { status: 402, headers: { 'cache-control': 'no-store', 'x-ns-record-index': '11' } })
  t.equal(over.body.toString(), 'ArNS undername limit exceeded. Purchase additional undernames to continue.')
  const lenient = await scene(t, { hosts: { enforceUndernameLimit: false } })
  lenient.has.set('more_site', { id: lenient.site, ttlSeconds: 300, recordIndex: 11, undernameLimit: 10 })
  t.match(await lenient.ask('more_site.gw.example', '/'), { status: 200 })
})

t.test('a blocked name is not even resolved; its undernames are names of their own', async (t) => {
  const { ask, has, site, blocked, resolving, statuses } = await scene(t)
  has.set('a_site', { id: site, ttlSeconds: 300 })
  blocked.add('site')
  const answered = await ask('site.gw.example', '/index.html')
  t.match(answered, { status: 451, headers: { 'cache-control': 'public, max-age=2592000, immutable' } })
  t.match(answered.body.toString(), /content policy\. Blocked name: site$/)
  t.equal(resolving.requests.length, 0)
  t.match(await ask('SITE.gw.example', '/'), { status: 451 })
  t.match(await ask('a_site.gw.example', '/'), { status: 200 })
  blocked.delete('site')
  t.match(await ask('site.gw.example', '/'), { status: 200 })
  has.set('theirs', { id: site, ttlSeconds: 300 })
  statuses.set('theirs', 451)
  t.match(await ask('theirs.gw.example', '/'), { status: 451, headers: { 'x-ns-resolved-id': undefined } })
})

t.test('blocked content is not served by any name', async (t) => {
  const { ask, site, pageId, blocked } = await scene(t)
  blocked.add(pageId)
  t.match(await ask('site.gw.example', '/'), {
    status: 451,
    headers: { 'x-ns-resolved-id': site, etag: undefined },
  })
  t.match(
    await ask('site.gw.example', '/graphql'),
    { status: 200 },
    'what else the manifest names is not blocked',
  )
  blocked.add(site)
  t.match(await ask('site.gw.example', '/graphql'), { status: 451 }, 'nor served through a manifest that is')
})

t.test('a name that nobody knows is answered by the page for that', async (t) => {
  const { on, ask, has } = await scene(t, { hosts: { notFoundName: named('unregistered_arns') } })
  const [site, pageId, styleId] = [someId(), someId(), someId()]
  await on.keep(pageId, stranger, { contentType: 'text/html', height: 5 })
  await on.keep(styleId, style, { contentType: 'text/css', height: 5 })
  await manifest(on, site, { 'index.html': pageId, 'style.css': styleId })
  t.match(
    await ask('nobody.gw.example', '/'),
    { status: 404, body: Buffer.from('Not found') },
    'no page either',
  )
  has.set('unregistered_arns', { id: site, ttlSeconds: 300 })
  const shown = await scene(t, { hosts: { notFoundId: site } })
  await shown.on.keep(pageId, stranger, { contentType: 'text/html', height: 5 })
  await shown.on.keep(styleId, style, { contentType: 'text/css', height: 5 })
  await manifest(shown.on, site, { 'index.html': pageId, 'style.css': styleId })
  const root = await shown.ask('nobody.gw.example', '/')
  t.match(root, { status: 404, body: stranger })
  t.match(root.headers, {
    'content-type': 'text/html',
    'cache-control': 'public, max-age=60, must-revalidate',
  })
  t.equal(root.headers['x-ns-resolved-id'], undefined, 'nobody may take the page for what the name means')
  const trail = { 'x-ar-io-via': 'a.example' }
  t.match(
    await shown.ask('nobody.gw.example', '/', { headers: trail }),
    { status: 404, body: stranger, headers: { 'cache-control': 'no-store' } },
    'a trail may be why nobody knows it',
  )
  const known = { 'if-none-match': root.headers.etag ?? '', range: 'bytes=0-1' }
  t.match(await shown.ask('nobody.gw.example', '/', { headers: known }), { status: 404, body: stranger })
  t.match(await shown.ask('nobody.gw.example', '/', { method: 'HEAD' }), {
    status: 404,
    body: Buffer.alloc(0),
  })
  t.match(await shown.ask('nobody.gw.example', '/style.css'), { status: 302, headers: { location: '/' } })
  const rows: [referer: string, status: number][] = [
    ['https://nobody.gw.example/', 200],
    ['http://NOBODY.gw.example/x?y', 200],
    ['https://other.gw.example/', 302],
    ['https://nobody.gw.example:8080/', 302],
    ['nonsense', 302],
  ]
  for (const [referer, status] of rows) {
    const answered = await shown.ask('nobody.gw.example', '/style.css', { headers: { referer } })
    t.equal(answered.status, status, referer)
    if (status === 200)
      t.match(answered, { body: style, headers: { 'cache-control': 'public, max-age=60, must-revalidate' } })
  }
  t.match(await shown.ask('under_nobody.gw.example', '/'), { status: 404, body: Buffer.from('Not found') })
  t.match(await shown.ask('*.gw.example', '/'), { status: 404, body: stranger }, 'no name could be this')
  for (const label of ['a%41', '_', `u_${'a'.repeat(80)}`]) {
    t.equal((await shown.ask(`${label}.gw.example`, '/')).status, 404, label)
  }
  const urls = shown.resolving.requests.map(({ url }) => url)
  t.strictSame(
    [...new Set(urls)].sort(),
    ['/nobody', '/under_nobody'],
    'nobody is asked for what cannot exist',
  )
})

t.test('a name that the program is about to give is being prepared, not unknown', async (t) => {
  const { ask } = await scene(t, { isPrepared: ({ full }) => full === 'soon' || full === 'site' })
  for (const path of ['/', '/a/file']) {
    const answered = await ask('soon.gw.example', path, { headers: { accept: 'text/html' } })
    t.match(answered, { status: 503, headers: { 'retry-after': '2', refresh: '2' } }, path)
    t.equal(answered.headers['cache-control'], 'no-store')
    t.match(answered.body.toString(), /Being prepared.*SLC_STARTING/s)
  }
  t.equal((await ask('other.gw.example', '/')).status, 404)
  t.equal((await ask('site.gw.example', '/')).status, 200, 'a name that means something already')
})

t.test('the page for unknown names may have a name itself', async (t) => {
  const { on, ask, has } = await scene(t, { hosts: { notFoundName: named('unregistered_arns') } })
  const id = someId()
  await on.keep(id, stranger, { contentType: 'text/html', height: 5 })
  has.set('unregistered_arns', { id, ttlSeconds: 300 })
  t.match(await ask('nobody.gw.example', '/'), {
    status: 404,
    body: stranger,
    headers: { 'x-ns-name': undefined },
  })
  t.match(await ask('unregistered_arns.gw.example', '/'), { status: 200, body: stranger })
})

t.test('hosts that cannot be names are answered like unknown names', async (t) => {
  const { ask, on, has, site, resolving } = await scene(t)
  has.set('xn--bcher-kva', { id: site, ttlSeconds: 300 })
  t.match(
    await ask('xn--bcher-kva.gw.example', '/'),
    { status: 200, body: page },
    'punycode is a label as others are',
  )
  const rows: [host: string, status: number][] = [
    [`${'a'.repeat(63)}.gw.example`, 200],
    [`${'a'.repeat(5000)}.gw.example`, 200],
    [`u_${'a'.repeat(5000)}.gw.example`, 404],
    [`${'a.'.repeat(4000)}gw.example`, 404],
    ['..gw.example', 404],
    ['-.gw.example', 404],
    ["'--.gw.example", 404],
    ['%00.gw.example', 404],
    ['a_.gw.example:99999', 404],
    ['b\u00fccher.gw.example', 400],
    ['a b.gw.example', 400],
    ['user@site.gw.example', 400],
    ['site.gw.example/..', 400],
  ]
  for (const [host, status] of rows) t.equal((await ask(host, '/')).status, status, host.slice(0, 40))
  t.equal((await on.ask('/', { headers: { host: '' } })).status, 200, 'a host that is none of ours')
  const urls = resolving.requests.map(({ url }) => url)
  t.strictSame(urls, ['/xn--bcher-kva', '/a', '/-'], 'only what could be a name is asked for')
})

t.test(
  'clients without a name of their own may ask; gateways that ask in a circle are refused',
  async (t) => {
    const { ask } = await scene(t)
    const circle = { 'x-ar-io-hops': '3' }
    t.match(await ask('site.gw.example', '/', { headers: circle }), { status: 502 })
    t.match(await ask('site.gw.example', '/', { headers: { 'user-agent': '' } }), { status: 200 })
    t.match(
      await ask('site.gw.example', '/', { headers: circle }),
      { status: 200 },
      'what is remembered counts',
    )
  },
)

t.test('a failing resolver is not answered as an unknown name', async (t) => {
  const { ask, statuses } = await scene(t)
  statuses.set('down', 500)
  const answered = await ask('down.gw.example', '/')
  t.match(answered, { status: 502, headers: { 'cache-control': 'no-store' } })
})

t.test('content by id is sent to a host of its own', async (t) => {
  const { on, ask, site, pageId } = await scene(t)
  const label = sandboxLabel(pageId)
  const rows: [host: string, path: string, location: string][] = [
    ['gw.example', `/${pageId}`, `https://${label}.gw.example/${pageId}?`],
    ['gw.example', `/${pageId}/`, `https://${label}.gw.example/${pageId}/?`],
    ['gw.example', `/${pageId}/a//b?q=%20`, `https://${label}.gw.example/${pageId}/a/b?q=%20`],
    ['alt.example', `/${pageId}`, `https://${label}.alt.example/${pageId}?`],
    ['stranger.example', `/${pageId}`, `https://${label}.gw.example/${pageId}?`],
    ['127.0.0.1:3000', `/${pageId}`, `https://${label}.gw.example/${pageId}?`],
    ['site.gw.example', `/${pageId}`, `https://${label}.gw.example/${pageId}?`],
    ['www.gw.example', `/${pageId}`, `https://${label}.gw.example/${pageId}?`],
    [`${sandboxLabel(site)}.gw.example`, `/${pageId}`, `https://${label}.gw.example/${pageId}?`],
    ['gw.example:8443', `/${pageId}`, `https://${label}.gw.example:8443/${pageId}?`],
  ]
  for (const [host, path, location] of rows) {
    for (const method of ['GET', 'HEAD']) {
      t.match(
        await ask(host, path, { method }),
        { status: 302, headers: { location } },
        `${method} ${host}${path}`,
      )
    }
  }
  t.match(await ask(`${label}.gw.example`, `/${pageId}`), { status: 200, body: page })
  t.match(await ask(`${label.toUpperCase()}.GW.example`, `/${pageId}`), { status: 200, body: page })
  t.match(await ask(`${sandboxLabel(site)}.alt.example`, `/${site}`), {
    status: 301,
    headers: { location: `/${site}/` },
  })
  t.match(await ask(`${label}.gw.example`, '/'), { body: Buffer.from('route /') })
  t.match(await ask('gw.example', `/raw/${pageId}`), { status: 200 }, 'bytes as such stay')
  t.match(await ask('gw.example', `/${pageId}x`), { status: 404 }, 'a longer segment is no id')
  t.match(await ask('gw.example', `/${'A'.repeat(42)}B`), { status: 400 }, 'nor is one with stray bits')
  t.match(await ask('site.gw.example', `/${pageId}x`), { status: 404, headers: { location: undefined } })
  t.match(await ask('gw.example', `/${pageId}`, { method: 'POST' }), { status: 405 })
  await on.keep(someId(), page)
  const http = await scene(t, { hosts: { protocol: 'http', sandboxBareHosts: false } })
  const moved = await http.ask('site.gw.example:3000', `/${http.pageId}`)
  t.equal(moved.headers.location, `http://${sandboxLabel(http.pageId)}.gw.example:3000/${http.pageId}?`)
  t.match(await http.ask('gw.example:3000', `/${http.pageId}`), { status: 200 })
  t.match(await http.ask('127.0.0.1:3000', `/${http.pageId}`), { status: 200 })
  t.match(await http.ask('[::1]', `/${http.pageId}`), { status: 200 })
})

t.test('the root host shows what the operator chose, and paths of the gateway still work', async (t) => {
  const before = await scene(t)
  t.match(await before.ask('gw.example', '/'), { body: Buffer.from('route /') })
  const { site } = before
  const byId = await scene(t, { hosts: { apexId: site } })
  await manifest(byId.on, site, { 'index.html': byId.pageId, 'info.html': byId.pageId })
  const root = await byId.ask('gw.example', '/')
  t.match(root, {
    status: 200,
    body: page,
    headers: { 'cache-control': 'public, max-age=3600, must-revalidate' },
  })
  t.equal(root.headers['x-ns-name'], undefined)
  t.equal(root.headers.etag, `"${digestOf(page)}"`)
  t.match(await byId.ask('www.alt.example', '/info.html'), { status: 200, body: page })
  t.match(await byId.ask('gw.example', '/no.html'), { status: 404, body: Buffer.from('Not found') })
  const through = [
    '/gateway/info',
    '/graphql',
    '/chunk/1',
    '/gateway/resolver/x',
    '/info',
    '/gateway/x402/test',
  ]
  for (const path of through)
    t.equal((await byId.ask('gw.example', path)).body.toString(), `route ${path}`, path)
  for (const path of ['/gateway/nothing', '/local/nothing', '/api-docs/x', '/graphql/x']) {
    t.match(
      await byId.ask('gw.example', path),
      { status: 404, headers: { 'x-gateway-data-id': undefined } },
      path,
    )
  }
  for (const path of ['/api-docs', '/openapi.json'])
    t.equal((await byId.ask('gw.example', path)).status, 200, path)
  for (const path of ['/tx', '/chunk']) {
    t.match(await byId.ask('gw.example', path, { method: 'POST' }), { status: 200 }, path)
  }
  t.match(await byId.ask('gw.example', `/raw/${byId.pageId}`), { status: 200 })
  t.match(await byId.ask('gw.example', `/${byId.pageId}`), { status: 302 })
  t.match(await byId.ask('stranger.example', '/'), { body: Buffer.from('route /') }, 'only on hosts of ours')
})

t.test('each root host may show a name of its own', async (t) => {
  const one = await scene(t, { hosts: { apexNames: [named('site')] } })
  for (const host of ['gw.example', 'alt.example']) {
    t.match(
      (await one.ask(host, '/')).headers,
      { 'x-ns-name': 'site', 'cache-control': 'public, max-age=300' },
      host,
    )
  }
  one.blocked.add('site')
  t.match(await one.ask('gw.example', '/'), { status: 451 })
  const each = await scene(t, { hosts: { apexNames: [named('site'), named('other_site')] } })
  each.has.set('other_site', { id: each.pageId, ttlSeconds: 20 })
  t.match((await each.ask('gw.example', '/')).headers, { 'x-ns-name': 'site' })
  t.match((await each.ask('alt.example', '/')).headers, { 'x-ns-name': 'other_site', 'x-ns-record': 'other' })
  const none = await scene(t, { hosts: { apexNames: [named('nobody')], notFoundId: each.site } })
  t.match(await none.ask('gw.example', '/'), { status: 404, body: Buffer.from('Not found') })
  t.match(await none.ask('gw.example', '/x'), { status: 302, headers: { location: '/' } })
  t.match(await none.ask('gw.example', '/gateway/info'), { status: 200 })
})

t.test("a manifest's fallback is cached for a short time, whatever the TTL", async (t) => {
  const { on, ask, has, pageId } = await scene(t)
  const id = someId()
  await manifest(on, id, { 'index.html': pageId }, { fallback: { id: pageId } })
  has.set('back', { id, ttlSeconds: 9000 })
  const answered = await ask('back.gw.example', '/nowhere')
  t.match(answered, {
    status: 200,
    headers: { 'cache-control': 'public, max-age=60, must-revalidate', 'x-ns-name': 'back' },
  })
})
