/** Every route that brings bytes of others out, against everything that may hold them back. */

import { createHash, randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import type { Admission, Denial } from '../../src/admission/admission-port.js'
import type { Id } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import type { HostOptions } from '../../src/gateway/gateway-parts.js'
import { Guard } from '../../src/gateway/guard.js'
import { BlockFilter } from '../../src/moderation/block-filter.js'
import { FilteredBlockList } from '../../src/moderation/list.js'
import { ModerationKeeper } from '../../src/moderation/moderation-keeper.js'
import type { SubjectKind } from '../../src/moderation/moderation-messages.js'
import { ModerationStore } from '../../src/moderation/moderation-store.js'
import type { Names } from '../../src/names/names-port.js'
import { eventually } from '../eventually.js'
import { type NodeStage, nodeStage, twisted } from '../routes/node-rig.js'
import { scratch } from '../scratch.js'
import { someId } from '../source/rig.js'
import { type Weave, weave } from '../source/weave.js'
import type { Answered } from './rig.js'

const small = randomBytes(1000)
const large = randomBytes(700_000)
const digestOf = (body: Uint8Array): string => createHash('sha256').update(body).digest('base64url')
const manifestType = 'application/x.arweave-manifest+json'

/** One for all tests: making its owner's key takes seconds. */
const shared = weave(t)

/** A request that shows the content of `id`, as far as its route can. */
interface RouteCase {
  readonly route: string
  readonly body: Buffer
  readonly method?: string
  /** Content is found here only: not at a source. */
  readonly fromStore?: true
  ask(scene: Scene, id: Id, method: string): Promise<Answered>
}

interface Scene {
  readonly on: NodeStage
  readonly here: Weave
  block(kind: SubjectKind, key: string): void
  /** Ids whose data the node tells in its JSON of them. */
  readonly inline: Set<string>
  /** What `site.gw.example` means. */
  named: Id | undefined
}

const plain = (path: (id: Id) => string) => (scene: Scene, id: Id, method: string) =>
  scene.on.ask(path(id), { method })

/** Below a manifest of its own, which is in the store. */
async function below(scene: Scene, id: Id, method: string): Promise<Answered> {
  const manifest = someId()
  const text = JSON.stringify({ paths: { x: { id } } })
  await scene.on.keep(manifest, Buffer.from(text), { contentType: manifestType })
  return scene.on.ask(`/${manifest}/x`, { method })
}

async function chunk(scene: Scene, id: Id, method: string, rest: string): Promise<Answered> {
  const place = await scene.here.chain.transactionOffset(id)
  if (isRefusal(place)) throw new Error(place.message)
  let answer = await scene.on.ask(`/chunk/${place.start + 5}${rest}`, { method })
  // The height that this thread knows may be an old one.
  await eventually('the chunk is found', async () => {
    if (answer.status === 404) answer = await scene.on.ask(`/chunk/${place.start + 5}${rest}`, { method })
    return answer.status !== 404
  })
  return answer
}

const routes: readonly RouteCase[] = [
  { route: '/{id}', body: small, ask: plain((id) => `/${id}`) },
  { route: '/{id}/path', body: small, ask: plain((id) => `/${id}/path`) },
  { route: 'HEAD /{id}', body: small, method: 'HEAD', ask: plain((id) => `/${id}`) },
  { route: '/raw/{id}', body: small, ask: plain((id) => `/raw/${id}`) },
  { route: 'frame', body: small, ask: plain((id) => `/local/farcaster/frame/${id}`) },
  {
    route: 'frame, by POST',
    body: small,
    method: 'POST',
    ask: plain((id) => `/local/farcaster/frame/${id}`),
  },
  { route: 'below a manifest', body: small, ask: below },
  {
    route: 'by name',
    body: small,
    ask: (scene, id, method) => {
      scene.named = id
      return scene.on.ask('/', { method, headers: { host: 'site.gw.example' } })
    },
  },
  {
    route: 'by digest',
    body: small,
    fromStore: true,
    ask: plain(() => `/gateway/digest/${digestOf(small)}`),
  },
  { route: '/tx/{id}/data', body: small, ask: plain((id) => `/tx/${id}/data`) },
  { route: 'HEAD /tx/{id}/data', body: small, method: 'HEAD', ask: plain((id) => `/tx/${id}/data`) },
  { route: '/tx/{id}/data.html', body: small, ask: plain((id) => `/tx/${id}/data.html`) },
  { route: '/TX/{id}/Data.bin/', body: small, ask: plain((id) => `/TX/${id}/Data.bin/`) },
  { route: '/tx/{id} with data', body: small, ask: plain((id) => `/tx/${id}`) },
  { route: '/unconfirmed_tx/{id} with data', body: small, ask: plain((id) => `/unconfirmed_tx/${id}`) },
  { route: '/chunk of one chunk', body: small, ask: (on, id, method) => chunk(on, id, method, '') },
  { route: '/chunk/data of one chunk', body: small, ask: (on, id, method) => chunk(on, id, method, '/data') },
  { route: '/chunk', body: large, ask: (on, id, method) => chunk(on, id, method, '') },
  { route: '/chunk/data', body: large, ask: (on, id, method) => chunk(on, id, method, '/data') },
]

/** A gateway before a node that tells data in its JSON of some transactions, as nodes do for those of format 1. */
async function scene(t: Test, admission?: Admission, learnMaxBytes = 2 ** 26): Promise<Scene> {
  const here = await shared
  const inline = new Set<string>()
  const node = await twisted(t, here.devnet.url, (request, response) => {
    const [, id] = /^\/(?:unconfirmed_)?tx\/([\w-]{43})$/.exec(request.url ?? '') ?? []
    if (id === undefined || !inline.has(id)) return false
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ format: 1, id, data: small.toString('base64url') }))
    return true
  })
  const store = new ModerationStore(`${scratch('block-list')}/list`)
  const filter = new BlockFilter()
  const keeper = new ModerationKeeper(store, filter, systemClock, silentLog, (digest) =>
    on.rig.catalog.blobSize(digest),
  )
  t.teardown(() => keeper.close())
  const list = new FilteredBlockList(filter, store, silentLog)
  const guard = new Guard(list, { attributes: (id) => on.rig.catalog.attributes(id) }, 100)
  const names: Names = {
    known: (name) =>
      made.named === undefined ? 'absent' : { name, id: made.named, ttlSeconds: 60, resolvedAtMs: 0 },
    resolve: () => Promise.reject(new Error('all names are known')),
  }
  const hosts: HostOptions = {
    rootHosts: ['gw.example'],
    protocol: 'http',
    ownPort: 3000,
    sandboxBareHosts: false,
    apexNames: [],
    apexMaxSeconds: 1,
    enforceUndernameLimit: true,
  }
  const on: NodeStage = await nodeStage(t, [node.url], {
    guard,
    forbidden: list,
    naming: { names, hosts },
    ...(admission === undefined ? {} : { admission }),
    finder: { deadlineMs: 20_000, nameMs: 20_000 },
    learnMaxBytes,
  })
  const block = (kind: SubjectKind, key: string): void => {
    const ground = { source: 'test', notes: '' }
    keeper.handle({ kind: 'block', subject: { kind, key }, ground, by: 'test' })
  }
  const made: Scene = { on, here, block, inline, named: undefined }
  return made
}

