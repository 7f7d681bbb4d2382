import { createHash, randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import t from 'tap'
import { parseId } from '../../src/format/id.js'
import type { Request } from '../../src/http/exchange.js'
import { InlinePacker, type PackingTask } from '../../src/source/keeping/manifest-packer.js'
import { blobPath } from '../../src/store/blobs.js'
import { eventually } from '../eventually.js'
import { type Stage, stage } from '../gateway/rig.js'
import { someId } from '../source/rig.js'

const manifestType = 'application/x.arweave-manifest+json'

interface Site {
  readonly on: Stage
  readonly manifest: string
  readonly page: Buffer
  readonly pageId: string
}

async function site(more: object = {}, options: Parameters<typeof stage>[0] = {}): Promise<Site> {
  const on = await stage(options)
  const [manifest, pageId, deepId] = [someId(), someId(), someId()]
  const page = Buffer.from('<a href="deep/a b.txt">page</a>')
  await on.keep(pageId, page, { contentType: 'text/html', height: 5 })
  await on.keep(deepId, Buffer.from('deep text'), { contentType: 'text/plain', height: 5 })
  on.tip.move(1000)
  const text = JSON.stringify({
    manifest: 'arweave/paths',
    version: '0.2.0',
    index: { path: 'index.html' },
    paths: { 'index.html': { id: pageId }, 'deep/a b.txt': { id: deepId }, 'gone.txt': { id: someId() } },
    ...more,
  })
  await on.keep(manifest, Buffer.from(text), { contentType: `${manifestType}; charset=utf-8` })
  return { on, manifest, page, pageId }
}

t.test('a site is served by its paths, each with the headers of its own content', async (t) => {
  const { on, manifest, page, pageId } = await site()
  t.teardown(() => on.close())
  const index = await on.ask(`/${manifest}/`)
  t.same(index.body, page)
  t.match(index, {
    status: 200,
    headers: {
      'content-type': 'text/html',
      'x-gateway-data-id': pageId,
      'cache-control': 'public, max-age=2592000, immutable',
      'content-digest': `sha-256=:${createHash('sha256').update(page).digest('base64')}:`,
    },
  })
  t.match(index.headers.signature, /^sig1=/)
  for (const path of ['index.html', 'index.html/', 'index%2Ehtml']) {
    t.same((await on.ask(`/${manifest}/${path}`)).body, page, path)
  }
  t.match(await on.ask(`/${manifest}/deep/a%20b.txt`), { body: Buffer.from('deep text') })
  const etag = index.headers.etag ?? ''
  t.equal((await on.ask(`/${manifest}/`, { headers: { 'if-none-match': etag } })).status, 304)
  t.match(await on.ask(`/${manifest}/index.html`, { headers: { range: 'bytes=0-2' } }), {
    status: 206,
    body: page.subarray(0, 3),
  })
  t.match(await on.ask(`/${manifest}/`, { method: 'HEAD' }), { status: 200, body: Buffer.alloc(0) })
  t.match(await on.ask(`/raw/${manifest}`), { status: 200, headers: { 'x-gateway-data-id': manifest } })
  t.match(on.meters.text(), /http_requests_total\{route="manifest",status="2xx"\} [1-9]/)
})

t.test('without the slash the answer is a redirect that keeps the query', async (t) => {
  const { on, manifest, page } = await site()
  t.teardown(() => on.close())
  t.match(await on.ask(`/${manifest}`), { status: 301, headers: { location: `/${manifest}/` } })
  t.match(await on.ask(`/${manifest}?a=1&b=%20`, { method: 'HEAD' }), {
    status: 301,
    headers: { location: `/${manifest}/?a=1&b=%20` },
  })
  t.same((await on.ask(`/local/farcaster/frame/${manifest}`)).body, page, 'frames do not move')
})

t.test('paths that are not listed', async (t) => {
  const { on, manifest } = await site()
  t.teardown(() => on.close())
  for (const path of ['nothing', 'INDEX.HTML', 'deep', '__proto__', 'constructor', '..%2f..%2fetc/passwd']) {
    const answered = await on.ask(`/${manifest}/${path}`)
    t.match(answered, { status: 404, body: Buffer.from('Not found') }, path)
    t.notOk('signature' in answered.headers)
  }
  t.equal((await on.ask(`/${manifest}/gone.txt`)).status, 404, 'listed, but nobody has it')
  t.match(await on.ask(`/${manifest}/%E0%A4%A`), {
    status: 400,
    body: Buffer.from('Bad Request: Invalid URL encoding'),
  })
})

t.test('the fallback stands in for what is not listed, for a short while', async (t) => {
  const fallbackId = someId()
  const { on, manifest } = await site({ fallback: { id: fallbackId } })
  t.teardown(() => on.close())
  await on.keep(fallbackId, Buffer.from('not here, but'), { height: 5 })
  t.match(await on.ask(`/${manifest}/nothing`), {
    status: 200,
    headers: { 'x-gateway-data-id': fallbackId, 'cache-control': 'public, max-age=60, must-revalidate' },
  })
  t.match((await on.ask(`/${fallbackId}`)).headers, { 'cache-control': 'public, max-age=2592000, immutable' })
  t.match((await on.ask(`/${manifest}/nothing`)).headers, { 'cache-control': /must-revalidate/ })
})

t.test('a manifest without an index has no root page', async (t) => {
  const { on, manifest } = await site({ index: undefined })
  t.teardown(() => on.close())
  t.equal((await on.ask(`/${manifest}`)).status, 404)
  t.equal((await on.ask(`/${manifest}/`)).status, 404)
  t.equal((await on.ask(`/${manifest}/index.html`)).status, 200)
})

t.test('a manifest that another gateway has is resolved at the first request', async (t) => {
  const { on, page, pageId } = await site()
  t.teardown(() => on.close())
  const manifest = someId()
  const body = Buffer.from(
    JSON.stringify({ version: '0.2.0', paths: { 'x/y': { id: pageId } }, index: { id: pageId } }),
  )
  on.has.set(manifest, { body, contentType: manifestType })
  const answers = await Promise.all(
    ['', 'x/y', 'x/y/', 'x/z'].map((path) =>
      on.ask(`/${manifest}/${path}`, { headers: { range: 'bytes=0-3' } }),
    ),
  )
  t.same(
    answers.map(({ status }) => status),
    [206, 206, 206, 404],
  )
  t.same(answers[0]?.body, page.subarray(0, 4))
  t.equal((await on.ask(`/${manifest}`)).status, 301)
})

t.test('a malformed manifest is 404, one that is too large is 413', async (t) => {
  const { on } = await site({}, { options: { manifestMaxBytes: 1000 } })
  t.teardown(() => on.close())
  const [broken, large, list, far] = [someId(), someId(), someId(), someId()]
  await on.keep(broken, Buffer.from('{"paths":'), { contentType: manifestType })
  await on.keep(list, Buffer.from('[]'), { contentType: manifestType })
  await on.keep(large, randomBytes(1001), { contentType: manifestType })
  on.has.set(far, { body: randomBytes(1001), contentType: manifestType })
  t.equal((await on.ask(`/${broken}/`)).status, 404)
  t.equal((await on.ask(`/${list}/`)).status, 404)
  t.equal((await on.ask(`/${large}/`)).status, 413)
  t.equal((await on.ask(`/${far}/`)).status, 413)
  t.equal((await on.ask(`/raw/${large}`)).status, 200)
})

t.test('content that is no manifest is served whatever path stands behind its id', async (t) => {
  const { on, pageId, page } = await site()
  t.teardown(() => on.close())
  t.same((await on.ask(`/${pageId}/some/image.png`)).body, page)
})

/** Holds every manifest back until it is let go, and counts them. */
class HeldPacker extends InlinePacker {
  packed = 0
  #go: () => void = () => undefined
  readonly #held = new Promise<void>((resolve) => {
    this.#go = resolve
  })

  release(): void {
    this.#go()
  }

  override async pack(task: PackingTask): ReturnType<InlinePacker['pack']> {
    this.packed += 1
    await this.#held
    return super.pack(task)
  }
}

