import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import type { Admission, Charge } from '../../src/admission/admission-port.js'
import { Guard } from '../../src/gateway/guard.js'
import { BlockFilter } from '../../src/moderation/block-filter.js'
import { FilteredBlockList } from '../../src/moderation/list.js'
import { ModerationKeeper } from '../../src/moderation/moderation-keeper.js'
import { ModerationStore } from '../../src/moderation/moderation-store.js'
import { verifiedByFirst } from '../attest/verifiers.js'
import { eventually } from '../eventually.js'
import { names, type Stage, type StageOptions, stage } from '../gateway/rig.js'
import { someId } from '../source/rig.js'

async function open(t: Test, more: StageOptions = {}): Promise<Stage> {
  const on = await stage(more)
  t.teardown(() => on.close())
  return on
}

const digestOf = (body: Buffer): string => createHash('sha256').update(body).digest('base64url')
const at = (body: Buffer): string => `/gateway/digest/${digestOf(body)}`

t.test('content by its digest is what /raw answers, cached without limit', async (t) => {
  const on = await open(t)
  const id = someId()
  const body = randomBytes(5000)
  await on.keep(id, body, { contentType: 'text/plain', height: 5 })
  const raw = await on.ask(`/raw/${id}`)
  const answer = await on.ask(at(body))
  t.equal(answer.status, 200)
  t.ok(answer.body.equals(body))
  t.same(names(answer), names(raw), 'the same headers')
  t.match(answer.headers, {
    'cache-control': 'public, max-age=2592000, immutable',
    'content-digest': `sha-256=:${createHash('sha256').update(body).digest('base64')}:`,
    'content-type': 'text/plain',
    etag: `"${digestOf(body)}"`,
    'x-gateway-data-id': id,
    'x-gateway-verified': 'true',
    'x-gateway-stable': 'false',
  })
  const exchange = { method: 'GET', url: on.url + at(body), status: 200, fields: answer.fields }
  t.ok(await verifiedByFirst(exchange))
  const head = await on.ask(at(body), { method: 'HEAD' })
  t.match(head, { status: 200, body: Buffer.alloc(0), headers: { 'content-length': '5000' } })
  t.equal(head.headers['content-digest'], answer.headers['content-digest'])
  t.match(await on.ask(`${at(body)}/`), { status: 200 })
  t.equal((await on.ask(at(body), { method: 'POST' })).status, 405)
})

t.test('ranges and conditions count as they do for /raw', async (t) => {
  const on = await open(t)
  const body = randomBytes(3000)
  await on.keep(someId(), body)
  const ask = (headers: Record<string, string>) => on.ask(at(body), { headers })
  const part = await ask({ range: 'bytes=10-19' })
  t.match(part, { status: 206, headers: { 'content-range': 'bytes 10-19/3000' } })
  t.ok(part.body.equals(body.subarray(10, 20)))
  const etag = `"${digestOf(body)}"`
  t.match(await ask({ 'if-none-match': etag }), {
    status: 304,
    headers: { etag, 'cache-control': 'public, max-age=2592000, immutable' },
  })
  t.equal((await ask({ range: 'bytes=3000-' })).status, 416)
  t.equal((await ask({ 'if-match': '"other"' })).status, 412)
  t.match((await ask({ range: 'bytes=0-0,5-5' })).headers['content-type'], /^multipart\/byteranges/)
})

