import t from 'tap'
import { silentLog } from '../../src/actor/log.js'
import { Tip } from '../../src/actor/shared.js'
import { vocabularies } from '../../src/attest/vocabulary.js'
import type { Attributes } from '../../src/catalog/attributes.js'
import type { Id } from '../../src/format/id.js'
import { Entries } from '../../src/gateway/entries.js'
import type { HeadKind } from '../../src/gateway/entry-heads.js'
import { gatewayDefaults } from '../../src/gateway/gateway-parts.js'
import { createHeadWriter, type HeadWriter } from '../../src/gateway/head-writer.js'
import { Router } from '../../src/http/router.js'
import { targetOf } from '../../src/routes/content-handler.js'
import { gatewayParameters } from '../../src/routes/gateway-parameters.js'
import { stampOf } from '../../src/store/file-stamp.js'
import { sha256, someId } from '../source/rig.js'

const whole = { variant: 'whole', cached: true, sound: true, fallback: false } as const

/** A catalog that counts how often it is read. */
function store() {
  const known = new Map<Id, Attributes>()
  const store = {
    known,
    reads: 0,
    moved: 0,
    blobs: new Set<string>(),
    catalog: {
      attributes: (id: Id) => {
        store.reads += 1
        return known.get(id)
      },
      blobSize: (digest: Uint8Array) =>
        store.blobs.has(Buffer.from(digest).toString('hex')) ? 1 : undefined,
      generation: () => store.moved,
    },
    put(): Id {
      const id = someId()
      const digest = sha256(Buffer.from(id))
      known.set(id, { id, size: 1, digest, verified: true, trusted: true })
      store.blobs.add(digest.toString('hex'))
      return id
    },
  }
  return store
}

/** Without heads, an entry of these tests takes some 800 bytes. */
const bounds = { entriesMaxBytes: 3600, forkDepth: 18 }
const pathOf = (digest: Uint8Array): string => Buffer.from(digest).toString('hex')

t.test('an entry is read once, until the catalog says that something changed', async (t) => {
  const on = store()
  const entries = new Entries(on.catalog, pathOf, new Tip(), bounds)
  const id = on.put()
  const first = entries.get(id)
  t.ok(first?.blobPath)
  t.equal(entries.get(id), first)
  t.equal(on.reads, 1)
  on.moved += 1
  t.not(entries.get(id), first)
  t.equal(on.reads, 2)
  entries.forget(id)
  entries.get(id)
  t.equal(on.reads, 3)
})

t.test(
  'a check of the file stays valid when attributes of the id change, but not with another digest',
  async (t) => {
    const on = store()
    const entries = new Entries(on.catalog, pathOf, new Tip(), bounds)
    const id = on.put()
    const sound = stampOf(1n, 2n)
    const first = entries.get(id)
    if (first === undefined) throw new Error('no entry')
    first.sound = sound
    on.moved += 1
    t.equal(entries.get(id)?.sound, sound)
    on.known.set(id, { id, size: 1, digest: sha256(Buffer.from('other')), verified: true, trusted: true })
    on.moved += 1
    t.equal(entries.get(id)?.sound, undefined)
  },
)

t.test('a blob that is stored without a change in the catalog is noticed', async (t) => {
  const on = store()
  const entries = new Entries(on.catalog, pathOf, new Tip(), bounds)
  const id = on.put()
  const { blobs } = on
  on.blobs = new Set()
  t.equal(entries.get(id)?.blobPath, undefined)
  on.blobs = blobs
  t.ok(entries.get(id)?.blobPath)
})

t.test('the least used entries are dropped first, and unknown ids take no room', async (t) => {
  const on = store()
  const entries = new Entries(on.catalog, pathOf, new Tip(), bounds)
  const ids = [on.put(), on.put(), on.put(), on.put()]
  for (const id of ids) entries.get(id)
  for (let at = 0; at < 100; at += 1) t.equal(entries.get(someId()), undefined)
  const [oldest = someId(), second = someId()] = ids
  entries.get(oldest)
  entries.get(on.put())
  const before = on.reads
  entries.get(oldest)
  t.equal(on.reads, before, 'used again, so it stayed')
  entries.get(second)
  t.equal(on.reads, before + 1, 'the longest unused made room')
})