t.test(
  'many requests for one cold manifest have it parsed once, and others are served meanwhile',
  async (t) => {
    const packer = new HeldPacker()
    const { on, manifest, page, pageId } = await site({}, { packer })
    t.teardown(() => on.close())
    const paths = ['', 'index.html', 'deep/a%20b.txt', 'nothing']
    const requests = Array.from({ length: 40 }, (_, at) => on.ask(`/${manifest}/${paths[at % 4]}`))
    await eventually('a manifest is packed', () => packer.packed > 0)
    t.same((await on.ask(`/raw/${pageId}`)).body, page)
    packer.release()
    const statuses = (await Promise.all(requests)).map(({ status }) => status)
    t.strictSame(
      [200, 404].map((status) => statuses.filter((one) => one === status).length),
      [30, 10],
    )
    t.equal((await on.ask(`/${manifest}/index.html`)).status, 200)
    t.equal(packer.packed, 1)
  },
)

t.test('a client that asks for many cold manifests at once leaves room for others', async (t) => {
  const packer = new HeldPacker()
  const clientOf = (request: Request): string => request.header('x-client') ?? ''
  const { on, pageId } = await site({}, { packer, parts: { clientOf } })
  t.teardown(() => on.close())
  const cold = async (at: number): Promise<string> => {
    const id = someId()
    const text = JSON.stringify({
      manifest: 'arweave/paths',
      version: '0.2.0',
      paths: { [at]: { id: pageId } },
    })
    await on.keep(id, Buffer.from(text), { contentType: manifestType })
    return `/${id}/${at}`
  }
  const paths: string[] = []
  for (let at = 0; at < 71; at += 1) paths.push(await cold(at))
  const ask = async (path: string, client: string): Promise<number> =>
    (await on.ask(path, { headers: { 'x-client': client } })).status
  let refused = 0
  const greedy = paths.slice(1).map(async (path) => {
    if ((await ask(path, 'greedy')) === 503) refused += 1
  })
  await eventually('the flood is refused', () => refused >= 6)
  let modest = 0
  const answered = ask(paths[0] ?? '', 'modest').then((status) => {
    modest = status
  })
  await eventually(
    'one of each client is packed, or the modest one has an answer',
    () => packer.packed === 2 || modest !== 0,
  )
  packer.release()
  await Promise.all([...greedy, answered])
  t.equal(modest, 200)
  t.equal(refused, 62, 'all but eight')
})

