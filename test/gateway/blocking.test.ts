import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { get } from 'node:http'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { servedBy } from '../../native/server/server.js'
import { pause, systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Guard } from '../../src/gateway/guard.js'
import { BlockFilter } from '../../src/moderation/block-filter.js'
import { FilteredBlockList } from '../../src/moderation/list.js'
import { ModerationKeeper } from '../../src/moderation/moderation-keeper.js'
import type { SubjectKind } from '../../src/moderation/moderation-messages.js'
import { ModerationStore } from '../../src/moderation/moderation-store.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { someId } from '../source/rig.js'
import { type Stage, type StageOptions, stage } from './rig.js'

const manifestType = 'application/x.arweave-manifest+json'

interface Scene {
  readonly on: Stage
  block(kind: SubjectKind, key: string): void
  release(kind: SubjectKind, key: string): void
}

async function scene(t: Test, more: StageOptions = {}, sizeOf?: () => number): Promise<Scene> {
  const store = new ModerationStore(`${scratch('blocking')}/list`)
  const filter = new BlockFilter()
  const keeper = new ModerationKeeper(store, filter, systemClock, silentLog, sizeOf)
  const list = new FilteredBlockList(filter, store, silentLog)
  const guard = new Guard(list, { attributes: () => undefined }, 100)
  const on = await stage({ ...more, parts: { guard }, forbidden: list })
  t.teardown(async () => {
    await on.close()
    await keeper.close()
  })
  const ground = { source: 'test', notes: '' }
  return {
    on,
    block: (kind, key) => {
      keeper.handle({ kind: 'block', subject: { kind, key }, ground, by: 'test' })
    },
    release: (kind, key) => {
      keeper.handle({ kind: 'release', subject: { kind, key }, by: 'test' })
    },
  }
}

const blockedText = (id: string): string =>
  `Requested content blocked by this node's content policy. Blocked ID: ${id}`

t.test('a blocked id is 451 for every kind of request, until it is released', async (t) => {
  const { on, block, release } = await scene(t)
  const id = someId()
  await on.keep(id, randomBytes(5000))
  const etag = (await on.ask(`/${id}`)).headers.etag ?? ''
  block('id', id)
  for (const path of [
    `/${id}`,
    `/${id}/`,
    `/${id}/some/path`,
    `/raw/${id}`,
    `/local/farcaster/frame/${id}`,
  ]) {
    const answer = await on.ask(path)
    t.match(answer, { status: 451, headers: { 'cache-control': 'public, max-age=100, immutable' } }, path)
    t.equal(answer.body.toString(), blockedText(id))
    t.notOk('etag' in answer.headers || 'signature' in answer.headers)
  }
  t.match(await on.ask(`/${id}`, { method: 'HEAD' }), { status: 451, body: Buffer.alloc(0) })
  t.equal((await on.ask(`/${id}`, { headers: { 'if-none-match': etag } })).status, 451)
  t.equal((await on.ask(`/${id}`, { headers: { range: 'bytes=0-9' } })).status, 451)
  release('id', id)
  t.equal((await on.ask(`/${id}`)).status, 200)
})

t.test(
  'what nobody here has is not asked for where it is blocked, nor sent again where its digest is',
  async (t) => {
    const { on, block } = await scene(t)
    const [id, copy] = [someId(), someId()]
    const body = randomBytes(3000)
    on.has.set(id, { body }).set(copy, { body })
    block('id', id)
    t.equal((await on.ask(`/${id}`)).status, 451)
    t.strictSame(on.requested, [], 'no source was bothered')
    block('hash', createHash('sha256').update(body).digest('base64url'))
    // Bytes that stream through have no digest before their end.
    let answer = await on.ask(`/${copy}`)
    while (answer.status === 200) answer = await on.ask(`/${copy}`)
    t.match(answer, { status: 451, body: Buffer.from(blockedText(copy)) })
  },
)

t.test('blocked bytes are blocked under every id that they have', async (t) => {
  const { on, block } = await scene(t)
  const [one, other] = [someId(), someId()]
  const body = randomBytes(100)
  await on.keep(one, body)
  await on.keep(other, body)
  t.equal((await on.ask(`/${other}`)).status, 200)
  block('hash', createHash('sha256').update(body).digest('base64url'))
  for (const id of [one, other])
    t.match(await on.ask(`/raw/${id}`), { status: 451, body: Buffer.from(blockedText(id)) })
})