t.test('a head is prepared once and signed once a second for each path', async (t) => {
  const on = store()
  const entry = new Entries(on.catalog, pathOf, new Tip(), bounds).get(on.put())
  if (entry === undefined) throw new Error('no entry')
  let [prepared, signed] = [0, 0]
  const real = createHeadWriter({
    vocabulary: vocabularies.neutral,
    log: silentLog,
    options: gatewayDefaults,
  })
  const writer: HeadWriter = {
    prepare(...given) {
      prepared += 1
      return { ...real.prepare(...given), covered: [] }
    },
    reuseSeconds: 0,
    signed(head, { status, method, path }, seconds) {
      signed += 1
      return `${head.block}|${status} ${method} ${path} ${seconds}`
    },
  }
  const frame = (answer: HeadKind, method: string, path: string, seconds: number): string =>
    Buffer.from(entry.heads.headFor(answer, method, path, seconds, writer).split.after).toString()
  const block = (path: string, seconds: number): string => frame(whole, 'GET', path, seconds)
  const first = block('/a', 1)
  for (let at = 0; at < 10; at += 1) t.equal(block('/a', 1), first)
  t.same([prepared, signed], [1, 1])
  t.not(block('/b', 1), first)
  t.not(block('/a', 2), first)
  t.not(frame({ ...whole, variant: 'part' }, 'GET', '/a', 2), block('/a', 2))
  t.not(frame(whole, 'HEAD', '/a', 2), block('/a', 2))
  t.equal(prepared, 2)
  for (let at = 0; at < 100; at += 1) t.match(block(`/many/${at}`, 3), `GET /many/${at} 3`)
})

t.test('a signature is sent until it is too old', async (t) => {
  const on = store()
  const entries = new Entries(on.catalog, pathOf, new Tip(), bounds)
  const entry = entries.get(on.put())
  if (entry === undefined) throw new Error('no entry')
  const signed: number[] = []
  const writer: HeadWriter = {
    reuseSeconds: 60,
    prepare: () => ({ block: 'A: b', covered: [] }),
    signed(_head, _asking, seconds) {
      signed.push(seconds)
      return `A: b\r\nSigned: ${seconds}`
    },
  }
  const at = (seconds: number): string =>
    Buffer.from(entry.heads.headFor(whole, 'GET', '/a', seconds, writer).split.after)
      .toString()
      .slice(16)
  t.same([100, 101, 160].map(at), ['100', '100', '100'])
  t.equal(at(161), '161', 'too old')
  t.equal(at(160), '160', 'the clock was set back')
  t.same(signed, [100, 161, 160])
  const taken = entries.bytes
  t.equal(taken, entry.bytes)
  entries.forget(entry.attributes.id)
  t.equal(entries.bytes, 0)
  at(400)
  t.equal(entries.bytes, 0, 'what was forgotten counts no more')
})

t.test('types and codings of items cannot break the head', async (t) => {
  const writer = createHeadWriter({
    vocabulary: vocabularies.neutral,
    log: silentLog,
    options: gatewayDefaults,
  })
  const base = {
    cached: true,
    verified: true,
    trusted: true,
    stable: false,
    digest: undefined,
    hashed: false,
  }
  const block = (contentType: string, contentEncoding = 'gzip'): string => {
    const attributes = { id: someId(), size: 1, verified: true, trusted: true, contentType, contentEncoding }
    return writer.prepare({ ...base, attributes, fallback: false }, 'whole', () => 'b').block
  }
  t.match(block('text/html\r\nX-Bad: 1'), 'Content-Type: text/htmlX-Bad: 1\r\n')
  t.match(block('\r\n\0'), 'Content-Type: application/octet-stream\r\n')
  t.match(block(`a/${'b'.repeat(1000)}`), /Content-Type: a\/b{254}\r\n/)
  t.match(block('a/b', 'gzip, br'), 'Content-Encoding: gzip, br\r\n')
  for (const bad of ['gzip\r\nX: y', 'a b', '', 'gzip,', '\u00e9'])
    t.notMatch(block('a/b', bad), 'Content-Encoding', bad)
})