t.test('a manifest beyond a limit is 413 and says which; its bytes are there all the same', async (t) => {
  const { on } = await site()
  t.teardown(() => on.close())
  const long = { [`${'é'.repeat(2049)}`]: { id: someId() } }
  const many = Object.fromEntries(Array.from({ length: 10_001 }, (_, at) => [`${at}`, { id: someId() }]))
  const cases: [object, string][] = [
    [{ paths: long }, 'manifest: a path of more than 4096 bytes'],
    [{ paths: many }, 'manifest: more than 10000 paths'],
    [{ x: Array(90_000).fill({}) }, 'manifest: more than 84096 values'],
  ]
  for (const [text, message] of cases) {
    const id = someId()
    await on.keep(id, Buffer.from(JSON.stringify(text)), { contentType: manifestType })
    for (let time = 0; time < 2; time += 1) {
      t.match(await on.ask(`/${id}/x`), { status: 413, body: Buffer.from(message) }, message)
    }
    t.equal((await on.ask(`/raw/${id}`)).status, 200)
  }
})

t.test('a packed form that disappears is made again, and is removed with its content', async (t) => {
  const { on, manifest, page } = await site()
  t.teardown(() => on.close())
  t.same((await on.ask(`/${manifest}/`)).body, page)
  const digest = on.rig.catalog.attributes(parseId(manifest) ?? someId())?.digest ?? new Uint8Array()
  const packed = blobPath(`${on.rig.path}/manifests`, digest)
  t.ok(existsSync(packed))
  rmSync(packed)
  t.same((await on.ask(`/${manifest}/`)).body, page, 'this thread has it open')
  const other = await on.transfers.manifest({ digest }, true)
  t.match(other, { path: packed })
  t.ok(existsSync(packed))
  t.equal(await on.rig.blobCache.drop(digest), true)
  t.notOk(existsSync(packed))
})