/** Content that the upstream gateway has, or our own store; on the chain where it is requested by its place there. */
async function posted({ here, on, inline }: Scene, { body, route, fromStore }: RouteCase): Promise<Id> {
  const id = route.startsWith('/chunk') ? await here.post(body) : someId()
  if (route.endsWith('with data')) inline.add(id)
  if (fromStore === true) await on.keep(id, body)
  else on.has.set(id, { body })
  return id
}

/** No part of the content, in any form of these routes, is in the answer. */
function holdsNone({ body }: Answered, { body: content }: RouteCase): boolean {
  const part = content.subarray(300, 600)
  return !body.includes(part) && !body.includes(part.toString('base64url'))
}

t.test('without a block list and limits every route sends its bytes', async (t) => {
  const made = await scene(t)
  for (const target of routes) {
    const { method = 'GET' } = target
    const answer = await target.ask(made, await posted(made, target), method)
    t.equal(answer.status, 200, target.route)
    t.equal(holdsNone(answer, target), method === 'HEAD', `${target.route}: content`)
  }
})

t.test('no route sends content that is blocked by its id', async (t) => {
  const made = await scene(t)
  for (const target of routes) {
    const id = await posted(made, target)
    made.block('id', id)
    const answer = await target.ask(made, id, target.method ?? 'GET')
    t.equal(answer.status, 451, target.route)
    t.ok(holdsNone(answer, target), `${target.route}: no content`)
  }
})