t.test('a malformed digest is 400; content that is not here is 404, and no source is asked', async (t) => {
  const on = await open(t)
  const body = randomBytes(300)
  const id = someId()
  on.has.set(id, { body })
  for (const text of [
    'x',
    'x'.repeat(43),
    `${digestOf(body)}A`,
    `${digestOf(body)}/more`,
    '..%2f..',
    '__proto__',
  ]) {
    const answer = await on.ask(`/gateway/digest/${text}`)
    t.equal(answer.status, 400, text)
    t.equal(answer.body.toString(), `Invalid digest: ${text}`)
  }
  const unknown = await on.ask(at(body))
  t.match(unknown, { status: 404, headers: { 'cache-control': /^public, max-age=60/ } })
  await on.rig.keeper.ask({
    kind: 'learn',
    attributes: [
      { id, size: 300, digest: createHash('sha256').update(body).digest(), verified: true, trusted: true },
    ],
  })
  t.equal((await on.ask(at(body), { method: 'HEAD' })).status, 404, 'known, but not here')
  t.same(on.requested, [])
  t.equal((await on.ask(`/raw/${id}`)).status, 200)
  const found = async () => (await on.ask(at(body))).status
  await eventually('the digest is found', async () => (await found()) === 200)
  t.pass('what was fetched is found by its digest')
})

t.test('a file with a false digest is not served, however large it is', async (t) => {
  const on = await open(t, { options: { checkWaitBytes: 100 } })
  const body = randomBytes(5000)
  const sound = await on.keep(someId(), body)
  const first = await on.ask(at(body))
  t.match(first, { status: 200, headers: { 'content-digest': /sha-256/ } }, 'checked before it goes out')
  t.ok(readFileSync(sound).equals(body))
  const other = randomBytes(5000)
  const path = await on.keep(someId(), other)
  writeFileSync(path, randomBytes(5000))
  t.equal((await on.ask(at(other))).status, 404)
})

t.test('a blocked digest is 451, and so is one whose id is blocked', async (t) => {
  const store = new ModerationStore(`${t.testdir()}/list`)
  const filter = new BlockFilter()
  const keeper = new ModerationKeeper(store, filter, systemClock, silentLog)
  t.teardown(() => keeper.close())
  const guard = new Guard(
    new FilteredBlockList(filter, store, silentLog),
    { attributes: () => undefined },
    100,
  )
  const on = await open(t, { parts: { guard } })
  const ground = { source: 'test', notes: '' }
  const [one, two] = [randomBytes(3000), randomBytes(3000)]
  const id = someId()
  await on.keep(someId(), one)
  await on.keep(id, two)
  keeper.handle({ kind: 'block', subject: { kind: 'hash', key: digestOf(one) }, ground, by: 'test' })
  keeper.handle({ kind: 'block', subject: { kind: 'id', key: id }, ground, by: 'test' })
  const blocked = await on.ask(at(one))
  t.match(blocked, { status: 451, headers: { 'cache-control': 'public, max-age=100, immutable' } })
  t.match(blocked.body.toString(), `Blocked digest: ${digestOf(one)}`)
  const inside = await on.ask(at(two))
  t.equal(inside.status, 451)
  t.notOk('etag' in inside.headers)
})

t.test('it costs what content costs', async (t) => {
  const charges: Charge[] = []
  const settled: number[] = []
  const admission: Admission = {
    takeFirst: () => true,
    freeDelayMs: () => 0,
    admit(charge) {
      charges.push(charge)
      return { lines: '', returnUnsent: (bytes) => settled.push(bytes) }
    },
  }
  const on = await open(t, { parts: { admission } })
  const body = randomBytes(3000)
  await on.keep(someId(), body)
  await on.ask(at(body))
  await on.ask(at(body), { method: 'HEAD' })
  await on.ask(at(body), { headers: { 'if-none-match': `"${digestOf(body)}"` } })
  t.same(
    charges.map(({ bytes, domain = 'data', name }) => [bytes, domain, name]),
    [
      [3000, 'data', undefined],
      [0, 'data', undefined],
      [0, 'data', undefined],
    ],
  )
  t.same(settled, [3000, 0, 0])
})

t.test('under the words of the network it has their path', async (t) => {
  const on = await open(t, { vocabulary: 'ar-io' })
  const body = randomBytes(300)
  await on.keep(someId(), body)
  const answer = await on.ask(`/ar-io/Digest/${digestOf(body)}`)
  t.match(answer, { status: 200, headers: { 'x-ar-io-digest': digestOf(body) } })
  t.equal((await on.ask(at(body))).status, 404)
})