t.test('items inside a blocked bundle are blocked with it, at any depth', async (t) => {
  const { on, block, release } = await scene(t)
  const [item, root, parent] = [someId(), someId(), someId()]
  const offsets = { rootItemOffset: 5000, parentItemOffset: 200, itemSize: 1300, headerSize: 300 }
  await on.keep(item, randomBytes(1000), {
    place: { rootId: root, parentId: parent, path: [root, parent], ...offsets },
  })
  for (const bundle of [root, parent]) {
    t.equal((await on.ask(`/${item}`)).status, 200)
    block('id', bundle)
    t.match(await on.ask(`/${item}`), { status: 451, body: Buffer.from(blockedText(item)) })
    release('id', bundle)
  }
})

t.test('a manifest does not lead to blocked content, and a blocked manifest resolves no path', async (t) => {
  const { on, block, release } = await scene(t)
  const [manifest, page, other] = [someId(), someId(), someId()]
  await on.keep(page, Buffer.from('page'))
  await on.keep(other, Buffer.from('other'))
  const paths = { 'index.html': { id: page }, other: { id: other } }
  const text = { manifest: 'arweave/paths', version: '0.1.0', index: { path: 'index.html' }, paths }
  await on.keep(manifest, Buffer.from(JSON.stringify(text)), { contentType: manifestType })
  t.equal((await on.ask(`/${manifest}/`)).status, 200)
  block('id', page)
  t.match(await on.ask(`/${manifest}/`), { status: 451, body: Buffer.from(blockedText(page)) })
  t.equal((await on.ask(`/${manifest}/other`)).status, 200)
  block('id', manifest)
  for (const path of ['', '/', '/other', '/nothing']) {
    t.match(
      await on.ask(`/${manifest}${path}`),
      { status: 451, body: Buffer.from(blockedText(manifest)) },
      path,
    )
  }
  release('id', manifest)
  release('id', page)
  t.equal((await on.ask(`/${manifest}/`)).status, 200)
})

t.test('a transfer is aborted when its content is blocked, others go on', async (t) => {
  const { on, block } = await scene(t)
  const [bad, good] = [someId(), someId()]
  const body = randomBytes(64_000_000)
  await on.keep(bad, body)
  await on.keep(good, Buffer.concat([body, Buffer.of(1)]))
  const read = (id: string): Promise<number> =>
    new Promise((resolve) => {
      get(`${on.url}/raw/${id}`, { agent: false }, (response) => {
        let bytes = 0
        response.pause()
        response.on('data', (piece: Buffer) => {
          bytes += piece.length
        })
        response.on('close', () => resolve(bytes))
        begun.push(() => response.resume())
        if (begun.length === 2) begin()
      }).on('error', () => resolve(-1))
    })
  const begun: (() => void)[] = []
  const begin = (): void => {
    block('id', bad)
    for (const go of begun) go()
  }
  const [cut, whole] = await Promise.all([read(bad), read(good)])
  t.ok(cut < body.length, `${cut} bytes of ${body.length}`)
  t.equal(whole, body.length + 1)
})