t.test(
  'no route sends content that is blocked by its hash, also where its digest was not known',
  async (t) => {
    const made = await scene(t)
    for (const body of [small, large]) made.block('hash', digestOf(body))
    for (const target of routes) {
      const id = await posted(made, target)
      const answer = await target.ask(made, id, target.method ?? 'GET')
      t.equal(answer.status, 451, target.route)
      t.ok(holdsNone(answer, target), `${target.route}: no content`)
    }
  },
)

t.test('other content is still sent where something is blocked by its hash', async (t) => {
  const made = await scene(t)
  made.block('hash', digestOf(randomBytes(10)))
  for (const target of routes) {
    const answer = await target.ask(made, await posted(made, target), target.method ?? 'GET')
    t.equal(answer.status, 200, target.route)
  }
})

t.test(
  'a chunk whose transaction nobody has whole is not sent where something is blocked by its hash',
  async (t) => {
    const made = await scene(t)
    const id = await made.here.post(large)
    t.equal((await chunk(made, id, 'GET', '/data')).status, 200)
    made.block('hash', digestOf(randomBytes(10)))
    const answer = await chunk(made, id, 'GET', '/data')
    t.match(answer, { status: 503, headers: { 'retry-after': '1' } })
    made.on.has.set(id, { body: large })
    const isLearned = async () => (await chunk(made, id, 'GET', '/data')).status === 200
    t.ok(
      await eventually('the digest is known', isLearned),
      'until its digest can be learned; it is tried again after a rest',
    )
  },
)

t.test(
  'chunks of another size than all that is blocked go out, and nothing is transferred for them',
  async (t) => {
    const made = await scene(t)
    const blocked = randomBytes(650_000)
    await made.on.keep(someId(), blocked)
    made.block('hash', digestOf(blocked))
    const id = await made.here.post(large)
    made.on.has.set(id, { body: large })
    for (const method of ['HEAD', 'GET']) {
      t.equal((await chunk(made, id, method, '/data')).status, 200, method)
    }
    t.strictSame(made.on.requested, [], 'the transaction was not asked for')
    const same = await made.here.post(blocked)
    made.on.has.set(same, { body: blocked })
    t.equal((await chunk(made, same, 'GET', '/data')).status, 451, 'what has the size is looked at')
  },
)

t.test('content that is too large to be compared is neither transferred nor sent', async (t) => {
  const made = await scene(t, undefined, 500_000)
  made.block('hash', digestOf(randomBytes(10)))
  const target: RouteCase = { route: '/chunk', body: large, ask: plain((id) => `/${id}`) }
  const id = await posted(made, target)
  for (const rest of ['', '/data']) {
    for (const method of ['HEAD', 'GET']) {
      const answer = await chunk(made, id, method, rest)
      t.match(answer, { status: 503, headers: { 'cache-control': 'no-store' } })
      t.equal(answer.headers['retry-after'], undefined, 'asking again does not help')
      t.ok(holdsNone(answer, target))
    }
  }
  t.strictSame(made.on.requested, [])
  t.equal(
    (await made.on.ask(`/raw/${id}`)).status,
    200,
    'its hash is known as soon as somebody had all of it',
  )
  // The catalog hears of it after the answer.
  t.ok(
    await eventually(
      'the data of the chunk is served',
      async () => (await chunk(made, id, 'GET', '/data')).status === 200,
    ),
  )
})

t.test(
  'who has a transaction transferred for the sake of a chunk pays for all of it, by HEAD too',
  async (t) => {
    const fares: number[] = []
    const sent: number[] = []
    let isPoor = true
    const admission: Admission = {
      admit: ({ bytes }) => {
        fares.push(bytes)
        if (isPoor && bytes >= large.length) {
          return { status: 429, contentType: 'text/plain', lines: '', body: 'no', reason: 'none left' }
        }
        return { lines: '', returnUnsent: (count) => void sent.push(count) }
      },
      takeFirst: () => true,
      freeDelayMs: () => 0,
    }
    const made = await scene(t, admission)
    made.block('hash', digestOf(randomBytes(10)))
    const id = await made.here.post(large)
    made.on.has.set(id, { body: large })
    t.equal((await chunk(made, id, 'HEAD', '/data')).status, 429)
    t.equal(fares.at(-1), large.length)
    t.strictSame(made.on.requested, [], 'nothing is transferred for who was denied')
    isPoor = false
    t.equal((await chunk(made, id, 'HEAD', '/data')).status, 200)
    t.ok(sent.includes(large.length), 'nothing of it is given back')
    const before = sent.length
    t.equal((await chunk(made, id, 'HEAD', '/data')).status, 200)
    t.strictSame(sent.slice(before), [0], 'it was learned once')
  },
)

