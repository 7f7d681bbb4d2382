import { createHash, randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import type { HostOptions } from '../../src/gateway/gateway-parts.js'
import { answerSmall } from '../../src/http/small-answer.js'
import { sandboxLabel } from '../../src/names/sandbox-host.js'
import type { Route } from '../../src/serving/route.js'
import { someId } from '../source/rig.js'
import { type StageOptions, stage } from './rig.js'

const policy = 'sandbox allow-scripts allow-forms allow-popups allow-downloads'
const manifestType = 'application/x.arweave-manifest+json'
const page = Buffer.from('<script>document.title = origin</script>')
const digest = createHash('sha256').update(page).digest('base64url')
const navigation = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

async function scene(
  t: Test,
  rootHosts: readonly string[],
  more: StageOptions = {},
  content = { body: page, contentType: 'text/html' },
) {
  const id = someId()
  const hosts: HostOptions = {
    rootHosts,
    protocol: 'http',
    ownPort: 3000,
    sandboxBareHosts: true,
    apexNames: [],
    apexId: id,
    apexMaxSeconds: 1,
    enforceUndernameLimit: true,
  }
  const names = {
    known: () => ({
      name: { full: 'site', basename: 'site', record: '@' },
      id,
      ttlSeconds: 60,
      resolvedAtMs: 0,
    }),
    resolve: () => Promise.reject(new Error('all names are known')),
  }
  const on = await stage({ ...more, parts: rootHosts.length === 0 ? {} : { hostNames: { names, hosts } } })
  t.teardown(() => on.close())
  await on.keep(id, content.body, { contentType: content.contentType })
  const ask = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    on.ask(path, { method, headers })
  return { on, id, ask }
}

const places = (id: string): string[] => [
  `/${id}`,
  `/${id}/`,
  `/${id}/x.html`,
  `/raw/${id}`,
  `/raw/${id}/`,
  `/local/farcaster/frame/${id}`,
  `/gateway/digest/${digest}`,
  `/tx/${id}/data.html`,
]

t.test('without host names every route to content puts documents into a sandbox', async (t) => {
  const { on, id, ask } = await scene(t, [])
  for (const path of places(id)) {
    for (const headers of [{}, navigation, { accept: 'text/html' }]) {
      const answer = await ask(path, headers)
      t.match(answer, { status: 200, headers: { 'content-security-policy': policy }, body: page }, path)
    }
    const etag = (await ask(path)).headers.etag ?? ''
    const variants: [Record<string, string>, number, string?][] = [
      [{}, 200, 'HEAD'],
      [{ range: 'bytes=0-3' }, 206],
      [{ range: 'bytes=0-1,3-4' }, 206],
      [{ 'if-none-match': etag }, 304],
    ]
    for (const [headers, status, method] of variants) {
      const answer = await ask(path, headers, method)
      t.match(answer, { status, headers: { 'content-security-policy': policy } }, `${path} ${status}`)
    }
    t.match(await ask(path, { 'service-worker': 'script' }), { status: 403 }, path)
    t.match(await ask(path, { 'service-worker': 'script' }, 'HEAD'), { status: 403 }, path)
  }
  t.match(await ask(`/local/farcaster/frame/${id}`, {}, 'POST'), {
    headers: { 'content-security-policy': policy },
  })
  const [manifest, far] = [someId(), someId()]
  const text = JSON.stringify({ paths: { x: { id }, y: { id: far } } })
  await on.keep(manifest, Buffer.from(text), { contentType: manifestType })
  on.has.set(far, { body: randomBytes(5000), contentType: 'image/svg+xml' })
  for (const path of ['x', 'y', 'y']) {
    t.match((await ask(`/${manifest}/${path}`)).headers, { 'content-security-policy': policy }, path)
  }
  t.notOk('content-security-policy' in (await ask('/nothing')).headers, 'answers of our own have none')
})

t.test('whatever type an item states, only a plain PDF is shown without a sandbox', async (t) => {
  const { on, ask } = await scene(t, [])
  const types = [
    'text/html',
    'image/svg+xml',
    'text/xml',
    'application/xhtml+xml',
    '',
    'x',
    'text/plain',
    'image/png',
    'application/pdf;x=,text/html',
    'application/pdf, text/html',
    'text/html, application/pdf',
    'application/pdf ;',
    'Application/PDF',
  ]
  for (const contentType of types) {
    const id = someId()
    await on.keep(id, page, { contentType })
    t.equal((await ask(`/raw/${id}`)).headers['content-security-policy'], policy, contentType)
  }
  const id = someId()
  await on.keep(id, page, { contentType: 'application/pdf' })
  t.notOk('content-security-policy' in (await ask(`/raw/${id}`)).headers)
})

t.test(
  'with host names documents are redirected to the host of their id; programs get the bytes',
  async (t) => {
    const { id, ask } = await scene(t, ['gw.example'])
    const own = `${sandboxLabel(id)}.gw.example`
    const other = `${sandboxLabel(someId())}.gw.example`
    for (const host of ['gw.example', 'www.gw.example', '127.0.0.1', 'stranger.example', other]) {
      for (const path of places(id).slice(3)) {
        for (const headers of [navigation, { accept: 'text/html,*/*' }]) {
          t.match(
            await ask(`${path}?a=b`, { host, ...headers }),
            { status: 302, headers: { location: `http://${own}${path}?a=b` } },
            `${host}${path}`,
          )
        }
        for (const headers of [{}, { accept: '*/*' }, { 'sec-fetch-mode': 'cors', accept: 'text/html' }]) {
          t.match(
            await ask(path, { host, ...headers }),
            { status: 200, headers: { 'content-security-policy': policy } },
            `${host}${path}`,
          )
        }
        t.equal(
          (await ask(path, { host, 'service-worker': 'script', 'sec-fetch-mode': 'same-origin' })).status,
          403,
        )
      }
      t.equal((await ask(`/${id}`, { host })).status, 302, 'the short address moves for everybody')
    }
  },
)

t.test(
  'content that has its origin for itself is served as it is, and may have a service worker',
  async (t) => {
    const { id, ask } = await scene(t, ['gw.example'])
    const own = `${sandboxLabel(id)}.gw.example`
    const hosts: [string, readonly string[]][] = [
      [own, places(id)],
      ['site.gw.example', ['/', '/sw.js']],
      ['gw.example', ['/']],
    ]
    for (const [host, paths] of hosts) {
      for (const path of paths) {
        for (const headers of [{}, navigation, { 'service-worker': 'script' }]) {
          const answer = await ask(path, { host, ...headers })
          t.equal(answer.status, 200, host + path)
          t.notOk('content-security-policy' in answer.headers, host + path)
        }
      }
    }
  },
)

t.test('the sandbox policy is not covered by the signature', async (t) => {
  const { id, ask } = await scene(t, [])
  const { headers } = await ask(`/raw/${id}`)
  t.match(headers['signature-input'], /x-gateway-data-id/)
  t.notMatch(headers['signature-input'], /content-security-policy/)
})

t.test('content of the apex goes before what the gateway has at its path', async (t) => {
  const host = 'gw.example'
  const icon: Route = {
    family: 'info',
    path: '/favicon.ico',
    yields: true,
    methods: ['GET'],
    about: [{ path: '/favicon.ico', summary: 'The icon', statuses: [200] }],
    handle: (request, reply, first) =>
      answerSmall(request, reply, first, { status: 200, type: 'image/svg+xml', body: 'own' }),
  }
  const file = someId()
  for (const [paths, body, contentType] of [
    [{ 'favicon.ico': { id: file } }, 'theirs', 'image/png'],
    [{ 'other.ico': { id: file } }, 'own', 'image/svg+xml'],
  ] as const) {
    const manifest = { manifest: 'arweave/paths', version: '0.1.0', paths }
    const site = { body: Buffer.from(JSON.stringify(manifest)), contentType: manifestType }
    const { on, ask } = await scene(t, [host], { routes: [icon] }, site)
    await on.keep(file, Buffer.from('theirs'), { contentType: 'image/png' })
    const headers = { 'content-type': contentType }
    t.match(await ask('/favicon.ico', { host }), { status: 200, headers, body: Buffer.from(body) })
    t.match(await ask('/favicon.ico', { host }, 'HEAD'), { status: 200, headers })
    t.match(
      await ask('/favicon.ico', { host: '127.0.0.1' }),
      { body: Buffer.from('own') },
      'elsewhere it is ours',
    )
  }
})