const stalled = async (on: Stage, id: string, requests: number): Promise<Socket> => {
  const { port } = new URL(on.url)
  const socket = connect({ port: Number(port), host: '127.0.0.1' })
  await once(socket, 'connect')
  socket.pause()
  socket.write(`GET /raw/${id} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(requests))
  return socket
}

/** Statuses of the answers that come on `socket`, in order. */
const statusesOn = (socket: Socket): (() => string[]) => {
  const pieces: Buffer[] = []
  socket.on('data', (piece: Buffer) => pieces.push(piece))
  socket.on('error', () => undefined)
  socket.resume()
  const answers = (): string => Buffer.concat(pieces).toString('latin1')
  return () => [...answers().matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status = '']) => status)
}

t.test('a stalled transfer is aborted, too, when its content is blocked', async (t) => {
  const { on, block } = await scene(t)
  const id = someId()
  await on.keep(id, randomBytes(64_000_000))
  t.equal((await on.ask(`/raw/${id}`)).status, 200)
  const socket = await stalled(on, id, 1)
  await eventually('one transfer is under way', () => on.meters.total('flows_in_flight') === 1)
  block('id', id)
  await eventually('one transfer has failed', () => on.meters.total('get_data_stream_errors_total') === 1)
  const statuses = statusesOn(socket)
  await once(socket, 'close')
  t.same(statuses(), ['200'], 'nothing is answered behind it')
})

t.test('of a connection full of answers one goes out whole when its content is blocked', async (t) => {
  const { on, block } = await scene(t)
  const id = someId()
  const requests = 400
  await on.keep(id, randomBytes(40_000))
  t.equal((await on.ask(`/raw/${id}`)).status, 200)
  const socket = await stalled(on, id, requests)
  t.teardown(() => socket.destroy())
  const given = (): number => on.meters.total('get_data_stream_bytes_total')
  // Until its socket is full.
  for (let before = -1; before !== given(); await pause(300)) before = given()
  block('id', id)
  const statuses = statusesOn(socket)
  if (servedBy === 'fallback') {
    await once(socket, 'close')
    t.same(
      new Set(statuses()),
      new Set(['200']),
      'the one that goes out is cut, and nothing is answered behind it',
    )
    return
  }
  await eventually('every request has its answer', () => statuses().length === requests)
  const first = statuses().indexOf('451')
  t.ok(first > 0, `${first} answers before the block`)
  t.same(new Set(statuses().slice(first)), new Set(['451']), 'each request behind it is told of the block')
})

t.test('an unreadable list is answered 503, which caches do not keep', async (t) => {
  const list = new FilteredBlockList(new BlockFilter(), { has: () => false }, silentLog)
  const on = await stage({ parts: { guard: new Guard(list, { attributes: () => undefined }, 100) } })
  t.teardown(() => on.close())
  const id = someId()
  await on.keep(id, Buffer.from('x'))
  t.match(await on.ask(`/${id}`), {
    status: 503,
    headers: { 'cache-control': 'no-store', 'retry-after': '10' },
  })
})

t.test('content blocked only by its hash is never sent whole, and is not stored', async (t) => {
  for (const trusted of [true, false]) {
    const { on, block, release } = await scene(t, { trusted })
    const [id, copy, small] = [someId(), someId(), someId()]
    const body = randomBytes(5_000_000)
    const hash = createHash('sha256').update(body).digest()
    on.has
      .set(id, { body })
      .set(copy, { body })
      .set(small, { body: body.subarray(0, 1000) })
    block('hash', hash.toString('base64url'))
    block('hash', createHash('sha256').update(body.subarray(0, 1000)).digest('base64url'))
    const first = await on.ask(`/raw/${id}`)
    t.match(first, { status: 200, complete: false }, 'nobody knew')
    t.ok(first.body.length <= body.length - 262_144, `${first.body.length} bytes went out`)
    t.equal(on.rig.catalog.blobSize(hash), undefined)
    await eventually('no draft is left', async () => (await on.rig.drafts()).length === 0)
    const next = await on.ask(`/raw/${id}`)
    t.match(next, { status: 451 }, 'what a trusted gateway sent is known, what others send is judged first')
    const part = await on.ask(`/raw/${id}`, { headers: { range: 'bytes=3000000-3000009' } })
    t.match(part, { status: 451 }, 'also where only a part is asked for')
    t.match(
      await on.ask(`/raw/${small}`),
      { status: 451, body: Buffer.from(blockedText(small)) },
      'before its first byte',
    )
    release('hash', hash.toString('base64url'))
    for (const one of [id, copy]) t.match(await on.ask(`/raw/${one}`), { status: 200, complete: true, body })
  }
})

t.test('a part of content is not had apart from it while its hash may be blocked', async (t) => {
  const body = randomBytes(5_000_000)
  const hash = createHash('sha256').update(body).digest('base64url')
  const headers = { range: `bytes=3000000-${body.length - 1}` }
  for (const sizeOf of [() => body.length, undefined]) {
    const { on, block, release } = await scene(t, {}, sizeOf)
    const id = someId()
    on.has.set(id, { body })
    const known = { id, size: body.length, verified: false, trusted: true }
    await on.rig.keeper.ask({ kind: 'learn', attributes: [known] })
    block('hash', hash)
    const first = await on.ask(`/raw/${id}`, { headers })
    if (sizeOf === undefined) t.equal(first.complete && first.status === 206, false, 'never whole')
    else t.match(first, { status: 451, body: Buffer.from(blockedText(id)) }, 'before its first byte')
    t.match(await on.ask(`/raw/${id}`, { headers }), { status: 451 })
    release('hash', hash)
    t.match(await on.ask(`/raw/${id}`, { headers }), {
      status: 206,
      complete: true,
      body: body.subarray(3_000_000),
    })
  }
})

t.test('where a trusted gateway names a blocked digest, the bytes are not requested', async (t) => {
  const { on, block } = await scene(t)
  const id = someId()
  const body = randomBytes(5_000_000)
  const digest = createHash('sha256').update(body).digest('base64url')
  on.has.set(id, { body, digest })
  block('hash', digest)
  t.match(await on.ask(`/raw/${id}`), { status: 451, body: Buffer.from(blockedText(id)) })
})