t.test('a blocked name is not served, and its content still is by its id', async (t) => {
  const made = await scene(t)
  made.block('name', 'site')
  for (const target of routes) {
    const answer = await target.ask(made, await posted(made, target), target.method ?? 'GET')
    t.equal(answer.status, target.route === 'by name' ? 451 : 200, target.route)
  }
})

t.test('a client without tokens gets no bytes, and each answer is metered by what it sends', async (t) => {
  const denial: Denial = {
    status: 429,
    contentType: 'text/plain',
    lines: '',
    body: 'no',
    reason: 'none left',
  }
  const strict: Admission = {
    admit: () => denial,
    takeFirst: () => denial,
    freeDelayMs: () => 0,
  }
  const made = await scene(t, strict)
  for (const target of routes) {
    const answer = await target.ask(made, await posted(made, target), target.method ?? 'GET')
    t.equal(answer.status, 429, target.route)
    t.ok(holdsNone(answer, target), `${target.route}: no content`)
  }
  const charges: number[] = []
  const sent: number[] = []
  const counting: Admission = {
    ...strict,
    admit: ({ bytes }) => {
      charges.push(bytes)
      return { lines: '', returnUnsent: (count) => void sent.push(count) }
    },
    takeFirst: () => true,
  }
  const free = await scene(t, counting)
  for (const target of routes) {
    if (/chunk/.test(target.route)) continue
    const answer = await target.ask(free, await posted(free, target), target.method ?? 'GET')
    t.equal(charges.at(-1), answer.body.length, `${target.route}: what it costs`)
    t.equal(sent.at(-1), answer.body.length, `${target.route}: what was sent`)
  }
})

t.test('an id in another spelling is refused, whichever node would accept it', async (t) => {
  const made = await scene(t)
  const id = someId()
  made.block('id', id)
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const other = id.slice(0, 42) + letters[letters.indexOf(id[42] ?? 'A') + 1]
  t.same(Buffer.from(other, 'base64url'), Buffer.from(id, 'base64url'), 'the same bytes')
  for (const path of ['', '/data', '/data.html', '/status', '/offset']) {
    t.equal((await made.on.ask(`/tx/${other}${path}`)).status, 400, path)
  }
  t.equal((await made.on.ask(`/unconfirmed_tx/${other}`)).status, 400)
})

t.test('a chunk that a block proves access with is held back like all content', async (t) => {
  const here = await shared
  const node = await twisted(t, here.devnet.url, (request, response) => {
    if (request.url !== '/block/height/7') return false
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(`{"poa": {"option": "1", "chunk" : "${large.toString('base64url')}"}}`)
    return true
  })
  const on = await nodeStage(t, [node.url], {
    guard: new Guard(
      {
        version: 1,
        isReadable: true,
        mayBlockContent: true,
        mayBlockHashes: true,
        mayBlockSize: () => true,
        blocksId: () => false,
        blocksDigest: (digest) => Buffer.from(digest).toString('base64url') === digestOf(large),
        blocksName: () => false,
      },
      { attributes: () => undefined },
      100,
    ),
  })
  t.equal((await on.ask('/block/height/7')).status, 451)
  t.equal((await on.ask('/block/height/1')).status, 200)
})

t.test('data as text is the data, whatever its length and however it comes', async (t) => {
  const made = await scene(t)
  for (const bytes of [1, 2, 3, 4, 49_151, 49_152, 49_153, 3_000_001]) {
    const body = randomBytes(bytes)
    const [stored, far] = [someId(), someId()]
    await made.on.keep(stored, body)
    made.on.has.set(far, { body })
    for (const id of [stored, far]) {
      const answer = await made.on.ask(`/tx/${id}/data`)
      t.equal(answer.body.toString(), body.toString('base64url'), `${bytes} bytes`)
      t.equal(answer.headers['content-type'], 'text/plain; charset=utf-8')
      const head = await made.on.ask(`/tx/${id}/data`, { method: 'HEAD' })
      t.equal(head.headers['content-length'], String(answer.body.length))
    }
    const headers = { range: 'bytes=0-0' }
    t.match(await made.on.ask(`/tx/${stored}/data.bin`, { headers }), {
      status: 206,
      body: body.subarray(0, 1),
    })
  }
  t.equal((await made.on.ask(`/tx/${someId()}/data`)).status, 404)
})