t.test('paths that name content', async (t) => {
  const id = someId()
  const crooked = `${'A'.repeat(42)}B`
  const table: [string, object | undefined][] = [
    [`/${id}`, { kind: 'data', id, rest: undefined }],
    [`/${id}/`, { kind: 'data', id, rest: '' }],
    [`/${id}//a/..`, { kind: 'data', id, rest: '/a/..' }],
    [`/${crooked}`, { kind: 'data', id: undefined, text: crooked }],
    [`/raw/${id}`, { kind: 'raw', id }],
    [`/Raw/${id}/`, { kind: 'raw', id }],
    [`/raw/${id}/x`, undefined],
    [`/raw//${id}`, undefined],
    [`/LOCAL/farcaster/Frame/${id}`, { kind: 'frame', id }],
    [`/local/farcaster/frame/${id}/x`, undefined],
    [`/${id}x`, undefined],
    [`/${id.slice(1)}`, undefined],
    [`/${id.slice(1)}%41`, undefined],
    ['/', undefined],
    ['', undefined],
    ['/raw/', undefined],
    [`//${id}`, undefined],
  ]
  for (const [path, expected] of table) {
    if (expected === undefined) t.equal(targetOf(path), undefined, path)
    else t.match(targetOf(path), expected, path)
  }
})

t.test('other routes are found by their whole path, or by the longest beginning', async (t) => {
  const route = (path: string) => ({
    family: 'other' as const,
    path,
    methods: ['GET'],
    about: [{ path, summary: 'a route', statuses: [200] }] as const,
    handle: () => undefined,
  })
  const router = new Router(['/', '/gateway/info', '/tx/', '/tx/deep/'].map(route), gatewayParameters)
  const found = (path: string): string | undefined => router.find(path)?.path
  const table: Readonly<Record<string, string | undefined>> = {
    '/': '/',
    '/GATEWAY/Info': '/gateway/info',
    '/gateway/info/': '/gateway/info',
    '/gateway/info//': undefined,
    '/tx/1': '/tx/',
    '/tx/deep/1': '/tx/deep/',
    '/tx/deep/': '/tx/deep/',
    '/tx/': '/tx/',
    '/tx': undefined,
    '/x': undefined,
    '/x/': undefined,
    '//': undefined,
  }
  t.same(Object.fromEntries(Object.keys(table).map((path) => [path, found(path)])), table)
  const below = {
    ...route('/a/'),
    about: [{ path: '/a/{id}', summary: 'a route', statuses: [200] }] as const,
  }
  const both = new Router([route('/a'), below], gatewayParameters)
  t.same(
    ['/a', '/a/', '/a/1'].map((path) => both.find(path)?.path),
    ['/a', '/a', '/a/'],
    'nothing below a path is the path itself',
  )
  const described = new Router(['/a', '/a/'].map(route), gatewayParameters)
  t.equal(described.find('/a/')?.path, '/a/', 'unless a route is for just that')
  t.throws(() => new Router([route('/a'), route('/a')], gatewayParameters))
  t.throws(() => new Router([route('/A')], gatewayParameters))
  const about = (path: string) => [{ path, summary: 'a route', statuses: [200] }] as const
  t.throws(
    () => new Router([{ ...route('/a'), about: about('/b') }], gatewayParameters),
    'a description of something else',
  )
  t.throws(
    () => new Router([{ ...route('/a/'), about: about('/a/{nonsense}') }], gatewayParameters),
    'an unknown parameter',
  )
  t.same(
    new Router([{ ...route('/a/'), about: about('/a/{id}') }], gatewayParameters).operations.map(
      ({ path }) => path,
    ),
    ['/a/{id}'],
  )
})
